"""Many processes on one file: waiting, not failing; nothing lost; and a log that stays small."""

from __future__ import annotations

import gc
import sqlite3
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import python, said, tell
from tests.store.ground import add, claim, claimed, finish, new

from lineclear import Queue
from lineclear.errors import StoreBusy
from lineclear.job import State
from lineclear.store import acts, reads, runs
from lineclear.store import sqlite as module
from lineclear.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
BOTH = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}

HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
if len(sys.argv) > 3:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
for line in sys.stdin:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO undo (at_ms, by, kind, jobs) VALUES (0, '', 'moved', '[]')")
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    connection.execute("COMMIT")
    if len(sys.argv) > 3:
        connection.close()
    print("free", flush=True)
"""

WORKER = """
import sys, time
from pathlib import Path
from lineclear.job import Ending, Outcome
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore
store, me = SqliteStore(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
ears = store.bell.listen("work")
done, over = 0, False
while not over:
    with store.write() as tx:
        job = runs.claim(tx, "line", me)
        over = tx.all("lane_get", lane="over") and not tx.all("job_line", lane="line", limit=1)
    if job is None:
        over or ears.wait(0.2)
        continue
    with store.write() as tx:
        runs.beat(tx, [runs.Beat(job.id, job.lease, 1, 1, 1, 0.5)])
        runs.set_outcome(tx, job, Outcome("done"))
        assert runs.finish(tx, job, Ending(exit_code=0), by=me)
    done += 1
print(done, flush=True)
"""

VIEWER = """
import sys
from lineclear import Queue
queue = Queue(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
looks = 0
with queue.changes() as changes:
    while not any(lane.name == "over" for lane in queue.lanes()):
        queue.jobs(limit=50), queue.waiting(), queue.recent(), queue.running()
        looks += 1
        changes.wait(0.2)
print(looks, flush=True)
"""

SUBMITTER = """
import sys
from lineclear import Queue
from tests.store.ground import new
queue = Queue(sys.argv[1], by="ann")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    queue.put(new())
queue.put(new(lane="over"))
print("submitted", flush=True)
"""


def test_e26_case_e1_workers_viewers_and_a_submitter_wait_for_a_held_lock(tmp_path: Path) -> None:
    database, jobs = tmp_path / "q.db", 300
    queue = Queue(database, by="ann")
    queue.put(new())
    queue.lane("line").set_concurrency(3)
    with ExitStack() as stack:
        workers = [stack.enter_context(python(WORKER, database, f"w{n}")) for n in range(8)]
        viewers = [stack.enter_context(python(VIEWER, database)) for _ in range(5)]
        submitter = stack.enter_context(python(SUBMITTER, database, jobs, env=BOTH))
        holder = stack.enter_context(python(HOLDER, database, 2.5))
        crowd = [*workers, *viewers, submitter]
        assert {said(each) for each in crowd} == {"ready"}
        for each in crowd:
            tell(each)
        tell(holder)
        assert said(holder) == "held"
        assert said(holder) == "free"
        assert said(submitter) == "submitted"
        assert sum(int(said(worker)) for worker in workers) == jobs + 1
        assert all(int(said(viewer)) > 0 for viewer in viewers)
        assert [each.wait(20) for each in crowd] == [0] * len(crowd)
    ended = Counter(event.job for event in queue.events(limit=10_000) if event.kind == "ended")
    assert set(ended.values()) == {1} and len(ended) == jobs + 1
    assert queue.check() == []
    queue.close()


def test_p20_a_writer_waits_for_the_lock_by_its_own_retries(store: SqliteStore) -> None:
    connection = store._writer
    assert connection is not None
    assert connection.execute("PRAGMA busy_timeout").fetchone()[0] == 0
    with python(HOLDER, store.path, 0.5) as holder:
        tell(holder)
        assert said(holder) == "held"
        add(store)
        assert said(holder) == "free"


def test_p20_e26_a_lock_held_too_long_is_a_sentence_and_nothing_has_changed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.2)
    job = add(store)
    with python(HOLDER, store.path, 60) as holder:
        tell(holder)
        assert said(holder) == "held"
        with pytest.raises(StoreBusy, match=r"stayed locked .* Nothing was changed; try again"):
            add(store)
        with store.read() as tx:
            assert len(tx.all("job_line", lane="line", limit=9)) == 1, "looks go on"
    assert add(store).id == job.id + 1


def test_e26_a_look_too_waits_for_whoever_has_the_whole_file(store: SqliteStore) -> None:
    add(store)
    path = store.path
    store.close()
    with python(HOLDER, path, 0.5, "whole") as holder:
        tell(holder)
        assert said(holder) == "held"
        with store.read() as tx:
            assert len(tx.all("job_line", lane="line", limit=9)) == 1
        assert said(holder) == "free"


class Recovering:
    """A connection whose first look comes while another process recovers the log."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.refused = connection, 0

    def execute(self, *asked: Any) -> sqlite3.Cursor:
        if asked[0].startswith("SELECT") and self.refused < 3:
            self.refused += 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
            raise error
        return self.connection.execute(*asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def test_e26_a_look_too_waits_for_whoever_recovers_the_log(store: SqliteStore) -> None:
    add(store)
    with store.read():
        pass
    assert store._reader is not None
    recovering = Recovering(store._reader)
    store._reader = recovering  # type: ignore[assignment]
    with store.read() as tx:
        assert len(tx.all("job_line", lane="line", limit=9)) == 1
    assert recovering.refused == 3


RAISER = """
import sys
from pathlib import Path
from lineclear import moves
from lineclear.store import acts
from lineclear.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    with store.write(durable=False) as tx:
        acts.act(tx, 1, lambda job: moves.place(
            job, priority=job.priority + 1, position=job.position, by="x"))
print("raised", flush=True)
"""


def test_case_e2_two_that_read_then_write_lose_nothing_of_each_other(store: SqliteStore) -> None:
    job, times = add(store), 300
    with ExitStack() as stack:
        two = [stack.enter_context(python(RAISER, store.path, times)) for _ in range(2)]
        assert [said(each) for each in two] == ["raised"] * 2
    with store.read() as tx:
        assert reads.job(tx, job.id).priority == 2 * times


def test_case_e2_every_transaction_that_writes_begins_as_a_writer(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "q.db", by="ann")
    queue.put(new())
    heard: list[str] = []
    with queue.store.read():
        pass
    for connection in (queue.store._writer, queue.store._reader):
        assert connection is not None
        connection.set_trace_callback(heard.append)
    job = queue.put(new(key="k")).job
    queue.hold(job.id)
    queue.lane("line").pause("tea")
    queue.lanes(), queue.jobs(), queue.events(), queue.why(1), queue.place(1), queue.steps(1)
    queue.remove(job.id)
    queue.undo()
    assert queue.check() == []
    writing = False
    for statement in heard:
        word = statement.split()[0].upper()
        if word in {"BEGIN", "COMMIT", "ROLLBACK"}:
            writing = statement == "BEGIN IMMEDIATE"
        elif word in {"INSERT", "UPDATE", "DELETE"}:
            assert writing, statement
    assert heard.count("BEGIN IMMEDIATE") > 5 and heard.count("BEGIN") > 5
    queue.close()


def test_case_e3_the_log_stays_small_under_an_open_watch(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "q.db", by="ann")
    queue.put(new())
    with queue.store.write() as tx:
        job = runs.claim(tx, "line", "w1")
    assert job is not None
    largest = 0
    with queue.changes() as changes:
        for number in range(3_000):
            with queue.store.write(durable=False) as tx:
                runs.beat(tx, [runs.Beat(job.id, job.lease or "", 1, 1, number, float(number))])
            if number % 100 == 0:
                assert changes.wait(10)
                assert queue.get(job.id).done == number
                assert queue.store._reader is not None and not queue.store._reader.in_transaction
                largest = max(largest, queue.wal_bytes())
    assert 0 < largest < 8 * 1024 * 1024
    queue.close()


def test_case_e3_a_log_that_grew_is_cut_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_LIMIT", 1024 * 1024)
    store = SqliteStore(tmp_path / "q.db")
    with store.write() as tx:
        for _ in range(100):
            acts.submit(tx, new(args='"' + "x" * 100_000 + '"'))
    assert store.log_bytes() > 8 * 1024 * 1024
    for _ in range(3):
        add(store)
    assert store.log_bytes() <= 1024 * 1024
    store.close()


FORKER = """
import os, sys, threading
from pathlib import Path
from lineclear.store.sqlite import SqliteStore
from tests.store.ground import add, new
store = SqliteStore(Path(sys.argv[1]))
add(store)
over = threading.Event()

def write():
    while not over.is_set():
        add(store)

busy = threading.Thread(target=write)
busy.start()
children = []
for number in range(40):
    pid = os.fork()
    if pid == 0:
        assert store._writer is None and store._reader is None
        if number % 2:
            add(store, lane="forked")
            store.close()
        os._exit(0)
    children.append(pid)
codes = [os.waitpid(pid, 0)[1] for pid in children]
over.set()
busy.join()
print(codes.count(0), store.check(), flush=True)
store.close()
"""


def test_case_e5_a_forked_copy_never_uses_what_its_parent_opened(tmp_path: Path) -> None:
    with python(FORKER, tmp_path / "q.db", env=BOTH) as process:
        assert said(process) == "40 []"
    with sqlite3.connect(tmp_path / "q.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        forked = connection.execute("SELECT count(*) FROM job WHERE lane = 'forked'").fetchone()[0]
    connection.close()
    assert forked == 20


SURVIVOR = """
import os, sys
from pathlib import Path
from lineclear.store.sqlite import SqliteStore
from tests.store.ground import add
store = SqliteStore(Path(sys.argv[1]))
add(store)
parents, childs = os.pipe(), os.pipe()
if os.fork() == 0:
    add(store, lane="forked")
    os.write(childs[1], b"!")
    os.read(parents[0], 1)
    add(store, lane="forked")
    os._exit(0)
os.read(childs[0], 1)
store.close()
os.write(parents[1], b"!")
print(os.wait()[1], flush=True)
"""


def test_case_e5_a_parent_that_closes_takes_nothing_away_from_its_child(tmp_path: Path) -> None:
    with python(SURVIVOR, tmp_path / "q.db", env=BOTH) as process:
        assert said(process) == "0"
    store = SqliteStore(tmp_path / "q.db")
    with store.read() as tx:
        assert len(tx.all("job_line", lane="forked", limit=9)) == 2
    store.close()


def test_one_store_serves_many_threads(store: SqliteStore) -> None:
    def work() -> None:
        for _ in range(40):
            add(store)
            with store.read() as tx:
                assert tx.all("lane_all")

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as tx:
        assert len(tx.all("job_line", lane="line", limit=999)) == 200


def test_a_store_that_is_let_go_is_forgotten(tmp_path: Path) -> None:
    for _ in range(3):
        SqliteStore(tmp_path / "q.db").close()
    gc.collect()
    assert not [each for each in module._stores if each.path == tmp_path / "q.db"]


def test_state_words_are_what_the_schema_allows(store: SqliteStore) -> None:
    job = add(store)
    finish(store, claimed(store))
    assert claim(store) is None and job.state is State.QUEUED
    with sqlite3.connect(store.path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE job SET state = 'lost'")
    connection.close()
