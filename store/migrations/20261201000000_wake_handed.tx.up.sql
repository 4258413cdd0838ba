-- The messages that each wake was given at its start: some of those that it is
-- for, and what came along. A wake that is run again is given the same.
CREATE TABLE IF NOT EXISTS wake_handed (
  seq    INTEGER NOT NULL,
  run_id INTEGER NOT NULL REFERENCES task_runs (id),
  PRIMARY KEY (seq, run_id)
) STRICT, WITHOUT ROWID;

--bun:split

CREATE INDEX IF NOT EXISTS wake_handed_by_run ON wake_handed (run_id, seq);
