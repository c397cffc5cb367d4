-- The first schema. Times are integers in milliseconds; *_tick are of the lease clock.

CREATE TABLE lane (
  name         TEXT PRIMARY KEY,
  concurrency  INTEGER NOT NULL DEFAULT 1 CHECK (concurrency >= 1),
  delay_ms     INTEGER NOT NULL DEFAULT 0 CHECK (delay_ms >= 0),
  last_end_ms  INTEGER,
  served_ms    INTEGER
) STRICT;

-- Each source of a pause sets and clears its own: a person, a program, a guard.
CREATE TABLE lane_pause (
  lane      TEXT NOT NULL,
  source    TEXT NOT NULL,
  "by"      TEXT NOT NULL,
  why       TEXT NOT NULL,
  since_ms  INTEGER NOT NULL,
  until_ms  INTEGER,
  PRIMARY KEY (lane, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  lane          TEXT NOT NULL,
  task          TEXT NOT NULL,
  app           TEXT NOT NULL,
  key           TEXT,
  title         TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  priority      INTEGER NOT NULL,
  position      INTEGER NOT NULL,
  run_at_ms     INTEGER,
  held_ms       INTEGER,
  held_by       TEXT,
  forced_ms     INTEGER,
  revision      INTEGER NOT NULL DEFAULT 1,
  run_revision  INTEGER NOT NULL DEFAULT 0,
  attempt       INTEGER NOT NULL DEFAULT 0,
  failures      INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  slot          INTEGER,
  lease         TEXT,
  worker        TEXT,
  child_pid     INTEGER,
  child_start   INTEGER,
  beat_tick     INTEGER,
  moved_tick    INTEGER,
  start_tick    INTEGER,
  moves         INTEGER NOT NULL DEFAULT 0,
  publishing    TEXT,
  wish          TEXT,
  wish_by       TEXT,
  wish_ms       INTEGER,
  outcome       TEXT,
  done          REAL,
  total         REAL,
  unit          TEXT NOT NULL DEFAULT '',
  note          TEXT NOT NULL DEFAULT '',
  error         TEXT,
  cause         TEXT,
  parent        INTEGER,
  ordinal       TEXT,
  submitted_ms  INTEGER NOT NULL,
  submitted_by  TEXT NOT NULL,
  started_ms    INTEGER,
  start_done    REAL,
  ended_ms      INTEGER,
  ended_by      TEXT,
  worked_ms     INTEGER NOT NULL DEFAULT 0,
  kept          REAL NOT NULL DEFAULT 0,
  hidden_ms     INTEGER,
  version       INTEGER NOT NULL DEFAULT 1,
  last_event    INTEGER,
  options       TEXT NOT NULL,
  -- What can be large stands last, and its beginning before it: a list reads no large value.
  args_brief    TEXT NOT NULL GENERATED ALWAYS AS (substr(args, 1, 500)) STORED,
  args_size     INTEGER NOT NULL GENERATED ALWAYS AS (length(args)) STORED,
  result_brief  TEXT GENERATED ALWAYS AS (substr(result, 1, 500)) STORED,
  result_size   INTEGER GENERATED ALWAYS AS (length(result)) STORED,
  args          TEXT NOT NULL,
  result        TEXT,
  -- A NULL would pass the unique index below, so a running job always has both.
  CHECK (state <> 'running' OR (slot IS NOT NULL AND lease IS NOT NULL))
) STRICT;

-- The guarantee: two running jobs cannot hold one slot, nor two live jobs one key.
CREATE UNIQUE INDEX job_slot ON job (lane, slot) WHERE state = 'running';
CREATE UNIQUE INDEX job_key ON job (lane, key) WHERE key IS NOT NULL AND state IN ('queued', 'running');
-- The line of a lane: only what may be claimed now. Not-due jobs wait in an index of their own.
CREATE INDEX job_line ON job (lane, priority DESC, position)
  WHERE state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL;
CREATE INDEX job_held ON job (lane, priority DESC, position) WHERE state = 'queued' AND held_ms IS NOT NULL;
CREATE INDEX job_due ON job (lane, run_at_ms) WHERE state = 'queued' AND run_at_ms IS NOT NULL;
CREATE INDEX job_forced ON job (lane, forced_ms) WHERE state = 'queued' AND forced_ms IS NOT NULL;
-- What ended and is still listed: cleared jobs leave it, so that no look at the last ones walks over them.
CREATE INDEX job_ended ON job (lane, ended_ms, id) WHERE ended_ms IS NOT NULL AND hidden_ms IS NULL;
-- The same by state: lists of one state, and how many there are.
CREATE INDEX job_state ON job (lane, state, id) WHERE ended_ms IS NOT NULL AND hidden_ms IS NULL;
-- All that ended, cleared or not: how long a task usually takes, and how much was done when.
CREATE INDEX job_usual ON job (task, state, ended_ms) WHERE ended_ms IS NOT NULL;
-- What a run submitted, by its place in the run: a resumed parent finds its children again, ended ones too.
CREATE UNIQUE INDEX job_parent ON job (parent, ordinal) WHERE parent IS NOT NULL;

CREATE TABLE step (
  job         INTEGER NOT NULL,
  name        TEXT NOT NULL,
  weight      REAL NOT NULL,
  result      TEXT,
  started_ms  INTEGER NOT NULL,
  ended_ms    INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  revision    INTEGER NOT NULL,
  PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;

-- Each event of a job names the one before it (prev), and the job its last: a job's history without an index.
CREATE TABLE event (
  seq      INTEGER PRIMARY KEY AUTOINCREMENT,
  job      INTEGER,
  lane     TEXT,
  at_ms    INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  attempt  INTEGER,
  "by"     TEXT NOT NULL,
  detail   TEXT NOT NULL,
  prev     INTEGER
) STRICT;

-- Progress at the end of each minute of a run, for pace and time left.
CREATE TABLE pace (
  job        INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  minute_ms  INTEGER NOT NULL,
  done       REAL NOT NULL,
  PRIMARY KEY (job, attempt, minute_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
  id          TEXT PRIMARY KEY,
  host        TEXT NOT NULL,
  boot        TEXT NOT NULL,
  time_ns     TEXT NOT NULL,
  pid_ns      TEXT NOT NULL,
  pid         INTEGER NOT NULL,
  version     TEXT NOT NULL,
  lanes       TEXT NOT NULL,
  lease_ms    INTEGER NOT NULL,
  started_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What "undo" can take back: the last removals, clears, moves and retries, with how things were.
CREATE TABLE undo (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms  INTEGER NOT NULL,
  "by"   TEXT NOT NULL,
  kind   TEXT NOT NULL,
  jobs   TEXT NOT NULL
) STRICT;

-- Requests that were done, by the key their asker gave: asked again, each is answered and not done again.
CREATE TABLE request (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  key    TEXT NOT NULL UNIQUE,
  what   TEXT NOT NULL,
  at_ms  INTEGER NOT NULL,
  jobs   TEXT NOT NULL,
  undo   INTEGER
) STRICT;
