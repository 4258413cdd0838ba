package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// noon is when the tests take place.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: dir, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t testing.TB, s *Store, fn func(ctx context.Context, tx *Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func apply(t testing.TB, s *Store, c *Changes) {
	t.Helper()
	write(t, s, func(ctx context.Context, tx *Tx) error { return tx.Apply(ctx, c) })
}

func load(t testing.TB, s *Store, n Needs) *State {
	t.Helper()
	var state *State
	write(t, s, func(ctx context.Context, tx *Tx) (err error) {
		state, err = tx.Load(ctx, n)
		return err
	})
	return state
}

// ensure makes a recipient and gives its id.
func ensure(t testing.TB, s *Store, r core.Recipient) int64 {
	t.Helper()
	var row RecipientRow
	write(t, s, func(ctx context.Context, tx *Tx) (err error) {
		row, err = tx.EnsureRecipient(ctx, r)
		return err
	})
	return row.ID
}

const (
	testWorkspace = "ws-1"
	testChannel   = "general"
)

func testKey(id string) Key { return Key{testWorkspace, id} }

func threadKey(name string) ContainerKey {
	return ContainerKey{testWorkspace, testChannel, core.Container{Surface: core.SurfaceThread, ID: name}}
}

func directKey(name string) ContainerKey {
	return ContainerKey{testWorkspace, testChannel, core.Container{Surface: core.SurfaceDirect, ID: name}}
}

func envelope(id string) []byte {
	return fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":%q,"kind":"say","channel":%q,`+
		`"from":"a.one","ts":1767355200,"body":{"text":"hello"}}`, id, testWorkspace, testChannel)
}

// say is a message of a thread, empty for none.
func say(seq int64, id, thread string) Message {
	m := Message{
		Seq: seq, Key: testKey(id), Channel: testChannel, Kind: core.KindSay, Carrier: "mqtt", CommittedAt: noon,
		Content: sha256.Sum256([]byte(id)), KnownUntil: noon.Add(5 * time.Minute), Payload: envelope(id),
	}
	if thread != "" {
		m.Container = core.Container{Surface: core.SurfaceThread, ID: thread}
	}
	return m
}

func deliverTo(seq int64, recipients ...int64) []NewDelivery {
	var list []NewDelivery
	for _, r := range recipients {
		list = append(list, NewDelivery{
			ID: core.DeliveryID{Seq: seq, Recipient: r}, Position: seq, Deadline: noon.Add(24 * time.Hour),
		})
	}
	return list
}

func pending(t testing.TB, s *Store, recipient int64) []Pending {
	t.Helper()
	list, err := s.Pending(t.Context(), recipient, 0, noon, 1000, 1<<30)
	if err != nil {
		t.Fatalf("pending: %v", err)
	}
	return list
}

func integrity(t testing.TB, s *Store) {
	t.Helper()
	var verdict string
	if err := s.readers.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity check: %q, %v", verdict, err)
	}
	if err := scanRows(t.Context(), s.readers, func(*sql.Rows) error { return errors.New("a foreign key points nowhere") },
		"PRAGMA foreign_key_check"); err != nil {
		t.Fatal(err)
	}
}

// dump shows a state with what its pointers point to.
func dump(s *State) string {
	var b strings.Builder
	for k, v := range s.Keys {
		fmt.Fprintf(&b, "key %v: %+v\n", k, *v)
	}
	for k, v := range s.Works {
		fmt.Fprintf(&b, "work %v: %+v\n", k, *v)
	}
	for k, v := range s.Containers {
		fmt.Fprintf(&b, "container %v: %+v\n", k, *v)
	}
	for k, v := range s.Peers {
		fmt.Fprintf(&b, "peer %v: %+v\n", k, *v)
	}
	for k, v := range s.Parked {
		for _, p := range v {
			fmt.Fprintf(&b, "parked %v: %+v\n", k, *p)
		}
	}
	fmt.Fprintf(&b, "members %v\n", s.Members)
	return b.String()
}
