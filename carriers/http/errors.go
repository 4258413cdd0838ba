package http

import (
	"context"
	"errors"
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// asProblem is the one place where an error becomes an answer. known is false
// for errors that nobody foresaw: those are logged, and told to the client
// without their cause.
func asProblem(err error) (p *problem, known bool) {
	var rej *core.Rejection
	switch {
	case errors.As(err, &p):
		return p, true
	case errors.As(err, &rej):
		return refusal(rej, ""), true
	case errors.Is(err, core.ErrNotFound):
		return newProblem(nethttp.StatusNotFound, "nothing of that name is known"), true
	case errors.Is(err, core.ErrForbidden):
		return forbidden("the peer is reserved for another sender, or out of scope"), true
	case errors.Is(err, core.ErrExpired):
		return newProblem(nethttp.StatusConflict, "the message has expired and cannot be delivered any more"), true
	case errors.Is(err, core.ErrStopping):
		return unavailable("the gateway is stopping", retrySoon), true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable("the gateway could not answer in time", retrySoon), true
	}
	return newProblem(nethttp.StatusInternalServerError, "the gateway could not answer; its log says why"), false
}
