-- Every statement of the store, by name. "{job}" is the list of a job's columns, "{brief}" the same with the
-- arguments and the result cut short (moves and lists never need them whole), "{lean}" without them (what a worker
-- reads at each scan), "{lock}" the row lock of the engine.

-- name: lane_add
INSERT INTO lane (name) VALUES (:lane) ON CONFLICT DO NOTHING

-- name: lane_get
SELECT name, concurrency, delay_ms, last_end_ms, served_ms FROM lane WHERE name = :lane {lock}

-- name: lane_all
SELECT name, concurrency, delay_ms, last_end_ms, served_ms FROM lane ORDER BY name

-- name: lane_set_concurrency
UPDATE lane SET concurrency = :concurrency WHERE name = :lane

-- name: lane_set_delay
UPDATE lane SET delay_ms = :delay_ms WHERE name = :lane

-- name: lane_ended
UPDATE lane SET last_end_ms = :now_ms, served_ms = :now_ms WHERE name = :lane

-- name: lane_clock_set_back
UPDATE lane SET last_end_ms = :now_ms WHERE name = :lane AND last_end_ms > :now_ms

-- name: lane_served
UPDATE lane SET served_ms = :now_ms WHERE name = :lane

-- name: lane_counts
SELECT
  (SELECT count(*) FROM job WHERE lane = :lane AND state = 'running') AS running,
  (SELECT count(*) FROM (SELECT 1 FROM job
    WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL LIMIT :most)) AS ready,
  (SELECT count(*) FROM (SELECT 1 FROM job
    WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL LIMIT :most)) AS held,
  (SELECT count(*) FROM (SELECT 1 FROM job
    WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND held_ms IS NULL LIMIT :most)) AS later

-- name: pause_set
INSERT INTO lane_pause (lane, source, "by", why, since_ms, until_ms)
VALUES (:lane, :source, :by, :why, :now_ms, :until_ms)
ON CONFLICT (lane, source) DO UPDATE
SET "by" = excluded."by", why = excluded.why, since_ms = excluded.since_ms, until_ms = excluded.until_ms

-- name: pause_all
SELECT source, "by", why, since_ms, until_ms FROM lane_pause WHERE lane = :lane ORDER BY since_ms, source

-- name: pause_clear
DELETE FROM lane_pause WHERE lane = :lane AND (:source IS NULL OR source = :source) RETURNING source

-- name: pause_expire
DELETE FROM lane_pause WHERE lane = :lane AND until_ms <= :now_ms RETURNING source

-- name: event_add
INSERT INTO event (job, lane, at_ms, kind, attempt, "by", detail, prev)
VALUES (:job, :lane, :at_ms, :kind, :attempt, :by, :detail, (SELECT last_event FROM job WHERE id = :job))
RETURNING seq

-- name: event_add_all
-- One event for each of these jobs; update_jobs chains them.
INSERT INTO event (job, lane, at_ms, kind, attempt, "by", detail, prev)
SELECT id, lane, :now_ms, :kind, attempt, :by, :detail, last_event FROM job
WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id

-- name: event_chain
UPDATE job SET last_event = :seq WHERE id = :job

-- name: event_after
SELECT seq, job, lane, at_ms, kind, attempt, "by", detail FROM event
WHERE seq > :after ORDER BY seq LIMIT :limit

-- name: event_last
SELECT max(seq) AS seq FROM event

-- name: event_of_job
WITH RECURSIVE chain (seq, job, lane, at_ms, kind, attempt, "by", detail, prev) AS (
  SELECT seq, job, lane, at_ms, kind, attempt, "by", detail, prev FROM event
  WHERE seq = (SELECT last_event FROM job WHERE id = :job)
  UNION ALL
  SELECT e.seq, e.job, e.lane, e.at_ms, e.kind, e.attempt, e."by", e.detail, e.prev
  FROM event e JOIN chain c ON e.seq = c.prev
)
SELECT seq, job, lane, at_ms, kind, attempt, "by", detail FROM chain
WHERE seq > :after ORDER BY seq DESC LIMIT :limit

-- name: job_add
INSERT INTO job (lane, task, app, args, key, title, state, priority, position, run_at_ms, held_ms, held_by,
                 parent, ordinal, submitted_ms, submitted_by, unit, options)
VALUES (:lane, :task, :app, :args, :key, :title, 'queued', :priority, :position, :run_at_ms, :held_ms, :held_by,
        :parent, :ordinal, :now_ms, :by, :unit, :options)
RETURNING id

-- name: job_get
SELECT {job} FROM job WHERE id = :id

-- name: job_brief
SELECT {brief} FROM job WHERE id = :id {lock}

-- name: job_of_key
SELECT {brief} FROM job
WHERE lane = :lane AND key = :key AND key IS NOT NULL AND state IN ('queued', 'running')

-- name: job_of_parent
SELECT {brief} FROM job WHERE parent = :parent AND ordinal = :ordinal AND parent IS NOT NULL

-- name: job_last
SELECT max(id) AS id FROM job

-- name: job_running
SELECT {brief} FROM job WHERE state = 'running' AND (:lane IS NULL OR lane = :lane) ORDER BY started_ms, id

-- name: job_every_run
SELECT {lean} FROM job WHERE state = 'running' ORDER BY started_ms, id

-- name: job_of_worker
-- Not by id: that order would be had by walking every job there is.
SELECT id FROM job WHERE state = 'running' AND worker = :worker ORDER BY lane, slot

-- name: job_line
SELECT {brief} FROM job
WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
ORDER BY priority DESC, position, id LIMIT :limit

-- name: job_line_after
-- In two parts, so that each begins where the page before ended and walks nothing of it.
SELECT * FROM (SELECT {brief} FROM job
  WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
    AND priority = :priority AND (position, id) > (:position, :id) ORDER BY position, id LIMIT :limit)
UNION ALL
SELECT * FROM (SELECT {brief} FROM job
  WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
    AND priority < :priority ORDER BY priority DESC, position, id LIMIT :limit)

-- name: job_held_after
SELECT * FROM (SELECT {brief} FROM job
  WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL
    AND priority = :priority AND (position, id) > (:position, :id) ORDER BY position, id LIMIT :limit)
UNION ALL
SELECT * FROM (SELECT {brief} FROM job
  WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL
    AND priority < :priority ORDER BY priority DESC, position, id LIMIT :limit)

-- name: job_later_after
SELECT {brief} FROM job
WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND held_ms IS NULL
  AND (run_at_ms, id) > (:run_at_ms, :id) ORDER BY run_at_ms, id LIMIT :limit

-- name: job_tasks_in_line
SELECT task FROM job
WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
ORDER BY priority DESC, position, id LIMIT :limit OFFSET :skip

-- name: job_line_whole
SELECT {job} FROM job
WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
ORDER BY priority DESC, position, id LIMIT 1 {lock}

-- name: job_forced_whole
SELECT {job} FROM job
WHERE lane = :lane AND state = 'queued' AND forced_ms IS NOT NULL
ORDER BY forced_ms, id LIMIT 1 {lock}

-- name: job_held
SELECT {brief} FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL
ORDER BY priority DESC, position, id LIMIT :limit

-- name: job_later
SELECT {brief} FROM job WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND held_ms IS NULL
ORDER BY run_at_ms, id LIMIT :limit

-- name: job_due
-- Bounded, so that no claim is long; soonest first. A job of high priority waits for more claims only where
-- more than this many of its lane came due before it.
UPDATE job SET run_at_ms = NULL WHERE id IN (
  SELECT id FROM job WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND run_at_ms <= :now_ms
  ORDER BY run_at_ms LIMIT 1000
)

-- name: job_place
SELECT count(*) AS ahead FROM (SELECT 1 FROM job
  WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
    AND (priority > :priority OR (priority = :priority AND (position < :position
         OR (position = :position AND id < :id)))) LIMIT :most)

-- name: job_ends_of_line
SELECT
  (SELECT priority FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
   ORDER BY priority DESC LIMIT 1) AS top_priority,
  (SELECT priority FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
   ORDER BY priority LIMIT 1) AS low_priority

-- name: job_last_position
SELECT max(position) AS position FROM job
WHERE lane = :lane AND priority = :priority AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL

-- name: job_first_position
SELECT min(position) AS position FROM job
WHERE lane = :lane AND priority = :priority AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL

-- name: job_spread
UPDATE job SET position = (SELECT spread FROM (
  SELECT id, row_number() OVER (ORDER BY priority DESC, position, id) * :gap AS spread FROM job
  WHERE lane = :lane AND state IN ('queued', 'running')) o WHERE o.id = job.id)
WHERE lane = :lane AND state IN ('queued', 'running')

-- name: job_slots
SELECT id, slot FROM job WHERE lane = :lane AND state = 'running' ORDER BY slot

-- name: job_child
UPDATE job SET child_pid = :pid, child_start = :start
WHERE id = :id AND lease = :lease AND state = 'running' RETURNING id

-- name: job_publishing
UPDATE job SET publishing = :publishing, beat_tick = :tick_ms, moved_tick = :tick_ms
WHERE id = :id AND lease = :lease AND state = 'running' AND outcome IS NULL RETURNING id

-- name: job_outcome
UPDATE job SET outcome = :outcome, version = version + 1
WHERE id = :id AND lease = :lease AND state = 'running' AND outcome IS NULL RETURNING id

-- name: job_new_lease
UPDATE job SET lease = :new_lease, version = version + 1
WHERE id = :id AND lease = :lease AND state = 'running' RETURNING id

-- name: job_step_kept
UPDATE job SET interruptions = 0, moved_tick = :tick_ms,
  kept = kept + :weight - coalesce((SELECT weight FROM step WHERE job = :id AND name = :name), 0)
WHERE id = :id AND lease = :lease AND state = 'running' AND outcome IS NULL RETURNING id

-- name: beat
-- One statement for all leases of a worker: proves each, renews it, stores progress, brings back wishes.
UPDATE job SET
  beat_tick = :tick_ms,
  moved_tick = CASE WHEN b.moved THEN b.moved_tick ELSE job.moved_tick END,
  moves = job.moves + b.moves,
  done = coalesce(b.done, job.done), total = coalesce(b.total, job.total),
  unit = coalesce(b.unit, job.unit), note = coalesce(b.note, job.note)
FROM (SELECT json_extract(value, '$.id') AS id, json_extract(value, '$.lease') AS lease, json_extract(value, '$.moved_tick') AS moved_tick,
             json_extract(value, '$.moved') AS moved, json_extract(value, '$.moves') AS moves, json_extract(value, '$.done') AS done,
             json_extract(value, '$.total') AS total, json_extract(value, '$.unit') AS unit, json_extract(value, '$.note') AS note
      FROM json_each(:beats)) AS b
WHERE job.id = b.id AND job.lease = b.lease AND job.state = 'running'
RETURNING job.id AS id, job.wish AS wish, job.wish_by AS wish_by

-- name: job_list
-- By id, so it walks what does not fit: without filters a page costs its own length, with one that few jobs fit
-- it grows with the history. An index for each filter would make every submission dearer.
SELECT {brief} FROM job
WHERE id < :before AND (:lane IS NULL OR lane = :lane) AND (:task IS NULL OR task = :task)
  AND (:state IS NULL OR state = :state) AND (:hidden OR hidden_ms IS NULL)
  AND (:text IS NULL OR title LIKE :text ESCAPE '\' OR task LIKE :text ESCAPE '\' OR key LIKE :text ESCAPE '\')
  AND (:since_ms IS NULL OR coalesce(ended_ms, submitted_ms) >= :since_ms)
ORDER BY id DESC LIMIT :limit

-- name: job_list_of
-- One lane's listed jobs of one ended state, by their index: a page costs its own length.
SELECT {brief} FROM job
WHERE lane = :lane AND state = :state AND ended_ms IS NOT NULL AND hidden_ms IS NULL AND id < :before
  AND (:task IS NULL OR task = :task)
  AND (:text IS NULL OR title LIKE :text ESCAPE '\' OR task LIKE :text ESCAPE '\' OR key LIKE :text ESCAPE '\')
  AND (:since_ms IS NULL OR ended_ms >= :since_ms)
ORDER BY id DESC LIMIT :limit

-- name: job_count_of
SELECT count(*) AS jobs FROM (SELECT 1 FROM job
  WHERE lane = :lane AND state = :state AND ended_ms IS NOT NULL AND hidden_ms IS NULL LIMIT :most)

-- name: job_recent
SELECT {brief} FROM job
WHERE lane = :lane AND ended_ms IS NOT NULL AND hidden_ms IS NULL
ORDER BY ended_ms DESC, id DESC LIMIT :limit

-- name: job_hideable
SELECT id FROM job
WHERE ended_ms IS NOT NULL AND hidden_ms IS NULL AND ended_ms < :before_ms
  AND (:lane IS NULL OR lane = :lane) AND state IN (SELECT value FROM json_each(:states))
ORDER BY id

-- name: job_named
-- Walks the newest 100,000 jobs at most: what is older is found by its id.
SELECT {brief} FROM job
WHERE id > (SELECT max(id) FROM job) - 100000
  AND (title LIKE :text ESCAPE '\' OR key LIKE :text ESCAPE '\') ORDER BY id DESC LIMIT :limit

-- name: job_waiting
SELECT id FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
UNION ALL
SELECT id FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL
UNION ALL
SELECT id FROM job
WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND held_ms IS NULL

-- name: job_hidden_of
-- By the moment too, so that what another act hid later stays hidden.
SELECT id FROM job WHERE id IN (SELECT value FROM json_each(:ids)) AND hidden_ms = :at_ms ORDER BY id

-- name: job_removed_of
-- Not those whose key another live job holds by now.
SELECT id FROM job WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'cancelled' AND cause = 'removed'
  AND ended_ms = :at_ms
  AND NOT EXISTS (SELECT 1 FROM job AS live WHERE live.lane = job.lane AND live.key = job.key
                  AND live.key IS NOT NULL AND live.state IN ('queued', 'running'))
ORDER BY id

-- name: job_waiting_children
SELECT {brief} FROM job
WHERE parent IN (SELECT value FROM json_each(:parents)) AND state = 'queued' ORDER BY id

-- name: job_usual
SELECT worked_ms FROM job
WHERE task = :task AND state = 'done' AND ended_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT 20

-- name: step_put
INSERT INTO step (job, name, weight, result, started_ms, ended_ms, attempt, revision)
VALUES (:job, :name, :weight, :result, :started_ms, :now_ms, :attempt, :revision)
ON CONFLICT (job, name) DO UPDATE SET weight = excluded.weight, result = excluded.result,
  started_ms = excluded.started_ms, ended_ms = excluded.ended_ms, attempt = excluded.attempt,
  revision = excluded.revision

-- name: step_all
SELECT name, weight, result, started_ms, ended_ms, attempt FROM step WHERE job = :job ORDER BY ended_ms, name

-- name: step_drop_older
DELETE FROM step WHERE job = :job AND revision < :revision

-- name: pace_put
INSERT INTO pace (job, attempt, minute_ms, done) VALUES (:job, :attempt, :minute_ms, :done)
ON CONFLICT (job, attempt, minute_ms) DO UPDATE SET done = excluded.done

-- name: pace_of_run
SELECT p.minute_ms, p.done FROM pace p JOIN job j ON j.id = p.job AND j.attempt = p.attempt
WHERE p.job = :job ORDER BY p.minute_ms

-- name: pace_of_runs
-- Of each run what tells its time left: its first value, and those since ten minutes, or a tenth of it, ago.
WITH run AS (
  SELECT j.id, j.attempt, j.started_ms,
    (SELECT max(minute_ms) FROM pace WHERE job = j.id AND attempt = j.attempt) AS last_ms
  FROM json_each(:ids) AS i JOIN job AS j ON j.id = i.value),
part AS (
  SELECT id, attempt,
    coalesce((SELECT max(minute_ms) FROM pace WHERE job = run.id AND attempt = run.attempt
              AND minute_ms <= last_ms - max(600000, (last_ms - started_ms) / 10)), 0) AS from_ms,
    (SELECT min(minute_ms) FROM pace WHERE job = run.id AND attempt = run.attempt
     AND minute_ms >= started_ms + 30000) AS first_ms
  FROM run)
SELECT p.job AS job, p.minute_ms AS minute_ms, p.done AS done
FROM part CROSS JOIN pace AS p ON p.job = part.id AND p.attempt = part.attempt AND p.minute_ms >= part.from_ms
UNION ALL
SELECT p.job, p.minute_ms, p.done
FROM part CROSS JOIN pace AS p ON p.job = part.id AND p.attempt = part.attempt AND p.minute_ms = part.first_ms
WHERE part.first_ms < part.from_ms
ORDER BY job, minute_ms

-- name: step_count
SELECT count(*) AS steps FROM step WHERE job = :job

-- name: pace_drop_earlier
DELETE FROM pace WHERE job = :job AND attempt <> :attempt

-- name: stats_tasks
-- One step of the index for each task, not one for each job.
WITH RECURSIVE t (task) AS (
  SELECT min(task) FROM job WHERE ended_ms IS NOT NULL
  UNION ALL
  SELECT (SELECT min(task) FROM job WHERE ended_ms IS NOT NULL AND task > t.task) FROM t WHERE t.task IS NOT NULL)
SELECT task FROM t WHERE task IS NOT NULL

-- name: stats_ended
SELECT id, task, state, submitted_ms, started_ms, ended_ms, worked_ms, attempt FROM job
WHERE task = :task AND state = :state AND ended_ms IS NOT NULL AND ended_ms >= :since_ms
  AND (:lane IS NULL OR lane = :lane)
ORDER BY ended_ms DESC LIMIT :most

-- name: stats_oldest
-- Ids rise with submission. Bounded like the counts.
SELECT min(id) AS id FROM (
  SELECT id FROM (SELECT id FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL
                  AND run_at_ms IS NULL LIMIT :most)
  UNION ALL
  SELECT id FROM (SELECT id FROM job WHERE lane = :lane AND state = 'queued' AND held_ms IS NOT NULL LIMIT :most))

-- name: worker_add
INSERT INTO worker (id, host, boot, time_ns, pid_ns, pid, version, lanes, lease_ms, started_ms)
VALUES (:id, :host, :boot, :time_ns, :pid_ns, :pid, :version, :lanes, :lease_ms, :now_ms)

-- name: worker_drop
DELETE FROM worker WHERE id = :id RETURNING id

-- name: worker_all
SELECT id, host, boot, time_ns, pid_ns, pid, version, lanes, lease_ms, started_ms FROM worker
ORDER BY started_ms, id

-- name: next_due
SELECT min(run_at_ms) AS at_ms FROM job
WHERE lane = :lane AND state = 'queued' AND run_at_ms IS NOT NULL AND run_at_ms > :now_ms

-- name: undo_add
INSERT INTO undo (at_ms, "by", kind, jobs) VALUES (:now_ms, :by, :kind, :jobs) RETURNING id

-- name: undo_prune
DELETE FROM undo WHERE id <= :id - 1000

-- name: undo_newest
SELECT max(id) AS id FROM undo

-- name: undo_last
SELECT id, at_ms, "by", kind, jobs FROM undo WHERE at_ms >= :since_ms ORDER BY id DESC LIMIT 1

-- name: undo_of
SELECT id, at_ms, "by", kind, jobs FROM undo WHERE id = :which AND at_ms >= :since_ms

-- name: undo_drop
DELETE FROM undo WHERE id = :id OR at_ms < :since_ms

-- name: request_of
SELECT what, jobs, undo FROM request WHERE key = :key

-- name: request_add
INSERT INTO request (key, what, at_ms, jobs, undo) VALUES (:key, :what, :now_ms, :jobs, :undo) RETURNING id

-- name: request_prune
DELETE FROM request WHERE id <= :id - 10000

-- name: job_next_position
SELECT position FROM job
WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
  AND priority = :priority AND position >= :position AND (position > :position OR id > :id)
  AND id <> :but
ORDER BY position LIMIT 1

-- name: job_previous_position
SELECT position FROM job
WHERE lane = :lane AND state = 'queued' AND held_ms IS NULL AND run_at_ms IS NULL
  AND priority = :priority AND position <= :position AND (position < :position OR id < :id)
  AND id <> :but
ORDER BY position DESC LIMIT 1
