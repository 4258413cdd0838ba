package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// nameCacheSize bounds how many names of each sort are remembered.
const nameCacheSize = 10_000

type channelKey struct {
	workspace int64
	channel   string
}

// nameCache remembers the ids of names that rows repeat. Ids never change, so
// nothing in it grows stale.
type nameCache struct {
	mu         sync.RWMutex
	workspaces map[string]int64
	channels   map[channelKey]int64
	names      map[string]int64
}

func newNameCache() *nameCache {
	return &nameCache{workspaces: map[string]int64{}, channels: map[channelKey]int64{}, names: map[string]int64{}}
}

// adopt takes over what a committed transaction found out.
func (c *nameCache) adopt(fresh *nameCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	merge(c.workspaces, fresh.workspaces)
	merge(c.channels, fresh.channels)
	merge(c.names, fresh.names)
}

func merge[K comparable](into, from map[K]int64) {
	if len(into)+len(from) > nameCacheSize {
		clear(into)
	}
	maps.Copy(into, from)
}

// lookup finds the id of a key in the transaction's own names, then in the
// store's.
func lookup[K comparable](tx *Tx, of func(*nameCache) map[K]int64, key K) (int64, bool) {
	if id, ok := of(tx.names)[key]; ok {
		return id, true
	}
	shared := tx.store.names
	shared.mu.RLock()
	defer shared.mu.RUnlock()
	id, ok := of(shared)[key]
	return id, ok
}

// named is a table of names: how to find one and how to make one.
type named struct{ find, insert string }

// intern gives the id of a name, 0 when there is none and it is not to be made.
func intern[K comparable](ctx context.Context, tx *Tx, of func(*nameCache) map[K]int64, key K, create bool, t named, args ...any) (int64, error) {
	if id, ok := lookup(tx, of, key); ok {
		return id, nil
	}
	var id int64
	err := tx.tx.Tx.QueryRowContext(ctx, t.find, args...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		if !create {
			return 0, nil
		}
		err = tx.tx.Tx.QueryRowContext(ctx, t.insert, args...).Scan(&id)
	}
	if err != nil {
		return 0, fmt.Errorf("find the id of a name: %w", err)
	}
	of(tx.names)[key] = id
	return id, nil
}

func (tx *Tx) workspaceID(ctx context.Context, name string, create bool) (int64, error) {
	return intern(ctx, tx, func(c *nameCache) map[string]int64 { return c.workspaces }, name, create, named{
		find:   "SELECT id FROM workspaces WHERE name = ?",
		insert: "INSERT INTO workspaces (name) VALUES (?) RETURNING id",
	}, name)
}

func (tx *Tx) channelID(ctx context.Context, workspace, channel string, create bool) (int64, error) {
	ws, err := tx.workspaceID(ctx, workspace, create)
	if err != nil || ws == 0 {
		return 0, err
	}
	return intern(ctx, tx, func(c *nameCache) map[channelKey]int64 { return c.channels }, channelKey{ws, channel}, create, named{
		find:   "SELECT id FROM channels WHERE workspace_id = ? AND name = ?",
		insert: "INSERT INTO channels (workspace_id, name) VALUES (?, ?) RETURNING id",
	}, ws, channel)
}

// nameID gives the id of a carrier's name or of a kind of acknowledgement.
func (tx *Tx) nameID(ctx context.Context, name string) (int64, error) {
	return intern(ctx, tx, func(c *nameCache) map[string]int64 { return c.names }, name, true, named{
		find:   "SELECT id FROM names WHERE name = ?",
		insert: "INSERT INTO names (name) VALUES (?) RETURNING id",
	}, name)
}
