package http

import (
	nethttp "net/http"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// The members of an inspection before and behind the envelope, which is spliced
// in as it came.
type (
	inspectionHead struct {
		Seq         *int64    `json:"seq"`
		CommittedAt time.Time `json:"committed_at"`
		Carrier     string    `json:"carrier"`
		Arrival     string    `json:"arrival"`
		Parked      bool      `json:"parked"`
	}
	inspectionTail struct {
		Decisions  []core.Decision    `json:"decisions"`
		Deliveries []core.Delivery    `json:"deliveries"`
		Receipts   []core.ReceiptView `json:"receipts"`
		Wakes      []core.WakeView    `json:"wakes"`
		Skips      []core.SkipView    `json:"skips"`
		// Participations is empty where no agent is concerned.
		Participations map[string]core.Participation `json:"resolved_network_participation"`
	}
)

// getMessage shows one message with its decisions, the carriers'
// acknowledgements and the receipts, side by side. To somebody who may not read
// it, it does not exist.
func (s *server) getMessage(w nethttp.ResponseWriter, r *request) error {
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
	m, err := s.backend.Reader.Inspect(ctx, ws, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !r.caller.seesChannel(ws, m.Channel) || !r.caller.mayReadRoom(peer, m.Parties) {
		return core.ErrNotFound
	}
	head := encode(inspectionHead{m.Seq, m.CommittedAt.UTC(), m.Carrier, m.Arrival, m.Parked})
	tail := encode(inspectionTail{
		list(m.Decisions), r.caller.deliveries(m.Deliveries), r.caller.receipts(ws, m.Receipts), r.caller.wakes(peer, m.Wakes, r.PathValue("id")), list(m.Skips), participations(m.Participations),
	})
	body := make([]byte, 0, len(head)+len(m.Envelope)+len(tail)+16)
	body = append(body, head[:len(head)-len("}\n")]...)
	body = append(body, `,"envelope":`...)
	body = append(body, m.Envelope...)
	body = append(body, ',')
	body = append(body, tail[len("{"):]...)
	return writeBody(w, nethttp.StatusOK, typeJSON, body)
}

// receipts are those in channels that the caller may see: anybody may send one
// about any message, from anywhere.
func (c *caller) receipts(workspace string, all []core.ReceiptView) []core.ReceiptView {
	seen := make([]core.ReceiptView, 0, len(all))
	for _, r := range all {
		if c.seesChannel(workspace, r.Channel) {
			seen = append(seen, r)
		}
	}
	return seen
}

// deliveries is what the caller may see of the deliveries of a message. What an
// attempt met may name machines and repeat what a webhook answered, which is an
// operator's to know.
func (c *caller) deliveries(all []core.Delivery) []core.Delivery {
	seen := make([]core.Delivery, 0, len(all))
	for _, d := range all {
		if !c.operator {
			d.LastError = ""
		}
		seen = append(seen, d)
	}
	return seen
}

// wakes is what the caller, who reads as peer, may see of wakes: of those that
// the message of this id had to do with, or of an agent's where there is no id.
// Where a wake came from and how it ended tell of the conversations in it, and
// are for operators who may read them all.
func (c *caller) wakes(peer string, all []core.WakeView, id string) []core.WakeView {
	seen := make([]core.WakeView, 0, len(all))
	for _, w := range all {
		if !c.readsWake(peer, w) {
			w.Detail = ""
			if w.Root != id {
				w.Root = ""
			}
		}
		seen = append(seen, w)
	}
	return seen
}

func (c *caller) readsWake(peer string, w core.WakeView) bool {
	if !c.operator || (w.RootChannel != "" && !c.seesChannel(w.WorkspaceID, w.RootChannel)) {
		return false
	}
	if c.admin {
		return true
	}
	// A root that is not known may have been in a direct room.
	return w.RootChannel != "" && !slices.ContainsFunc(w.Rooms, func(parties [2]string) bool {
		return parties == [2]string{} || !c.mayReadRoom(peer, parties)
	})
}

// participations makes sure that none are written as an empty object.
func participations(all map[string]core.Participation) map[string]core.Participation {
	if all == nil {
		return map[string]core.Participation{}
	}
	return all
}

// list makes sure that an empty list is written as one.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
