"""Processes killed outright at random moments: what was acknowledged is there, in one state."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from contextlib import ExitStack
from pathlib import Path

from tests.helpers import python, said, tell
from tests.store.ground import add, claimed, finish

from lineclear.job import Ending, State
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
BOTH = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}

SUBMITTER = """
import sys
from lineclear import Queue
from tests.store.ground import new
queue = Queue(sys.argv[1], by="ann")
queue.lanes()
print("ready", flush=True)
sys.stdin.readline()
while True:
    print(queue.put(new(args='"' + "x" * 3000 + '"')).job.id, flush=True)
"""


def test_case_h4_e26_every_acknowledged_submit_survives_kill_in_a_burst(tmp_path: Path) -> None:
    database, dice = tmp_path / "q.db", random.Random(4)
    SqliteStore(database).close()
    acknowledged: set[int] = set()
    for _ in range(4):
        with ExitStack() as stack:
            burst = [stack.enter_context(python(SUBMITTER, database, env=BOTH)) for _ in range(3)]
            assert [said(each) for each in burst] == ["ready"] * 3
            for each in burst:
                tell(each)
            for each in burst:
                for _ in range(dice.randrange(1, 40)):
                    acknowledged.add(int(said(each)))
                os.kill(each.pid, signal.SIGKILL)
            for each in burst:
                assert each.wait() == -signal.SIGKILL
                while (line := said(each)).isdecimal():
                    acknowledged.add(int(line))
    store = SqliteStore(database)
    with store.read() as tx:
        stored = {row["id"] for row in tx.all("job_line", lane="line", limit=99_999)}
    assert len(acknowledged) > 30 and acknowledged <= stored
    assert whole(store)
    store.close()


RUNNER = """
import sys
from pathlib import Path
from lineclear.job import Ending, Outcome
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore
store, me = SqliteStore(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(1_000_000):
    with store.write() as tx:
        job = runs.claim(tx, "line", me)
    print(number, flush=True)
    if job is None:
        continue
    with store.write() as tx:
        runs.keep_step(tx, job, name="one", weight=1, result=None, started_ms=1)
    with store.write() as tx:
        runs.set_outcome(tx, job, Outcome("interrupted" if number % 3 else "done"))
    with store.write() as tx:
        runs.finish(tx, job, Ending(exit_code=0), by=me)
"""


def test_case_a5_case_a6_killed_around_claim_and_end_no_job_is_missing(tmp_path: Path) -> None:
    store, dice = SqliteStore(tmp_path / "q.db"), random.Random(5)
    jobs = {add(store).id for _ in range(300)}
    cut_short = 0
    for life in range(12):
        with python(RUNNER, store.path, f"w{life}") as runner:
            assert said(runner) == "ready"
            tell(runner)
            for _ in range(dice.randrange(1, 20)):
                said(runner)
            os.kill(runner.pid, signal.SIGKILL)
            runner.wait()
        with store.write() as tx:
            for job in runs.every_run(tx):
                assert job.lease is not None and job.slot == 0
                after = runs.finish(tx, job, Ending("lost", sentence="Lost."), by="next")
                assert after is not None and after.state in (State.QUEUED, State.DONE)
                cut_short += 1
    with sqlite3.connect(store.path) as connection:
        rows = connection.execute("SELECT id, state FROM job").fetchall()
    connection.close()
    assert {job for job, _ in rows} == jobs and len(rows) == len(jobs)
    assert {state for _, state in rows} <= {State.QUEUED, State.DONE}
    assert cut_short > 3, "some were killed with a job in hand"
    assert whole(store)
    store.close()


STEPPER = """
import sys
from pathlib import Path
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
with store.write() as tx:
    job = runs.claim(tx, "line", "w1")
for number in range(1_000_000):
    with store.write() as tx:
        assert runs.keep_step(
            tx, job, name=f"chapter {number}", weight=1, result="1", started_ms=1)
    print(number, flush=True)
"""


def test_case_g1_steps_that_were_kept_are_there_after_a_kill(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "q.db")
    job = add(store)
    with python(STEPPER, store.path) as stepper:
        while int(said(stepper)) < 30:
            pass
        os.kill(stepper.pid, signal.SIGKILL)
        stepper.wait()
        last = [int(line) for line in iter(lambda: said(stepper), "")]
    kept = max(last, default=30)
    with store.write() as tx:
        (left,) = runs.every_run(tx)
        after = runs.finish(tx, left, Ending("lost", sentence="Lost."), by="w2")
    assert after is not None and (after.state, after.interruptions) == (State.QUEUED, 1)
    again = claimed(store, worker="w2")
    with store.read() as tx:
        steps = runs.steps_of(tx, job.id)
    assert again.attempt == 2 and {f"chapter {n}" for n in range(kept + 1)} <= set(steps)
    assert finish(store, left) is None
    store.close()


def whole(store: SqliteStore) -> bool:
    with sqlite3.connect(store.path) as connection:
        answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return bool(answer == "ok")


def test_case_h4_a_damaged_last_page_is_not_made_into_an_empty_queue(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "q.db")
    ids = [add(store, args='"' + "x" * 3000 + '"').id for _ in range(20)]
    store.close()
    with (tmp_path / "q.db").open("r+b") as file:
        file.seek(-2000, os.SEEK_END)
        file.write(b"\0" * 2000)
    again = SqliteStore(tmp_path / "q.db")
    with again.read() as tx:
        read = [row["id"] for row in tx.all("job_line", lane="line", limit=99)]
    assert read == ids, "the rows that can be read are read"
    again.close()
