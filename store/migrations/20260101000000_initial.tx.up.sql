-- The first schema. Every statement can be run again, because a process that
-- dies between the commit and the mark in bun_migrations runs it again.
--
-- Instants are INTEGER milliseconds UTC, 0 meaning none. Small codes are listed
-- in models.go; -1 is what has none. The counters 0 and 1 and NULL take no room in a row, which is
-- why the commonest states have those codes.

-- One row: what names this database, and its counters.
CREATE TABLE IF NOT EXISTS gateway (
  id             INTEGER PRIMARY KEY CHECK (id = 1),
  instance_id    TEXT    NOT NULL,
  secret         BLOB    NOT NULL,
  created_at     INTEGER NOT NULL,
  -- The highest number ever used as a seq or a position.
  last_seq       INTEGER NOT NULL DEFAULT 0,
  -- The highest seq whose message retention has deleted, and the highest whose
  -- id was forgotten.
  pruned_through    INTEGER NOT NULL DEFAULT 0,
  forgotten_through INTEGER NOT NULL DEFAULT 0,
  -- The rows of recent_ids up to this seq are on their way into ids, 0 for none,
  -- and those whose key is not greater than merged_key have got there.
  frozen_through    INTEGER NOT NULL DEFAULT 0,
  merged_key        BLOB    NOT NULL DEFAULT x''
) STRICT;

--bun:split

-- Names that rows repeat are kept once.
CREATE TABLE IF NOT EXISTS workspaces (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

--bun:split

CREATE TABLE IF NOT EXISTS channels (
  id           INTEGER PRIMARY KEY,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  name         TEXT    NOT NULL,
  UNIQUE (workspace_id, name)
) STRICT;

--bun:split

-- Names of carriers, and of the kinds of acknowledgement.
CREATE TABLE IF NOT EXISTS names (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

--bun:split

-- Threads and direct rooms. A row that is not known only lends its id to
-- messages that bind nothing.
CREATE TABLE IF NOT EXISTS containers (
  id           INTEGER PRIMARY KEY,
  channel_id   INTEGER NOT NULL REFERENCES channels (id),
  surface      INTEGER NOT NULL CHECK (surface >= 0),
  name         TEXT    NOT NULL,
  known        INTEGER NOT NULL DEFAULT 0,
  peer_a       TEXT,
  peer_b       TEXT,
  participants INTEGER NOT NULL DEFAULT 0,
  messages     INTEGER NOT NULL DEFAULT 0,
  last_seq     INTEGER NOT NULL DEFAULT 0,
  last_at      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (channel_id, surface, name)
) STRICT;

--bun:split

CREATE TABLE IF NOT EXISTS members (
  container_id INTEGER NOT NULL REFERENCES containers (id),
  peer         TEXT    NOT NULL,
  PRIMARY KEY (container_id, peer)
) STRICT, WITHOUT ROWID;

--bun:split

-- Units of work. A row of state 0 only lends its id to messages that open
-- nothing.
CREATE TABLE IF NOT EXISTS works (
  id           INTEGER PRIMARY KEY,
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  name         TEXT    NOT NULL,
  container_id INTEGER REFERENCES containers (id),
  initiator    TEXT,
  target       TEXT,
  state        INTEGER NOT NULL DEFAULT 0 CHECK (state >= 0),
  opened_seq   INTEGER NOT NULL DEFAULT 0,
  updated_seq  INTEGER NOT NULL DEFAULT 0,
  updated_at   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workspace_id, name)
) STRICT;

--bun:split

-- Who a delivery can be for: a link (peer is empty) or a peer of a channel.
CREATE TABLE IF NOT EXISTS recipients (
  id           INTEGER PRIMARY KEY,
  carrier      TEXT    NOT NULL,
  link         TEXT    NOT NULL,
  workspace    TEXT    NOT NULL,
  channel      TEXT    NOT NULL,
  peer         TEXT    NOT NULL,
  attached     INTEGER NOT NULL DEFAULT 0,
  push         INTEGER NOT NULL DEFAULT 0
) STRICT;

--bun:split

CREATE UNIQUE INDEX IF NOT EXISTS recipients_links ON recipients (carrier, link) WHERE peer = '';

--bun:split

CREATE UNIQUE INDEX IF NOT EXISTS recipients_peers ON recipients (workspace, peer, channel) WHERE peer <> '';

--bun:split

-- Where peers were last heard.
CREATE TABLE IF NOT EXISTS peers (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  peer         TEXT    NOT NULL,
  link         INTEGER NOT NULL DEFAULT 0,
  channel_id   INTEGER,
  last_heard   INTEGER NOT NULL DEFAULT 0,
  card_link    INTEGER,
  card_at      INTEGER,
  PRIMARY KEY (workspace_id, peer)
) STRICT, WITHOUT ROWID;

--bun:split

-- Peer cards, apart from the rows that change with every message.
CREATE TABLE IF NOT EXISTS peer_cards (
  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
  peer         TEXT    NOT NULL,
  card         BLOB    NOT NULL,
  UNIQUE (workspace_id, peer)
) STRICT;

--bun:split

-- Accepted messages. The indexes on one column are in the order of seq too,
-- because an index ends with the rowid.
CREATE TABLE IF NOT EXISTS messages (
  seq          INTEGER PRIMARY KEY,
  channel_id   INTEGER NOT NULL REFERENCES channels (id) DEFERRABLE INITIALLY DEFERRED,
  container_id INTEGER,
  work_id      INTEGER,
  kind         INTEGER NOT NULL CHECK (kind >= 0),
  carrier_id   INTEGER NOT NULL,
  arrival      INTEGER NOT NULL,
  committed_at INTEGER NOT NULL,
  for_id       TEXT,
  ignored      BLOB,
  content      BLOB    NOT NULL,
  known_until  INTEGER NOT NULL,
  payload      BLOB    NOT NULL
) STRICT;

--bun:split

CREATE INDEX IF NOT EXISTS messages_by_channel ON messages (channel_id);

--bun:split

CREATE INDEX IF NOT EXISTS messages_by_container ON messages (container_id) WHERE container_id IS NOT NULL;

--bun:split

CREATE INDEX IF NOT EXISTS messages_by_work ON messages (work_id) WHERE work_id IS NOT NULL;

--bun:split

CREATE INDEX IF NOT EXISTS messages_by_for_id ON messages (for_id) WHERE for_id IS NOT NULL;

--bun:split

-- Every id under which a message was accepted, by its key: see ids.go. It is
-- written in the order of the keys alone, so that many share a page. A row whose
-- seq is in neither messages nor lingering is dead, and its id unknown.
CREATE TABLE IF NOT EXISTS ids (
  key BLOB    PRIMARY KEY,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

--bun:split

-- The latest of them, as they came, until they are merged into ids.
CREATE TABLE IF NOT EXISTS recent_ids (
  seq INTEGER PRIMARY KEY,
  key BLOB    NOT NULL
) STRICT;

--bun:split

-- Bloom filters over ids: see ids_filter.go.
CREATE TABLE IF NOT EXISTS id_filter (
  part INTEGER PRIMARY KEY,
  held INTEGER NOT NULL,
  bits BLOB    NOT NULL
) STRICT;

--bun:split

-- What is kept of a message that was deleted while its id lives on.
CREATE TABLE IF NOT EXISTS lingering (
  seq          INTEGER PRIMARY KEY,
  key          BLOB    NOT NULL,
  content      BLOB    NOT NULL,
  committed_at INTEGER NOT NULL,
  known_until  INTEGER NOT NULL
) STRICT;

--bun:split

-- Deliveries, and while pending (state 0) the outbox. position and deadline
-- are cleared when a delivery ends, so that its row hardly grows by its end.
-- detail is what the carrier said last: with its acknowledgement, else with the
-- last failure.
CREATE TABLE IF NOT EXISTS deliveries (
  seq          INTEGER NOT NULL,
  recipient_id INTEGER NOT NULL REFERENCES recipients (id) DEFERRABLE INITIALLY DEFERRED,
  position     INTEGER NOT NULL,
  state        INTEGER NOT NULL DEFAULT 0 CHECK (state >= 0),
  attempts     INTEGER NOT NULL DEFAULT 0,
  deadline     INTEGER NOT NULL,
  direct       INTEGER NOT NULL DEFAULT 0,
  next_attempt INTEGER NOT NULL DEFAULT 0,
  ended_at     INTEGER NOT NULL DEFAULT 0,
  ack_kind     INTEGER NOT NULL DEFAULT 0,
  to_peer      TEXT,
  detail       TEXT,
  reason       TEXT,
  PRIMARY KEY (seq, recipient_id)
) STRICT, WITHOUT ROWID;

--bun:split

-- The deadline is there so that late ones are found without reading rows.
CREATE INDEX IF NOT EXISTS deliveries_pending ON deliveries (recipient_id, position, deadline) WHERE state = 0;

--bun:split

CREATE INDEX IF NOT EXISTS deliveries_dead ON deliveries (seq, recipient_id) WHERE state = 3;

--bun:split

-- Receipts and traces that wait for the opener of their work. Their ids are
-- known by these rows alone.
CREATE TABLE IF NOT EXISTS parked (
  id              INTEGER PRIMARY KEY,
  key             BLOB    NOT NULL UNIQUE,
  workspace_id    INTEGER NOT NULL REFERENCES workspaces (id),
  message_id      TEXT    NOT NULL,
  work            TEXT    NOT NULL,
  sender          TEXT    NOT NULL,
  target          TEXT    NOT NULL,
  carrier_id      INTEGER NOT NULL REFERENCES names (id),
  arrival         INTEGER NOT NULL,
  address_class   TEXT,
  address_space   TEXT,
  address_channel TEXT,
  address_token   TEXT,
  received_at     INTEGER NOT NULL,
  fresh_until     INTEGER NOT NULL,
  known_until     INTEGER NOT NULL,
  content         BLOB    NOT NULL,
  payload         BLOB    NOT NULL
) STRICT;

--bun:split

CREATE INDEX IF NOT EXISTS parked_by_work ON parked (workspace_id, work);

--bun:split

CREATE INDEX IF NOT EXISTS parked_by_freshness ON parked (fresh_until);

--bun:split

-- Refused frames, repeats on one row. Never the content.
CREATE TABLE IF NOT EXISTS rejections (
  id            INTEGER PRIMARY KEY,
  hash          BLOB    NOT NULL,
  carrier_id    INTEGER NOT NULL,
  reason        TEXT    NOT NULL,
  size          INTEGER NOT NULL,
  claimed_space TEXT,
  claimed_id    TEXT,
  claimed_from  TEXT,
  detail        TEXT,
  count         INTEGER NOT NULL DEFAULT 1,
  first_at      INTEGER NOT NULL,
  last_at       INTEGER NOT NULL,
  UNIQUE (hash, carrier_id, reason)
) STRICT;

--bun:split

CREATE INDEX IF NOT EXISTS rejections_by_age ON rejections (last_at);
