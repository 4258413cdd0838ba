package http

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	nethttp "net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// maxHeaderBytes is far above what any client of ours sends.
const maxHeaderBytes = 64 << 10

// server is one run of the carrier: the routes, and what their handlers share.
type server struct {
	*Carrier
	in    core.Intake
	tails *tails
	// closing ends when the gateway stops: streams and long polls end with it.
	closing context.Context
	stop    context.CancelFunc
	// requests ends what goes on when the shutdown timeout is over.
	requests activity
	// spooled counts the bytes of answers that are held for clients which send
	// before they read.
	spooled atomic.Int64
}

func newServer(ctx context.Context, c *Carrier, in core.Intake) *server {
	closing, stop := context.WithCancel(ctx)
	return &server{
		Carrier: c,
		in:      in,
		tails:   newTails(closing, c.backend.Reader, c.host.Logger),
		closing: closing,
		stop:    stop,
	}
}

// serve answers requests until the gateway stops. It returns when every handler
// has.
func (s *server) serve(l net.Listener, tlsConfig *tls.Config) error {
	var protocols nethttp.Protocols
	protocols.SetHTTP1(true)
	srv := &nethttp.Server{
		Handler:           s.handler(),
		TLSConfig:         tlsConfig,
		Protocols:         &protocols,
		ReadHeaderTimeout: s.cfg.ReadHeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// OPTIONS * is no call of ours either.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.host.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() {
		if tlsConfig != nil {
			served <- srv.ServeTLS(l, "", "")
		} else {
			served <- srv.Serve(l)
		}
	}()
	select {
	case err := <-served:
		s.end(srv)
		return err
	case <-s.closing.Done():
	}
	s.become(core.StateNotReady, "stopping")
	s.end(srv)
	if err := <-served; !errors.Is(err, nethttp.ErrServerClosed) {
		return err
	}
	return nil
}

// end ends every stream, request and tail, and waits for them.
func (s *server) end(srv *nethttp.Server) {
	s.stop()
	s.shutdown(srv)
	s.tails.wait()
}

// lastWords is how long answers may take to leave once every handler is done.
const lastWords = 250 * time.Millisecond

// shutdown lets requests end by themselves for the shutdown timeout, and cuts
// what is left. Connections that never sent a request are not waited for, though
// net/http would.
func (s *server) shutdown(srv *nethttp.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	var drained sync.WaitGroup
	drained.Go(func() {
		s.requests.drain()
		pause(ctx, lastWords)
		cancel()
	})
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // Nothing is left to be done about an error here.
	}
	cancel()
	s.requests.end()
	drained.Wait()
}

// request is one request on its way to a handler.
type request struct {
	*nethttp.Request
	caller *caller
	// query holds the parameters that the call knows, each at most once.
	query url.Values
	// alive ends when the server gives up on requests. Unlike the request's own
	// context it goes on when the client hangs up.
	alive context.Context
}

// reader is the context of reading the store for this request.
func (s *server) reader(r *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), s.cfg.ReadTimeout)
}

// handlerFunc answers one request. An error is written as a problem, unless the
// answer has begun.
type handlerFunc func(w nethttp.ResponseWriter, r *request) error

// answer remembers whether the answer has begun, and gives it its time from
// then on: a handler may have waited long before.
type answer struct {
	nethttp.ResponseWriter
	s     *server
	begun bool
}

func (a *answer) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(b)
}

func (a *answer) begin() {
	if !a.begun {
		a.begun = true
		a.s.extendWrite(a.ResponseWriter)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() nethttp.ResponseWriter { return a.ResponseWriter }

// wrap gives a handler its surroundings: a deadline for the answer, the guard,
// the caller, and errors as problems.
func (s *server) wrap(needsCaller bool, h handlerFunc) nethttp.Handler {
	return nethttp.HandlerFunc(func(raw nethttp.ResponseWriter, r *nethttp.Request) {
		w := &answer{ResponseWriter: raw, s: s}
		alive, leave, ok := s.requests.begin(context.WithoutCancel(r.Context()))
		if !ok {
			s.fail(w, r, core.ErrStopping)
			return
		}
		defer leave()
		// A deadline of the request before must not meet a 100 Continue of this one.
		s.extendWrite(w)
		defer func() {
			if v := recover(); v != nil {
				s.recovered(w, r, v)
			}
		}()
		err := s.guard(r)
		req := &request{Request: r, caller: &caller{}, alive: alive}
		if err == nil && needsCaller {
			var release func()
			if release, err = s.identify(req); err == nil {
				defer release()
			}
		}
		if err == nil {
			err = h(w, req)
		}
		if err != nil {
			s.fail(w, req.Request, err)
		}
	})
}

// identify fills in the caller. The request's context ends when the caller's
// token is revoked.
func (s *server) identify(r *request) (release func(), err error) {
	r.caller, err = s.authenticate(r.Request)
	if err != nil {
		return nil, err
	}
	if r.caller.cred == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(r.caller.revocation(), cancel)
	r.Request = r.WithContext(ctx)
	return func() { stop(); cancel() }, nil
}

// fail answers with the error.
func (s *server) fail(w *answer, r *nethttp.Request, err error) {
	p, known := asProblem(err)
	switch {
	case errors.Is(err, errHungUp):
		s.host.Logger.Debug("the client hung up", "method", r.Method, "path", r.URL.Path)
	case !known && r.Context().Err() != nil:
		// Whatever failed, it failed because nobody waits for it any more.
		s.host.Logger.Debug("request was given up", "method", r.Method, "path", r.URL.Path, "error", err)
		p = unavailable("the request was given up", retrySoon)
	case !known:
		s.host.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if w.begun || errors.Is(err, errHungUp) {
		// What was begun cannot be taken back: the client must see that it is cut.
		panic(nethttp.ErrAbortHandler)
	}
	_ = p.write(w) // The client is gone; there is nobody to tell.
}

// recovered answers after a panic, which is our own fault and ends one request
// only.
func (s *server) recovered(w *answer, r *nethttp.Request, v any) {
	if v == nethttp.ErrAbortHandler { //nolint:errorlint // net/http compares it by identity, too.
		panic(v)
	}
	s.host.Logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v)
	if w.begun {
		panic(nethttp.ErrAbortHandler)
	}
	_ = newProblem(nethttp.StatusInternalServerError, "the gateway could not answer; its log says why").write(w)
}

// extendWrite gives the next write its time.
func (s *server) extendWrite(w nethttp.ResponseWriter) {
	// Not every ResponseWriter has deadlines (those of tests); ours has.
	_ = nethttp.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout))
}
