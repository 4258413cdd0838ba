package mqtt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"

	"github.com/compozy-gateway/gateway/core"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Why a connection ended, where the network did not say it.
var (
	errStopping    = errors.New("the carrier is stopping")
	errRedeliver   = errors.New("reconnecting so that the broker sends again what could not be taken")
	errNoSubAck    = errors.New("the broker did not answer the subscription")
	errNoPubAcks   = errors.New("the broker leaves too many messages unacknowledged")
	errDisconnects = errors.New("the connection was closed")
)

// refused names the filters that the broker does not let us have.
type refused struct {
	filter string
	// granted is the QoS that the broker granted, or subscriptionFailure.
	granted byte
}

// subscriptionFailure is the return code of a refused filter (MQTT 3.1.1,
// section 3.9.3).
const subscriptionFailure = 0x80

func (r refused) Error() string {
	if r.granted >= subscriptionFailure {
		return fmt.Sprintf("the broker refuses the subscription to %s", r.filter)
	}
	return fmt.Sprintf("the broker grants only QoS %d for the subscription to %s", r.granted, r.filter)
}

// describe puts the end of a connection, or of an attempt to connect, into words
// that anybody may read.
func describe(err error) string {
	switch {
	case err == nil:
		return "not connected"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the broker closed the connection"
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword),
		errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return "the broker refuses the credentials"
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return "the broker refuses the client id"
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return "the broker says that it is unavailable"
	case errors.Is(err, packets.ErrorRefusedBadProtocolVersion):
		return "the broker does not speak MQTT 3.1.1"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "the broker does not answer"
	case errors.As(err, new(*fs.PathError)):
		return "the file with the password cannot be read (the log names it)"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Error()
	}
	return err.Error()
}

func sendError(code core.SendCode, detail string, err error) *core.SendError {
	return &core.SendError{Code: code, Detail: detail, Err: err}
}
