package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// accepting makes groups as the committer would: n messages of 600 bytes in a
// handful of threads, each with two deliveries.
type accepting struct {
	seq   int64
	links []int64
}

func newAccepting(tb testing.TB, s *Store) *accepting {
	a := &accepting{}
	for _, carrier := range []string{"mqtt", "nats"} {
		a.links = append(a.links, ensure(tb, s, core.Recipient{Carrier: carrier}))
	}
	return a
}

func (a *accepting) id() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return "msg_" + hex.EncodeToString(b[:])
}

// payload600 is an envelope of 600 bytes.
func payload600(id string) []byte {
	p := envelope(id)
	return append(p, bytes.Repeat([]byte{' '}, 600-len(p))...)
}

func (a *accepting) messages(n int) []Message {
	list := make([]Message, n)
	for i := range list {
		a.seq++
		id := a.id()
		list[i] = Message{
			Seq: a.seq, Key: testKey(id), Channel: testChannel, Kind: core.KindSay, Carrier: "http",
			Container:   core.Container{Surface: core.SurfaceThread, ID: fmt.Sprintf("thread_%03d", a.seq%16)},
			CommittedAt: noon, Content: sha256.Sum256([]byte(id)), KnownUntil: noon.Add(5 * time.Minute), Payload: payload600(id),
		}
	}
	return list
}

func (a *accepting) deliveries(messages []Message) []NewDelivery {
	list := make([]NewDelivery, 0, 2*len(messages))
	for i := range messages {
		for _, link := range a.links {
			list = append(list, NewDelivery{
				ID: core.DeliveryID{Seq: messages[i].Seq, Recipient: link}, Position: messages[i].Seq, Deadline: noon.Add(24 * time.Hour),
			})
		}
	}
	return list
}

// accept is one group, as the committer does it.
func (a *accepting) accept(ctx context.Context, tx *Tx, messages []Message) error {
	var n Needs
	for i := range messages {
		m := &messages[i]
		container := containerOf(m)
		n.Keys = append(n.Keys, m.Key)
		n.Containers = append(n.Containers, container)
		n.Members = append(n.Members, Member{container, "a.one"})
		n.Peers = append(n.Peers, PeerKey{testWorkspace, "a.one"})
	}
	state, err := tx.Load(ctx, n)
	if err != nil {
		return err
	}
	c := &Changes{Now: noon, Messages: messages, Deliveries: a.deliveries(messages)}
	for i := range messages {
		key := containerOf(&messages[i])
		row := state.Containers[key]
		if row == nil {
			row = &Container{Key: key}
			state.Containers[key] = row
		}
		row.Messages++
		row.LastSeq, row.LastAt = messages[i].Seq, noon
		if m := (Member{key, "a.one"}); !state.Members[m] {
			state.Members[m] = true
			c.Members = append(c.Members, m)
		}
	}
	for _, row := range state.Containers {
		c.Containers = append(c.Containers, row)
	}
	c.Peers = []*Peer{{Key: PeerKey{testWorkspace, "a.one"}, Link: a.links[0], Channel: testChannel, LastHeard: noon}}
	return tx.Apply(ctx, c)
}

// BenchmarkAccept is the accept path of the store: Load and Apply of a group.
// ns/op is per message.
func BenchmarkAccept(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			s := openStore(b, b.TempDir())
			a := newAccepting(b, s)
			for done := 0; done < b.N; done += size {
				if err := s.Write(b.Context(), func(ctx context.Context, tx *Tx) error { return a.accept(ctx, tx, a.messages(size)) }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBareInsert is the measure of BenchmarkAccept: the same rows of
// messages, ids and deliveries, in the same tables of a store, written with
// plain multi-row statements in one transaction and nothing else.
func BenchmarkBareInsert(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			s := openStore(b, b.TempDir())
			a := newAccepting(b, s)
			apply(b, s, &Changes{Containers: []*Container{{Key: threadKey("thread_000"), Messages: 1}}, Messages: a.messages(1)})
			for done := 0; done < b.N; done += size {
				if err := a.bare(b.Context(), s, a.messages(size)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func (a *accepting) bare(ctx context.Context, s *Store, messages []Message) error {
	tx, err := s.writer.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var rows, ids, deliveries []any
	for i := range messages {
		m := &messages[i]
		rows = append(rows, m.Seq, 1, m.Seq%16+1, nil, 0, 1, 0, millis(m.CommittedAt), nil, nil, m.Content[:], millis(m.KnownUntil), m.Payload)
		key := s.keyOf(m.Key)
		ids = append(ids, m.Seq, key[:])
	}
	for _, d := range a.deliveries(messages) {
		deliveries = append(deliveries, d.ID.Seq, d.ID.Recipient, d.Position, millis(d.Deadline), 0, nil)
	}
	for _, insert := range []struct {
		head    string
		columns int
		args    []any
	}{
		{"INSERT INTO messages (seq, channel_id, container_id, work_id, kind, carrier_id, arrival, committed_at, for_id, ignored, content, known_until, payload) VALUES ", 13, rows},
		{"INSERT INTO recent_ids (seq, key) VALUES ", 2, ids},
		{"INSERT INTO deliveries (seq, recipient_id, position, deadline, direct, to_peer) VALUES ", 6, deliveries},
	} {
		group := "(?" + strings.Repeat(",?", insert.columns-1) + ")"
		text := insert.head + group + strings.Repeat(","+group, len(insert.args)/insert.columns-1)
		if _, err := tx.ExecContext(ctx, text, insert.args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// BenchmarkResults records the acknowledgements of a group; ns/op is per
// delivery.
func BenchmarkResults(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			s := openStore(b, b.TempDir())
			a := newAccepting(b, s)
			var results []Result
			for len(results) < b.N+2*size {
				messages := a.messages(512)
				if err := s.Write(b.Context(), func(ctx context.Context, tx *Tx) error { return a.accept(ctx, tx, messages) }); err != nil {
					b.Fatal(err)
				}
				for _, d := range a.deliveries(messages) {
					results = append(results, Result{
						ID: d.ID, State: core.DeliveryAcked, Attempts: 1,
						Ack: core.Ack{Kind: core.AckMQTTPubAck, At: noon, Detail: "packet 4711"},
					})
				}
			}
			b.ResetTimer()
			for done := 0; done < b.N; done += size {
				if err := s.Write(b.Context(), func(ctx context.Context, tx *Tx) error {
					return tx.Apply(ctx, &Changes{Now: noon, Results: results[done : done+size]})
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
