package http

import (
	nethttp "net/http"
	"slices"

	"github.com/compozy-gateway/gateway/core"
)

// getPeers lists the peers of a workspace that are known in channels which the
// caller may see.
func (s *server) getPeers(w nethttp.ResponseWriter, r *request) error {
	ws, err := r.workspace()
	if err != nil {
		return err
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	known, err := s.backend.Reader.Peers(ctx, ws)
	if err != nil {
		return err
	}
	visible := make([]core.PeerView, 0, len(known))
	for _, p := range known {
		p.Attached = slices.DeleteFunc(slices.Clone(p.Attached), func(ch string) bool { return !r.caller.seesChannel(ws, ch) })
		heard := r.caller.seesChannel(ws, p.Channel)
		if len(p.Attached) == 0 && !heard {
			continue
		}
		if !heard {
			p.Carrier, p.Channel, p.LastHeard = "", "", nil
			p.Card, p.CardCarrier, p.CardAt = nil, "", nil
		}
		p.Attached = list(p.Attached)
		visible = append(visible, p)
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"peers": visible})
}

// getThreads lists the public threads of a workspace, or of one of its channels.
func (s *server) getThreads(w nethttp.ResponseWriter, r *request) error {
	ws, err := r.workspace()
	if err != nil {
		return err
	}
	limit, err := r.limit()
	if err != nil {
		return err
	}
	only, err := r.optional("channel", core.ValidChannel, core.ChannelGrammar)
	if err != nil {
		return err
	}
	if err := r.caller.mayUse(ws, only); err != nil {
		return err
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	threads, err := s.backend.Reader.Threads(ctx, ws, limit, func(channel string) bool {
		return (only == "" || channel == only) && r.caller.seesChannel(ws, channel)
	})
	if err != nil {
		return err
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"threads": list(threads)})
}

// getWork shows one unit of work, that of a direct room to its two parties.
func (s *server) getWork(w nethttp.ResponseWriter, r *request) error {
	ws, err := r.workspace()
	if err != nil {
		return err
	}
	peer, err := r.readingPeer(ws, "")
	if err != nil {
		return err
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	work, err := s.backend.Reader.Work(ctx, ws, r.PathValue("work"))
	if err != nil {
		return err
	}
	var parties [2]string
	if work.Surface == core.SurfaceDirect {
		parties = [2]string{work.Initiator, work.Target}
	}
	if !r.caller.seesChannel(ws, work.Channel) || !r.caller.mayReadRoom(peer, parties) {
		return core.ErrNotFound
	}
	return writeJSON(w, nethttp.StatusOK, work)
}

// getCarriers shows every carrier, what it can do and how it stands; the facts
// about its agents and webhooks, and the end of what agents wrote to their standard
// error, to who operates the gateway.
func (s *server) getCarriers(w nethttp.ResponseWriter, r *request) error {
	carriers := s.backend.Fleet.Carriers()
	for i := range carriers {
		if !r.caller.operator {
			carriers[i].Detail = nil
		}
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"carriers": list(carriers)})
}
