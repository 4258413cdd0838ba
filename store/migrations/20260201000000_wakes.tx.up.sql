-- Hosted agents, their participations, and the wakes of the live ones. Every
-- statement can be run again, as in the first schema.

-- What an agent's participation was resolved to. Rows never change; the latest
-- of an agent is the one that counts.
CREATE TABLE IF NOT EXISTS participations (
  id           INTEGER PRIMARY KEY,
  carrier      TEXT    NOT NULL,
  agent        TEXT    NOT NULL,
  -- The agent's peer; NULL for a local agent that names none.
  recipient_id INTEGER REFERENCES recipients (id),
  resolved     TEXT    NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT;

--bun:split

CREATE INDEX IF NOT EXISTS participations_by_agent ON participations (carrier, agent, id);

--bun:split

-- The queue of admitted work. kind is network_wake. state is 0 queued,
-- 1 running, 2 succeeded, 3 failed, 4 canceled, 5 deadline_exceeded.
CREATE TABLE IF NOT EXISTS task_runs (
  id               INTEGER PRIMARY KEY,
  kind             TEXT    NOT NULL,
  recipient_id     INTEGER NOT NULL REFERENCES recipients (id),
  participation_id INTEGER NOT NULL REFERENCES participations (id),
  state            INTEGER NOT NULL DEFAULT 0,
  root             TEXT    NOT NULL,
  depth            INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  -- Until when messages of the same root join.
  window_ends      INTEGER NOT NULL,
  -- Before when it is not started again.
  not_before       INTEGER NOT NULL DEFAULT 0,
  attempts         INTEGER NOT NULL DEFAULT 0,
  -- How often it was started again because the gateway had ended under it.
  reruns           INTEGER NOT NULL DEFAULT 0,
  started_at       INTEGER NOT NULL DEFAULT 0,
  ended_at         INTEGER NOT NULL DEFAULT 0,
  detail           TEXT
) STRICT;

--bun:split

CREATE UNIQUE INDEX IF NOT EXISTS task_runs_open ON task_runs (recipient_id) WHERE state < 2;

--bun:split

CREATE INDEX IF NOT EXISTS task_runs_by_recipient ON task_runs (recipient_id, id);

--bun:split

-- What each wake costs its participation: the reservation while it is open, and
-- then what it was charged. usage is 0 reserved, 1 actual, 2 usage_unavailable.
CREATE TABLE IF NOT EXISTS wake_ledger (
  run_id           INTEGER PRIMARY KEY REFERENCES task_runs (id),
  participation_id INTEGER NOT NULL REFERENCES participations (id),
  usage            INTEGER NOT NULL DEFAULT 0,
  reserved_wall    INTEGER NOT NULL,
  reserved_input   INTEGER NOT NULL,
  reserved_output  INTEGER NOT NULL,
  wall             INTEGER NOT NULL,
  input            INTEGER NOT NULL,
  output           INTEGER NOT NULL,
  reported_input   INTEGER,
  reported_output  INTEGER
) STRICT;

--bun:split

CREATE INDEX IF NOT EXISTS wake_ledger_by_participation ON wake_ledger (participation_id);

--bun:split

-- The messages that admitted, joined or caused a wake.
CREATE TABLE IF NOT EXISTS wake_sources (
  seq    INTEGER NOT NULL,
  run_id INTEGER NOT NULL REFERENCES task_runs (id),
  PRIMARY KEY (seq, run_id)
) STRICT, WITHOUT ROWID;

--bun:split

CREATE INDEX IF NOT EXISTS wake_sources_by_run ON wake_sources (run_id, seq);

--bun:split

-- The envelopes that were written in a wake, parked ones too, by the key of their
-- id.
CREATE TABLE IF NOT EXISTS wake_products (
  key    BLOB    PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES task_runs (id)
) STRICT, WITHOUT ROWID;

--bun:split

CREATE INDEX IF NOT EXISTS wake_products_by_run ON wake_products (run_id);

--bun:split

-- Why a message woke somebody not: for each recipient its id as a varint and one
-- byte for the reason.
CREATE TABLE IF NOT EXISTS wake_skips (
  seq   INTEGER PRIMARY KEY,
  skips BLOB    NOT NULL
) STRICT;

--bun:split

-- What was skipped as in_flight and is weighed once more when the open wake of
-- the recipient is settled.
CREATE TABLE IF NOT EXISTS wake_waiting (
  recipient_id INTEGER NOT NULL REFERENCES recipients (id),
  seq          INTEGER NOT NULL,
  root         TEXT    NOT NULL,
  depth        INTEGER NOT NULL,
  PRIMARY KEY (recipient_id, seq)
) STRICT, WITHOUT ROWID;
