package http

import (
	"context"
	"fmt"
	"maps"
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
	if hook := s.pushed[seat{at.WorkspaceID, at.Channel, at.Peer}]; hook != nil {
		return at, newProblem(nethttp.StatusConflict, fmt.Sprintf("webhook %s stands in for the inbox of this peer", hook.name))
	}
	return at, nil
}

// seat is a peer in a channel.
type seat struct{ workspace, channel, peer string }

// attachWebhookPeers attaches the peers that webhooks serve, and tries until it
// has them all or ctx ends.
func (c *Carrier) attachWebhookPeers(ctx context.Context, in core.Intake) {
	left := maps.Clone(c.pushed)
	for delay := firstAttachPause; ; delay = min(2*delay, maxAttachPause) {
		maps.DeleteFunc(left, func(place seat, hook *endpoint) bool { return c.attachPushed(ctx, in, place, hook) })
		if len(left) == 0 || ctx.Err() != nil {
			return
		}
		pause(ctx, delay)
	}
}

// Hosted implements core.Hoster: the peers that webhooks serve.
func (c *Carrier) Hosted() []core.Attachment {
	hosted := make([]core.Attachment, 0, len(c.pushed))
	for place := range c.pushed {
		hosted = append(hosted, c.pushedAttachment(place))
	}
	return hosted
}

// pushedAttachment attaches as the token to which the peer's id is bound.
func (c *Carrier) pushedAttachment(place seat) core.Attachment {
	return core.Attachment{
		WorkspaceID: place.workspace,
		Channel:     place.channel,
		Peer:        place.peer,
		Push:        true,
		Principal:   ownerOf(c.cfg.Tokens, place.workspace, place.peer),
	}
}

func (c *Carrier) attachPushed(ctx context.Context, in core.Intake, place seat, hook *endpoint) bool {
	err := in.Attach(ctx, c.pushedAttachment(place))
	if err != nil && ctx.Err() == nil {
		c.host.Logger.Warn("cannot attach a webhook's peer", "webhook", hook.name, "peer", place.peer, "error", err)
	}
	return err == nil
}
