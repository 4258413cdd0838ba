package core

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotFound says that nothing of that name is known.
var ErrNotFound = errors.New("not found")

// ErrExpired says that a message may not be delivered any more.
var ErrExpired = errors.New("expired")

// ErrForbidden says that the asker may not do this.
var ErrForbidden = errors.New("not allowed")

// ErrNetworkOff is an ErrForbidden that says that network.enabled is false, so
// that no agent may become live.
var ErrNetworkOff = fmt.Errorf("network.enabled is false: %w", ErrForbidden)

// ErrStopping says that the gateway is shutting down and takes nothing more.
var ErrStopping = errors.New("the gateway is stopping")

// ErrStarting says that a destination has not been started yet, which passes by
// itself.
var ErrStarting = errors.New("not started yet")

// SendCode says what kind of failure a send met, for the machine.
type SendCode string

// The codes of a failed send.
const (
	// CodeUnavailable: the link as a whole is down; every send would fail. The
	// destination waits, nothing is counted against the message.
	CodeUnavailable SendCode = "unavailable"
	// CodeTimeout: the outcome is unknown; the same bytes are sent again.
	CodeTimeout SendCode = "timeout"
	// CodeBusy: the other side asks for patience with this message.
	CodeBusy SendCode = "busy"
	// CodeFailed: this message failed in a way that may pass.
	CodeFailed SendCode = "failed"
	// CodeRefused: the other side will never take this message.
	CodeRefused SendCode = "refused"
	// CodeTooLarge: the message is larger than the carrier takes.
	CodeTooLarge SendCode = "too_large"
	// CodeBadAddress: the message cannot be addressed on this carrier.
	CodeBadAddress SendCode = "bad_address"
	// CodeGone: the destination says that it is gone for good.
	CodeGone SendCode = "gone"
	// CodeExpired: the deadline passed before the write.
	CodeExpired SendCode = "expired"
)

// Permanent reports whether trying again cannot help.
func (c SendCode) Permanent() bool {
	switch c {
	case CodeRefused, CodeTooLarge, CodeBadAddress, CodeGone:
		return true
	}
	return false
}

// SendError is why a send failed. Code is for the machine, Detail for people,
// Err for the log. It never holds a secret.
type SendError struct {
	Code SendCode
	// Detail says what happened, with the destination's name.
	Detail string
	// RetryAfter is how long the other side asked to wait; 0 means it did not say.
	RetryAfter time.Duration
	Err        error
}

func (e *SendError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap gives the cause.
func (e *SendError) Unwrap() error { return e.Err }
