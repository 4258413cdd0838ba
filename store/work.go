package store

import (
	"context"
	"database/sql"

	"github.com/compozy-gateway/gateway/core"
)

// askWorks runs a query over works whose parameters are (workspace, name).
func (tx *Tx) askWorks(ctx context.Context, keys []WorkKey, b bulk, scan func(map[int64]string, *sql.Rows) error) error {
	names := map[int64]string{}
	want := newWants[WorkKey](len(keys), 2)
	for _, k := range keys {
		if !want.first(k) {
			continue
		}
		ws, err := tx.workspaceID(ctx, k.WorkspaceID, false)
		if err != nil {
			return err
		}
		if ws != 0 {
			names[ws] = k.WorkspaceID
			want.args = append(want.args, ws, k.WorkID)
		}
	}
	return tx.query(ctx, b, want.args, func(rows *sql.Rows) error { return scan(names, rows) })
}

// findWorks looks up ids.
func (tx *Tx) findWorks(ctx context.Context, keys []WorkKey) error {
	return tx.askWorks(ctx, keys, bulk{
		head: "SELECT id, workspace_id, name FROM works WHERE (workspace_id, name) IN (VALUES ", tail: ")", columns: 2,
	}, func(names map[int64]string, rows *sql.Rows) error {
		var id, ws int64
		var name string
		if err := rows.Scan(&id, &ws, &name); err != nil {
			return err
		}
		tx.works[WorkKey{names[ws], name}] = id
		return nil
	})
}

func (tx *Tx) loadWorks(ctx context.Context, needs Needs, s *State) error {
	return tx.askWorks(ctx, needs.Works, bulk{
		head: "SELECT w.id, w.workspace_id, w.name, COALESCE(ch.name, ''), COALESCE(c.surface, 0), COALESCE(c.name, ''), " +
			"COALESCE(w.initiator, ''), COALESCE(w.target, ''), w.state, w.opened_seq, w.updated_seq, w.updated_at " +
			"FROM works w LEFT JOIN containers c ON c.id = w.container_id LEFT JOIN channels ch ON ch.id = c.channel_id " +
			"WHERE (w.workspace_id, w.name) IN (VALUES ",
		tail: ")", columns: 2,
	}, func(names map[int64]string, rows *sql.Rows) error {
		var w Work
		var id, ws, surface, state, at int64
		var name string
		if err := rows.Scan(&id, &ws, &name, &w.Channel, &surface, &w.Container.ID, &w.Initiator, &w.Target,
			&state, &w.OpenedSeq, &w.UpdatedSeq, &at); err != nil {
			return err
		}
		w.Key = WorkKey{names[ws], name}
		tx.works[w.Key] = id
		if state == 0 {
			return nil
		}
		w.Container.Surface = decode(surfaces(), surface)
		w.State, w.UpdatedAt = decode(workStates(), state), instant(at)
		s.Works[w.Key] = &w
		return nil
	})
}

// applyWorks runs after applyContainers, so that the containers have ids.
func (tx *Tx) applyWorks(ctx context.Context, c *Changes) error {
	if len(c.Works) == 0 {
		return nil
	}
	var missing []WorkKey
	var containers []ContainerKey
	for _, w := range c.Works {
		if tx.works[w.Key] == 0 {
			missing = append(missing, w.Key)
		}
		if key := w.container(); tx.containers[key] == 0 {
			containers = append(containers, key)
		}
	}
	if err := tx.findWorks(ctx, missing); err != nil {
		return err
	}
	if err := tx.findContainers(ctx, containers); err != nil {
		return err
	}
	args := make([]any, 0, len(c.Works)*10)
	for _, w := range c.Works {
		ws, err := tx.workspaceID(ctx, w.Key.WorkspaceID, true)
		if err != nil {
			return err
		}
		id := tx.works[w.Key]
		if id == 0 {
			id = tx.store.lastWork.Add(1)
			tx.works[w.Key] = id
		}
		args = append(args, id, ws, w.Key.WorkID, optionalID(tx.containers[w.container()]), w.Initiator, w.Target,
			encode(workStates(), w.State), w.OpenedSeq, w.UpdatedSeq, millis(w.UpdatedAt))
	}
	_, err := tx.exec(ctx, bulk{
		head: "WITH row (id, workspace_id, name, container_id, initiator, target, state, opened_seq, updated_seq, updated_at) AS (VALUES ",
		tail: ") INSERT INTO works (id, workspace_id, name, container_id, initiator, target, state, opened_seq, updated_seq, updated_at)" +
			" SELECT * FROM row WHERE true" +
			" ON CONFLICT (id) DO UPDATE SET container_id = excluded.container_id, initiator = excluded.initiator," +
			" target = excluded.target, state = excluded.state, opened_seq = excluded.opened_seq," +
			" updated_seq = excluded.updated_seq, updated_at = excluded.updated_at",
		columns: 10,
	}, args)
	return err
}

func (w *Work) container() ContainerKey {
	return ContainerKey{WorkspaceID: w.Key.WorkspaceID, Channel: w.Channel, Container: w.Container}
}

// Work gives one unit of work, or core.ErrNotFound.
func (s *Store) Work(ctx context.Context, workspace, workID string) (*core.WorkView, error) {
	v := core.WorkView{WorkspaceID: workspace, WorkID: workID}
	var surface, state, at int64
	err := s.readers.DB.QueryRowContext(ctx,
		"SELECT ch.name, c.surface, c.name, w.initiator, w.target, w.state, w.opened_seq, w.updated_seq, w.updated_at "+
			"FROM works w JOIN workspaces ws ON ws.id = w.workspace_id JOIN containers c ON c.id = w.container_id "+
			"JOIN channels ch ON ch.id = c.channel_id WHERE ws.name = ? AND w.name = ? AND w.state <> 0",
		workspace, workID).Scan(&v.Channel, &surface, &v.ContainerID, &v.Initiator, &v.Target, &state,
		&v.OpenedSeq, &v.UpdatedSeq, &at)
	if err != nil {
		return nil, notFound("read work", err)
	}
	v.Surface, v.State, v.UpdatedAt = decode(surfaces(), surface), decode(workStates(), state), instant(at)
	return &v, nil
}
