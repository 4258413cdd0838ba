package store

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
)

// maxID is the longest id that a message can have, in bytes. A receipt that
// speaks of a longer one speaks of nothing.
const maxID = 256

func (tx *Tx) applyMessages(ctx context.Context, c *Changes) error {
	if len(c.Messages) == 0 {
		return nil
	}
	if err := tx.placeContainers(ctx, c.Messages); err != nil {
		return err
	}
	if err := tx.placeWorks(ctx, c.Messages); err != nil {
		return err
	}
	args := make([]any, 0, len(c.Messages)*13)
	for i := range c.Messages {
		m := &c.Messages[i]
		channel, err := tx.channelID(ctx, m.Key.WorkspaceID, m.Channel, true)
		if err != nil {
			return err
		}
		carrier, err := tx.nameID(ctx, m.Carrier)
		if err != nil {
			return err
		}
		var container, work any
		if m.Container != (core.Container{}) {
			container = tx.containers[containerOf(m)]
		}
		if m.WorkID != "" {
			work = tx.works[WorkKey{m.Key.WorkspaceID, m.WorkID}]
		}
		var forID any
		if m.ForID != "" && len(m.ForID) <= maxID {
			forID = m.ForID
		}
		args = append(args, m.Seq, channel, container, work, encode(kinds(), m.Kind), carrier,
			int64(m.Arrival), millis(m.CommittedAt), forID, packIgnored(m.Ignored), m.Content[:], millis(m.KnownUntil), m.Payload)
	}
	_, err := tx.exec(ctx, bulk{
		head: "INSERT OR FAIL INTO messages (seq, channel_id, container_id, work_id, kind, carrier_id, arrival, " +
			"committed_at, for_id, ignored, content, known_until, payload) VALUES ",
		columns: 13,
	}, args)
	return err
}

func containerOf(m *Message) ContainerKey {
	return ContainerKey{WorkspaceID: m.Key.WorkspaceID, Channel: m.Channel, Container: m.Container}
}

// placeContainers sees to it that the container of each message has an id, also
// where the message binds nothing.
func (tx *Tx) placeContainers(ctx context.Context, messages []Message) error {
	var missing []ContainerKey
	for i := range messages {
		m := &messages[i]
		if m.Container == (core.Container{}) {
			continue
		}
		if key := containerOf(m); tx.containers[key] == 0 {
			missing = append(missing, key)
		}
	}
	if err := tx.findContainers(ctx, missing); err != nil {
		return err
	}
	for _, key := range missing {
		if tx.containers[key] != 0 {
			continue
		}
		channel, err := tx.channelID(ctx, key.WorkspaceID, key.Channel, true)
		if err != nil {
			return err
		}
		id := tx.store.lastContainer.Add(1)
		if _, err := tx.run(ctx, "INSERT INTO containers (id, channel_id, surface, name) VALUES (?, ?, ?, ?)",
			id, channel, encode(surfaces(), key.Surface), key.ID); err != nil {
			return err
		}
		tx.containers[key] = id
	}
	return nil
}

// placeWorks does the same for works.
func (tx *Tx) placeWorks(ctx context.Context, messages []Message) error {
	var missing []WorkKey
	for i := range messages {
		m := &messages[i]
		if key := (WorkKey{m.Key.WorkspaceID, m.WorkID}); m.WorkID != "" && tx.works[key] == 0 {
			missing = append(missing, key)
		}
	}
	if err := tx.findWorks(ctx, missing); err != nil {
		return err
	}
	for _, key := range missing {
		if tx.works[key] != 0 {
			continue
		}
		ws, err := tx.workspaceID(ctx, key.WorkspaceID, true)
		if err != nil {
			return err
		}
		id := tx.store.lastWork.Add(1)
		if _, err := tx.run(ctx, "INSERT INTO works (id, workspace_id, name) VALUES (?, ?, ?)", id, ws, key.WorkID); err != nil {
			return err
		}
		tx.works[key] = id
	}
	return nil
}
