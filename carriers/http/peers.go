package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// The pauses between attempts to attach the webhooks' peers.
const (
	firstAttachPause = 100 * time.Millisecond
	maxAttachPause   = 30 * time.Second
)

// putPeer attaches a peer: what it receives from then on waits in its inbox.
func (s *server) putPeer(w nethttp.ResponseWriter, r *request) error {
	return s.changePeer(w, r, s.in.Attach)
}

// deletePeer detaches a peer.
func (s *server) deletePeer(w nethttp.ResponseWriter, r *request) error {
	return s.changePeer(w, r, s.in.Detach)
}

func (s *server) changePeer(w nethttp.ResponseWriter, r *request, change func(context.Context, core.Attachment) error) error {
	at, err := s.pulledPeer(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.AcceptTimeout)
	defer cancel()
	if err := change(ctx, at); err != nil {
		return err
	}
	s.extendWrite(w)
	w.WriteHeader(nethttp.StatusNoContent)
	return nil
}

// pulledPeer is the peer of the request's path, where no webhook stands in for
// its inbox.
func (s *server) pulledPeer(r *request) (core.Attachment, error) {
	at, err := r.attachment()
	if err != nil {
		return at, err
	}
	pushed := at
	pushed.Push = true
	if hook := s.pushed[pushed]; hook != nil {
		return at, newProblem(nethttp.StatusConflict, fmt.Sprintf("webhook %s stands in for the inbox of this peer", hook.name))
	}
	return at, nil
}

// attachWebhookPeers attaches the peers that webhooks serve, and tries until it
// has or ctx ends.
func (c *Carrier) attachWebhookPeers(ctx context.Context, in core.Intake) {
	for at, hook := range c.pushed {
		for delay := firstAttachPause; ; delay = min(2*delay, maxAttachPause) {
			err := in.Attach(ctx, at)
			if err == nil || ctx.Err() != nil {
				break
			}
			c.host.Logger.Warn("cannot attach a webhook's peer", "webhook", hook.name, "peer", at.Peer, "error", err)
			pause(ctx, delay)
		}
	}
}
