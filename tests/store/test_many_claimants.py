"""Fifty processes after one lane: the promise that never more run than there are slots."""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.helpers import python, said, tell
from tests.store.ground import new

from lineclear.store import acts
from lineclear.store.sqlite import SqliteStore

CLAIMANTS = 50
JOBS = 5_000

CLAIMANT = """
import random, sys, time
from pathlib import Path
from lineclear.job import Ending, Outcome
from lineclear.store import reads, runs
from lineclear.store.sqlite import SqliteStore

store, lane, me = SqliteStore(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
done = refused = 0
while True:
    # Not synced: nothing here is acknowledged to anybody, and the disk is not what is tried.
    with store.write(durable=False) as tx:
        job = runs.claim(tx, lane, me)
        waiting = job is not None or tx.all("job_line", lane=lane, limit=1)
    if job is not None:
        with store.write(durable=False) as tx:
            assert runs.set_outcome(tx, job, Outcome("done"))
            assert runs.finish(tx, job, Ending(exit_code=0), by=me)
        done += 1
    elif waiting:
        refused += 1
        time.sleep(random.uniform(0.02, 0.2))
    else:
        break
print(done, refused, flush=True)
"""


@pytest.mark.parametrize("slots", [1, 3])
def test_e02_p01_case_b9_fifty_processes_one_lane(tmp_path: Path, slots: int) -> None:
    database = tmp_path / "q.db"
    store = SqliteStore(database)
    with store.write() as tx:
        for _ in range(JOBS):
            acts.submit(tx, new())
        acts.set_concurrency(tx, "line", slots, by="ann")
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(python(CLAIMANT, database, "line", f"w{number}"))
            for number in range(CLAIMANTS)
        ]
        assert [said(each) for each in crowd] == ["ready"] * CLAIMANTS
        for each in crowd:
            tell(each)
        shares = [[int(word) for word in said(each).split()] for each in crowd]
    assert sum(done for done, _ in shares) == JOBS
    assert sum(refused for _, refused in shares) > 0
    most, runs_of = journal(database)
    assert most == slots
    assert sorted(runs_of) == list(range(1, JOBS + 1))
    assert set(runs_of.values()) == {1}
    assert store.check() == []
    store.close()


def journal(database: Path) -> tuple[int, dict[int, int]]:
    """The most that ever ran at one commit, and how often each job ran, as the journal tells it."""
    running: set[int] = set()
    taken: dict[int, int] = {}
    runs_of: dict[int, int] = {}
    most = 0
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT job, kind, detail FROM event ORDER BY seq").fetchall()
    connection.close()
    for job, kind, detail in rows:
        if kind == "claimed":
            slot = json.loads(detail)["slot"]
            assert job not in running and slot not in taken.values()
            running.add(job)
            taken[job] = slot
            most = max(most, len(running))
        elif kind == "ended":
            running.remove(job)
            del taken[job]
            runs_of[job] = runs_of.get(job, 0) + 1
    assert not running
    return most, runs_of
