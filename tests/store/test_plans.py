"""How statements find their rows. Counted in steps of SQLite's virtual machine, never in time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from tests.store.ground import LANE, HandClock, add, claim, claimed, finish, new

from lineclear.job import Ending, Outcome
from lineclear.store import acts, reads, runs
from lineclear.store.sqlite import _STATEMENTS, SqliteStore

CLAIM = {
    "job_slots": "job_slot",
    "job_due": "job_due",
    "job_forced_whole": "job_forced",
    "job_line_whole": "job_line",
    "next_due": "job_due",
}
LOOKS = {
    "job_line": "job_line",
    "job_held": "job_held",
    "job_later": "job_due",
    "job_place": "job_line",
    "job_last_position": "job_line",
    "job_first_position": "job_line",
    "job_next_position": "job_line",
    "job_previous_position": "job_line",
    "job_of_key": "job_key",
    "job_of_parent": "job_parent",
    "job_waiting_children": "job_parent",
    "job_recent": "job_ended",
    "job_waiting": "job_line",
    "job_usual": "job_usual",
    "job_running": "job_slot",
    "job_every_run": "job_slot",
    "job_of_worker": "job_slot",
    "job_list_of": "job_state",
    "job_count_of": "job_state",
    "job_line_after": "job_line",
    "job_held_after": "job_held",
    "job_later_after": "job_due",
    "job_tasks_in_line": "job_line",
    "stats_tasks": "job_usual",
    "stats_ended": "job_usual",
    "stats_oldest": "job_line",
}


def plan(store: SqliteStore, name: str) -> list[str]:
    connection = store._writer
    assert connection is not None
    rows = connection.execute(f"EXPLAIN QUERY PLAN {_STATEMENTS[name]}", Anything())
    return [row["detail"] for row in rows]


class Anything(dict[str, Any]):
    """A value for every parameter: plans do not depend on it."""

    def __missing__(self, name: str) -> int:
        return 1


@pytest.mark.parametrize(("name", "index"), (CLAIM | LOOKS).items())
def test_p05_statements_use_their_partial_indexes(
    store: SqliteStore, name: str, index: str
) -> None:
    details = plan(store, name)
    assert any(f"INDEX {index} " in f"{detail} " for detail in details), details
    assert not any(detail.strip() == "SCAN job" for detail in details), details
    if name in CLAIM:
        assert not any("TEMP B-TREE" in detail for detail in details), details


def test_the_paces_of_runs_are_found_run_by_run(store: SqliteStore) -> None:
    details = plan(store, "pace_of_runs")
    assert any("SEARCH p USING" in detail for detail in details), details
    scans = {detail for detail in details if detail.startswith("SCAN")}
    assert scans == {"SCAN i VIRTUAL TABLE INDEX 1:", "SCAN run", "SCAN part"}, "the runs alone"


def steps(store: SqliteStore, call: Callable[[], object]) -> int:
    """How many steps of SQLite's virtual machine a call takes, in tens."""
    connection, count = store._writer, 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    assert connection is not None
    connection.set_progress_handler(tick, 10)
    try:
        call()
    finally:
        connection.set_progress_handler(None, 0)
    return count


def crowd(store: SqliteStore, **changes: str) -> None:
    """A hundred thousand more jobs like the first."""
    columns = [row[1] for row in sqlite_columns(store.path) if row[1] not in {"id", "key"}]
    values = ", ".join(changes.get(column, column) for column in columns)
    connection = sqlite3.connect(store.path)
    connection.execute(
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
        f"INSERT INTO job ({', '.join(columns)}) SELECT {values} FROM job, n WHERE job.id = 1"
    )
    connection.commit()
    connection.close()


def sqlite_columns(path: object) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(str(path))
    rows = connection.execute("PRAGMA table_info(job)").fetchall()
    connection.close()
    return rows


def one_job(store: SqliteStore) -> None:
    """What a job costs: submit, claim, beat, step, end, and the look at what comes next."""
    with store.write(durable=False) as tx:
        acts.submit(tx, new(key="271", first=True))
        job = runs.claim(tx, LANE, "w1")
        assert job is not None and job.key == "271"
        runs.beat(tx, [runs.Beat(job.id, job.lease or "")])
        runs.keep_step(tx, job, name="one", weight=1, result=None, started_ms=1)
        runs.set_outcome(tx, job, Outcome("done"))
        runs.finish(tx, job, Ending(exit_code=0), by="w1")
        runs.next_wall_ms(tx, [LANE])


@pytest.mark.parametrize(
    "shape",
    [
        {"position": "position + i"},
        {"run_at_ms": "9000000000000000 + i"},
        {"held_ms": "1", "position": "position + i"},
        {"state": "'done'", "ended_ms": "i"},
        {"run_at_ms": "i", "lane": "'elsewhere'"},
    ],
    ids=["queued", "not due", "held", "ended", "due in another lane"],
)
def test_p05_a_hundred_thousand_jobs_make_a_job_no_dearer(
    store: SqliteStore, shape: dict[str, str]
) -> None:
    add(store)
    one_job(store)
    alone = steps(store, lambda: one_job(store))
    crowd(store, **shape)
    crowded = steps(store, lambda: one_job(store))
    assert alone > 50, "the count counts"
    assert crowded < 1.2 * alone + 20


def looks(store: SqliteStore) -> None:
    with store.write() as tx:
        reads.usual(tx, "none such")
        reads.recent(tx, LANE, 10)
        reads.recent(tx, None, 10)
        reads.waiting(tx, LANE, 10)
        reads.lane(tx, LANE, [])


@pytest.mark.parametrize(
    "shape",
    [
        {"state": "'done'", "ended_ms": "i", "lane": "'elsewhere'"},
        {"state": "'done'", "ended_ms": "i", "hidden_ms": "1"},
    ],
    ids=["ended in another lane", "cleared"],
)
def test_no_look_walks_a_history_that_does_not_fit_it(
    store: SqliteStore, shape: dict[str, str]
) -> None:
    add(store)
    alone = steps(store, lambda: looks(store))
    crowd(store, **shape)
    assert steps(store, lambda: looks(store)) < 1.2 * alone + 20


def test_a_name_is_looked_for_among_the_newest_alone(store: SqliteStore) -> None:
    add(store, title="moon")
    crowd(store, title="'sun'", state="'done'", ended_ms="i")
    newest = add(store, title="moon")
    with store.read() as tx:
        assert [job.id for job in reads.named(tx, "moon")] == [newest.id]


def test_p05_what_is_due_is_promoted_a_bounded_number_at_a_time(
    store: SqliteStore, clock: HandClock
) -> None:
    with store.write() as tx:
        for n in range(1_050):
            # The last but 51 is the weightiest: being due later makes no priority late.
            acts.submit(tx, new(run_at_ms=tx.now_ms + 1_000 + n, priority=9 if n == 999 else 0))
    clock.advance(9_000)
    first = claimed(store)
    assert first.priority == 9
    with store.read() as tx:
        assert len(tx.all("job_later", lane=LANE, limit=9_999)) == 50
    finish(store, first)
    assert claim(store) is not None
    with store.read() as tx:
        assert tx.all("job_later", lane=LANE, limit=9_999) == []


def test_a_scan_reads_no_arguments_of_what_runs(store: SqliteStore) -> None:
    add(store, args='{"n": 1}')
    assert claimed(store).args == '{"n": 1}'
    with store.read() as tx:
        (run,) = runs.every_run(tx)
    assert (run.args, run.lease is not None) == ("", True)


def test_e24_looks_at_a_lane_stop_counting(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "COUNT_LIMIT", 3)
    for _ in range(5):
        add(store)
    with store.read() as tx:
        lane = reads.lane(tx, LANE, [])
        assert lane is not None and lane.waiting == 3
