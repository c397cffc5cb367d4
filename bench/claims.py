"""Claim and end with few and with many waiting or not due: ``python bench/claims.py [MANY]``.

All are measured in one run, alternating, without waiting for the disk: a ratio, not a speed.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lineclear.job import Ending, NewJob, Outcome
from lineclear.store import acts, runs
from lineclear.store.sqlite import SqliteStore

FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO job (lane, task, app, args, title, state, priority, position, run_at_ms,
                 submitted_ms, submitted_by, unit, options)
SELECT 'bench', 'noop', 'tasks:noop', '{}', '', 'queued', 0, i * 1024, :due, 0, '', '', '{}' FROM n
"""


def filled(path: Path, count: int, due: int | None) -> SqliteStore:
    store = SqliteStore(path)
    with store.write() as tx:
        for _ in range(2_000 if due else 1):
            acts.submit(tx, NewJob("noop", "bench", "{}", "tasks:noop"))
    connection = sqlite3.connect(path)
    connection.execute(FILL, {"count": count, "due": due})
    connection.commit()
    connection.close()
    return store


def one(store: SqliteStore) -> None:
    with store.write(durable=False) as tx:
        job = runs.claim(tx, "bench", "worker")
        assert job is not None
        runs.set_outcome(tx, job, Outcome("done"))
        runs.finish(tx, job, Ending(), by="worker")


def measure(store: SqliteStore, times: int) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        one(store)
    return (time.perf_counter() - begun) / times * 1e6


def main(many: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        shapes = {
            "1,000 waiting": filled(Path(name, "few.db"), 1_000, None),
            f"{many:,} waiting": filled(Path(name, "many.db"), many, None),
            f"{many:,} not due yet": filled(Path(name, "later.db"), many, 2**52),
        }
        figures: dict[str, list[float]] = {shape: [] for shape in shapes}
        for _ in range(9):
            for shape, store in shapes.items():
                figures[shape].append(measure(store, 100))
        medians = {shape: statistics.median(values) for shape, values in figures.items()}
    few = next(iter(medians.values()))
    for shape, median in medians.items():
        print(f"claim and end, {shape}: {median:.0f} us, ratio {median / few:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
