"""What is acknowledged is on disk: cuts of power simulated from what was synced, and the rules.

A cut leaves of each file what was synced last, with any of the pieces written since. SQLite itself
syncs a new header of its log before it overwrites the log, and the whole log before it copies from
it into the database; everything else is only as safe as our own sync makes it.
"""

from __future__ import annotations

import ast
import errno
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.helpers import python, said, tell
from tests.store.ground import add, claim, claimed, finish, new

import lineclear
from lineclear import Queue
from lineclear.errors import StoreUnsafe
from lineclear.store import acts
from lineclear.store import sqlite as module
from lineclear.store.sqlite import SqliteStore

SECTOR = 512
HEADER = 32
COMMITS = 150

# Reading the database file here would drop this process's locks on it, so another process does.
COPIER = """
import shutil, sys
for line in sys.stdin:
    for source, target in (pair.split(">") for pair in line.split()):
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            open(target, "wb").close()
    print("copied", flush=True)
"""


class Disk:
    """What would be on the disk if the power went now."""

    def __init__(self, database: Path, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.log = self.data = b""
        self.acknowledged = self.cuts = self.lost = self.restarts = self.checkpoints = 0
        self.random = random.Random(18)

    @contextmanager
    def watching(self, *, syncs: bool) -> Iterator[None]:
        real = module._fdatasync
        with python(COPIER) as copier, pytest.MonkeyPatch.context() as patch:

            def recorded(descriptor: int) -> None:
                log, data = self.folder / "log", self.folder / "data"
                tell(copier, f"{self.database}-wal>{log} {self.database}>{data}")
                assert said(copier) == "copied"
                self.written(log.read_bytes(), data.read_bytes(), syncs=syncs)
                real(descriptor)

            patch.setattr(module, "_fdatasync", recorded)
            yield

    def written(self, log: bytes, data: bytes, *, syncs: bool) -> None:
        """A commit is written, and not acknowledged yet: cut here, then sync."""
        checkpointed = data != self.data
        restarted = log[:HEADER] != self.log[:HEADER]
        self.checkpoints += checkpointed
        self.restarts += restarted
        kept = log[:HEADER] if restarted else self.log[:HEADER]
        log_now = log if checkpointed else kept + self.torn(self.log[HEADER:], log[HEADER:])
        self.cut(log_now, self.torn(self.data, data))
        if syncs or checkpointed or restarted:
            self.log, self.data = (log, data) if syncs or checkpointed else (log_now, data)

    def torn(self, before: bytes, after: bytes) -> bytes:
        pieces = []
        for at in range(0, len(after), SECTOR):
            old = before[at : at + SECTOR].ljust(len(after[at : at + SECTOR]), b"\0")
            pieces.append(after[at : at + SECTOR] if self.random.random() < 0.5 else old)
        return b"".join(pieces)

    def cut(self, log: bytes, data: bytes) -> None:
        left = self.folder / "left.db"
        left.write_bytes(data)
        Path(f"{left}-wal").write_bytes(log)
        Path(f"{left}-shm").unlink(missing_ok=True)
        connection = sqlite3.connect(left)
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        known = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        ids = connection.execute("SELECT id FROM job").fetchall() if known else []
        connection.close()
        self.cuts += 1
        self.lost += self.acknowledged > len(ids)


def power_cuts(folder: Path, *, syncs: bool) -> Disk:
    copies = folder / "copies"
    copies.mkdir()
    disk = Disk(folder / "q.db", copies)
    with disk.watching(syncs=syncs):
        store = SqliteStore(folder / "q.db")
        store._writer.execute("PRAGMA wal_autocheckpoint = 15")  # type: ignore[union-attr]
        for _ in range(COMMITS):
            job = add(store, args='"' + "x" * disk.random.randrange(9_000) + '"')
            disk.acknowledged = job.id
        store.close()
    assert disk.cuts > COMMITS and disk.checkpoints > 5 and disk.restarts > 5
    return disk


def test_p18_no_acknowledged_commit_is_lost_to_a_cut_of_power(tmp_path: Path) -> None:
    assert power_cuts(tmp_path, syncs=True).lost == 0


def test_p18_sqlite_is_asked_for_the_syncs_that_are_its_own(store: SqliteStore) -> None:
    with store.read():
        pass
    for connection in (store._writer, store._reader):
        assert connection is not None
        read = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "journal_size_limit")
        }
        assert (read["synchronous"], read["journal_mode"]) == (1, "wal")
        assert read["journal_size_limit"] == module.LOG_LIMIT


def test_p18_without_the_sync_the_same_cuts_lose_acknowledged_commits(tmp_path: Path) -> None:
    assert power_cuts(tmp_path, syncs=False).lost > 10


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens around the disk, in order."""
    done: list[str] = []
    real = module._fdatasync

    def recorded(descriptor: int) -> None:
        done.append("sync")
        real(descriptor)

    monkeypatch.setattr(module, "_fdatasync", recorded)
    return done


def test_p18_one_descriptor_of_the_log_is_kept_and_compared(store: SqliteStore) -> None:
    add(store)
    first = store._log_file
    add(store)
    assert store._log_file == first is not None
    log = Path(f"{store.path}-wal")
    copy = log.read_bytes()
    log.unlink()
    log.write_bytes(copy)
    store.sync()
    assert store._log_file is not None and first is not None
    assert store._log_file[1] == log.stat().st_ino != first[1]
    assert os.fstat(store._log_file[0]).st_ino == log.stat().st_ino


def test_p18_a_failed_sync_is_never_tried_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def failing(descriptor: int) -> None:
        tried.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(module, "_fdatasync", failing)
    with pytest.raises(StoreUnsafe, match=r"did not confirm a write .*Check the disk"):
        add(store)
    later: list[Callable[[], object]] = [lambda: add(store), store.sync, lambda: claim(store)]
    for again in later:
        with pytest.raises(StoreUnsafe):
            again()
    assert len(tried) == 1


def test_p17_an_answer_that_rests_on_anothers_row_syncs_the_log_first(
    store: SqliteStore, syncs: list[str]
) -> None:
    other = SqliteStore(store.path)
    with other.write(durable=False) as tx:
        held, _ = acts.submit(tx, new(key="271"))
    syncs.clear()
    assert add(store, key="271").id == held.id
    assert syncs == ["sync"]
    other.close()


def test_p17_wait_syncs_before_it_answers(tmp_path: Path, syncs: list[str]) -> None:
    queue = Queue(tmp_path / "q.db", by="ann")
    job = queue.put(new()).job
    queue.cancel(job.id)
    syncs.clear()
    assert queue.wait(job.id, timeout_s=10)[0].ended
    assert syncs == ["sync"]
    queue.close()


def test_p17_p15_the_rope_is_taken_before_the_commit_and_let_go_after_the_sync(
    store: SqliteStore, syncs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rope:
        def after_commit(self) -> None:
            syncs.append("after commit")

        def let_go(self) -> None:
            syncs.append("let go")

    class Bell:
        def take(self, rooms: set[str]) -> Rope:
            assert rooms == {"work", "watch"}
            assert store._writer is not None and store._writer.in_transaction
            syncs.append("take")
            return Rope()

    monkeypatch.setattr(store, "bell", Bell())
    add(store)
    assert syncs == ["take", "after commit", "sync", "let go"]


def test_durable_where_a_promise_is_made_and_only_there(
    store: SqliteStore, syncs: list[str]
) -> None:
    syncs.clear()
    add(store)
    assert syncs == ["sync"]
    job = claimed(store)
    assert syncs == ["sync"], "beats and claims need not wait for the disk"
    finish(store, job)
    assert syncs == ["sync", "sync"]


# Nobody opens the database but SQLite

EVERYTHING = """
import sys
from pathlib import Path
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
sys.path.insert(0, sys.argv[2])
from lineclear import Queue
from lineclear.job import Ending
from lineclear.store import runs
from tests.store.ground import new

queue = Queue(sys.argv[1], by="ann")
with queue.changes():
    for _ in range(4):
        queue.put(new(key="k"))
        job = queue.put(new()).job
        with queue.store.write() as tx:
            run = runs.claim(tx, "line", "w1")
            runs.finish(tx, run, Ending(exit_code=1), by="w1")
        queue.move(job.id, "top")
    queue.lanes(), queue.jobs(), queue.events(), queue.why(1), queue.check(), queue.wal_bytes()
    queue.lane("line").pause()
    queue.wait(1)
queue.clear()
queue.close()
queue.lanes()
seen = {name for name in opened if name.startswith(sys.argv[1])}
print(sorted(name[len(sys.argv[1]):] for name in seen if not name.startswith(sys.argv[1] + ".d")))
"""


def test_p19_nothing_opens_the_database_or_its_index_but_sqlite(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with python(EVERYTHING, tmp_path / "q.db", root) as process:
        assert said(process) == "['-wal']"


def test_p19_sqlite_connects_in_one_place_only() -> None:
    callers = []
    for path in Path(lineclear.__file__).parent.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "connect":
                of = node.value.id if isinstance(node.value, ast.Name) else ""
                callers += [path.name] * (of == "sqlite3")
    assert callers == ["sqlite.py"]


LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
for line in sys.stdin:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        print("free", flush=True)
    except sqlite3.OperationalError as error:
        print(error, flush=True)
"""


def test_p19_looking_and_closing_beside_a_write_does_not_give_its_lock_away(
    tmp_path: Path,
) -> None:
    queue = Queue(tmp_path / "q.db", by="ann")
    job = queue.put(new()).job
    with python(LOCKED, tmp_path / "q.db") as other:
        with queue.store.write() as tx:
            tx.all("lane_add", lane="held")
            beside = Queue(tmp_path / "q.db")
            assert beside.get(job.id).id == job.id
            assert beside.lanes() and queue.lanes() and queue.files.mode and queue.wal_bytes()
            beside.close()
            tell(other)
            assert said(other) == "database is locked"
        tell(other)
        assert said(other) == "free"
    queue.close()
