package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

const (
	bigThread  = "thread_big"
	workThread = "thread_of_work"
	bigWork    = "work-big"
	partyA     = "party-a"
	partyB     = "party-b"
	// inEachBig is how many messages the big thread, room and work hold.
	inEachBig  = 200_000
	fillGroup  = 1024
	oldThreads = 1000
)

func bigRoom() string { return core.DirectRoomID(workspace, channel, partyA, partyB) }

// filler writes a history as a gateway would have left it: every message with
// its id and two acknowledged deliveries.
type filler struct {
	bench         *bench
	dir           string
	total         int
	payloadBytes  int64
	databaseBytes int64

	seq        int64
	recipients []int64
	containers map[store.ContainerKey]*store.Container
	work       *store.Work
	// sent are the deliveries of the last group, acknowledged with the next.
	sent []store.NewDelivery
}

func (f *filler) fill(ctx context.Context) (err error) {
	// A loader may be faster than what is measured afterwards.
	s, err := store.Open(ctx, store.Options{Dir: f.dir, Synchronous: "normal"})
	if err != nil {
		return err
	}
	defer func() { err = firstOf(err, s.Close()) }()
	f.containers = map[store.ContainerKey]*store.Container{}
	err = s.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i := range 2 {
			row, err := tx.EnsureRecipient(ctx, core.Recipient{Carrier: linkName(i)})
			if err != nil {
				return err
			}
			f.recipients = append(f.recipients, row.ID)
		}
		return nil
	})
	for done := 0; done < f.total && err == nil && ctx.Err() == nil; done += fillGroup {
		c := f.group(min(fillGroup, f.total-done))
		err = s.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			// What is written has to be known to be there or not.
			needs := store.Needs{}
			for _, row := range c.Containers {
				needs.Containers = append(needs.Containers, row.Key)
			}
			for _, w := range c.Works {
				needs.Works = append(needs.Works, w.Key)
			}
			if _, err := tx.Load(ctx, needs); err != nil {
				return err
			}
			return tx.Apply(ctx, c)
		})
	}
	if err = firstOf(err, ctx.Err()); err != nil {
		return err
	}
	f.databaseBytes, err = s.Size(ctx)
	return err
}

// group is the next messages and what they change.
func (f *filler) group(n int) *store.Changes {
	now := time.Now()
	c := &store.Changes{Now: now}
	for _, d := range f.sent {
		c.Results = append(c.Results, store.Result{
			ID: d.ID, State: core.DeliveryAcked, Attempts: 1, Ack: core.Ack{Kind: core.AckMQTTPubAck, At: now},
		})
	}
	f.sent = f.sent[:0]
	touched := map[store.ContainerKey]bool{}
	for range n {
		f.seq++
		m, from := f.message(now)
		key := store.ContainerKey{WorkspaceID: workspace, Channel: channel, Container: m.Container}
		row := f.containers[key]
		if row == nil {
			row = &store.Container{Key: key}
			if m.Container.Surface == core.SurfaceDirect {
				row.PeerA, row.PeerB = partyA, partyB
			} else {
				row.Participants = 1
				c.Members = append(c.Members, store.Member{Container: key, Peer: from})
			}
			f.containers[key] = row
		}
		row.Messages++
		row.LastSeq, row.LastAt = m.Seq, now
		if !touched[key] {
			touched[key] = true
			c.Containers = append(c.Containers, row)
		}
		if m.WorkID != "" && f.work == nil {
			f.work = &store.Work{
				Key: store.WorkKey{WorkspaceID: workspace, WorkID: bigWork}, Channel: channel, Container: m.Container,
				Initiator: partyA, Target: partyB, State: core.WorkSubmitted, OpenedSeq: m.Seq, UpdatedSeq: m.Seq, UpdatedAt: now,
			}
			c.Works = []*store.Work{f.work}
		}
		c.Messages = append(c.Messages, m)
		for _, r := range f.recipients {
			f.sent = append(f.sent, store.NewDelivery{
				ID: core.DeliveryID{Seq: m.Seq, Recipient: r}, Position: m.Seq, Deadline: now.Add(24 * time.Hour),
			})
		}
		f.payloadBytes += int64(len(m.Payload))
	}
	c.Deliveries = f.sent
	return c
}

// message is the next message and its sender. The big conversations are spread
// evenly over the history.
func (f *filler) message(now time.Time) (store.Message, string) {
	m := store.Message{
		Seq: f.seq, Channel: channel, Kind: core.KindSay, Carrier: linkName(0), CommittedAt: now,
		KnownUntil: now.Add(5 * time.Minute), Container: core.Container{Surface: core.SurfaceThread},
	}
	every := max(4, int64(f.total/inEachBig))
	var raw []byte
	from := partyA
	big := conversations()
	switch f.seq % every {
	case 0:
		m.Container.ID = bigThread
		_, raw = big[1].draw(&f.bench.mint)
	case 1:
		m.Container = core.Container{Surface: core.SurfaceDirect, ID: bigRoom()}
		_, raw = big[2].draw(&f.bench.mint)
	case 2:
		m.Container.ID, m.WorkID = workThread, bigWork
		_, raw = big[3].draw(&f.bench.mint)
	default:
		m.Container.ID = fmt.Sprintf("thread_old_%04d", f.seq%oldThreads)
		from = fmt.Sprintf("peer-%d", f.seq%peers)
		_, raw = f.bench.mint.sayIn(from, inThread(m.Container.ID))
	}
	m.Payload = raw
	m.Key = store.Key{WorkspaceID: workspace, ID: idOf(raw)}
	m.Content = sha256.Sum256(raw)
	return m, from
}
