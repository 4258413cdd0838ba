package nats

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Why a session ends.
var (
	errConnectionLost = errors.New("the connection is lost")
	errStreamGone     = errors.New("no stream answers a publish")
)

// The codes of JetStream errors for which the client library has no name.
const (
	codeAccountResources jetstream.ErrorCode = 10002
	codeClusterNotLeader jetstream.ErrorCode = 10009
	codeInsufficient     jetstream.ErrorCode = 10023
	codeMemoryResources  jetstream.ErrorCode = 10028
	codeStorageResources jetstream.ErrorCode = 10047
	codeSubjectOverlap   jetstream.ErrorCode = 10065
	codeStreamOffline    jetstream.ErrorCode = 10118
	codeOfflineReason    jetstream.ErrorCode = 10194
)

// busyPause is how long a server that is overrun is left alone.
const busyPause = time.Second

// describe puts the end of a session into words that anybody may read.
func (c Config) describe(err error) string {
	text := err.Error()
	for _, file := range []string{
		c.PasswordFile, c.TokenFile, c.CredentialsFile, c.NKeyFile, c.TLS.CertFile, c.TLS.KeyFile, c.TLS.CAFile,
	} {
		if file != "" && strings.Contains(text, file) {
			return "a file of the credentials cannot be used (the log names it)"
		}
	}
	return text
}

// publishError says why a message could not be written.
func publishError(err error, subject string, serverLimit int64) *core.SendError {
	switch {
	case errors.Is(err, natsgo.ErrMaxPayload):
		return &core.SendError{
			Code:   core.CodeTooLarge,
			Detail: fmt.Sprintf("too large for carrier: the NATS server takes %d bytes, headers included", serverLimit),
			Err:    err,
		}
	case errors.Is(err, natsgo.ErrBadSubject):
		return &core.SendError{Code: core.CodeBadAddress, Detail: fmt.Sprintf("subject %q is not legal", shorten(subject)), Err: err}
	}
	return &core.SendError{Code: core.CodeUnavailable, Detail: "the connection to the NATS server takes no message", Err: err}
}

// refusedError says that the server does not let us publish on the subject.
func refusedError(err error, subject string) *core.SendError {
	return &core.SendError{
		Code:   core.CodeRefused,
		Detail: fmt.Sprintf("the NATS server does not allow publishing on %q", shorten(subject)),
		Err:    err,
	}
}

// refuses reports whether a permissions violation is about publishing on the
// subject. The NATS protocol has no field for it: the server quotes the subject
// in its message.
func refuses(err error, subject string) bool {
	return errors.Is(err, natsgo.ErrPermissionViolation) && strings.Contains(err.Error(), strconv.Quote(subject))
}

// pubAckError says what the answer of a stream means that did not store the
// message.
func pubAckError(e *jetstream.APIError, subject string) *core.SendError {
	out := &core.SendError{Detail: fmt.Sprintf("the stream did not store a message on %q", shorten(subject)), Err: e}
	switch e.ErrorCode {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		out.Code = core.CodeTooLarge
		out.Detail = "too large for carrier: the message is over the stream's limit"
		return out
	case codeAccountResources, codeInsufficient, codeMemoryResources, codeStorageResources,
		codeClusterNotLeader, codeStreamOffline, codeOfflineReason:
		out.Code = core.CodeUnavailable
		return out
	}
	switch e.Code {
	case http.StatusTooManyRequests:
		out.Code, out.RetryAfter = core.CodeBusy, busyPause
	case http.StatusServiceUnavailable:
		out.Code = core.CodeUnavailable
	default:
		out.Code = core.CodeFailed
	}
	return out
}

// noAnswer is a send whose time ended without an acknowledgement.
func noAnswer(cause error, subject, foreign string) *core.SendError {
	detail := fmt.Sprintf("no acknowledgement for a message on %q", shorten(subject))
	if foreign != "" {
		detail += fmt.Sprintf("; stream %q answered, which is not the configured one", shorten(foreign))
	}
	return &core.SendError{Code: core.CodeTimeout, Detail: detail, Err: cause}
}

// lost is a send that was written to a connection that has ended.
func lost(subject string) *core.SendError {
	return &core.SendError{
		Code:   core.CodeTimeout,
		Detail: fmt.Sprintf("the connection ended before a message on %q was acknowledged", shorten(subject)),
		Err:    errConnectionLost,
	}
}

// unavailable is a send for which there is no session.
func unavailable(why string) *core.SendError {
	return &core.SendError{Code: core.CodeUnavailable, Detail: "the NATS carrier is not ready: " + why}
}

// isCode reports whether a JetStream call failed with the code.
func isCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

// isEnd reports whether the error says only that a context ended.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isClosed reports whether the error says only that the connection has ended.
func isClosed(err error) bool { return errors.Is(err, natsgo.ErrConnectionClosed) }

// lostBecause is the end of a connection with what is known of the reason.
func lostBecause(err error) error {
	if err == nil {
		return errConnectionLost
	}
	return fmt.Errorf("%w: %w", errConnectionLost, err)
}
