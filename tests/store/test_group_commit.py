"""The one writing thread: each operation stands or falls alone, and trouble is waited out."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import SOURCES
from tests.store.ground import add, claimed, finish, new

from lineclear.errors import StoreBusy
from lineclear.store import acts, reads, runs
from lineclear.store import sqlite as module
from lineclear.store.base import Tx, note_event
from lineclear.store.sqlite import SqliteStore
from lineclear.worker.writer import EXIT_UNSAFE, Writer

ODD = "a\0b \ud800 ü"
ESCAPED = "a\\x00b \\ud800 ü"


@pytest.fixture
def writer(store: SqliteStore) -> Iterator[Writer]:
    made = Writer(store)
    yield made
    made.close()


def submit(tx: Tx) -> int:
    return acts.submit(tx, new())[0].id


def poisoned(tx: Tx) -> None:
    submit(tx)
    raise ValueError("poison")


def impossible(tx: Tx) -> None:
    submit(tx)
    tx.all("lane_set_delay", lane="line", delay_ms=-1)


def in_one_group(store: SqliteStore, writer: Writer, *calls: Callable[[Tx], Any]) -> list[Any]:
    """What comes of operations that arrive while the writer is busy with another one."""
    busy, go = threading.Event(), threading.Event()

    def first(tx: Tx) -> None:
        busy.set()
        assert go.wait(10)

    async def ask() -> list[Any]:
        head = asyncio.create_task(writer.write(first))
        await asyncio.to_thread(busy.wait, 10)
        rest = [asyncio.create_task(writer.write(call)) for call in calls]
        await asyncio.sleep(0)
        go.set()
        await head
        return await asyncio.gather(*rest, return_exceptions=True)

    return asyncio.run(ask())


def test_p21_one_poisoned_operation_undoes_nothing_of_the_others(
    store: SqliteStore, writer: Writer
) -> None:
    commits = []
    real = store._commit

    def counted(*args: Any, **named: Any) -> None:
        commits.append(1)
        real(*args, **named)

    store._commit = counted  # type: ignore[method-assign]
    answers = in_one_group(store, writer, submit, poisoned, impossible, submit)
    assert answers[0] == 1 and answers[3] == 2
    assert isinstance(answers[1], ValueError) and isinstance(answers[2], sqlite3.IntegrityError)
    assert len(commits) == 2, "they were one group"
    with store.read() as tx:
        assert [row["id"] for row in tx.all("job_line", lane="line", limit=9)] == [1, 2]
        assert [event.job for event in reads.events(tx, None, after=0, limit=9)] == [1, 2]


def test_p21_e26_a_locked_database_is_waited_out_and_nothing_accepted_is_lost(
    store: SqliteStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    holder = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.5, lambda: holder.execute("COMMIT"))
    timer.start()
    with pytest.raises(StoreBusy):
        add(store)
    assert in_one_group(store, writer, submit, submit) == [1, 2]
    timer.join()
    holder.close()


def test_p21_a_full_disk_stops_the_group_and_it_is_stored_whole_once_there_is_space(
    store: SqliteStore, writer: Writer
) -> None:
    connection = store._writer
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    timer = threading.Timer(0.3, lambda: connection.execute("PRAGMA max_page_count = 99999"))
    timer.start()

    def large(tx: Tx) -> int:
        return acts.submit(tx, new(args='"' + "x" * 40_000 + '"'))[0].id

    assert in_one_group(store, writer, submit, large) == [1, 2]
    timer.join()


UNSAFE = """
import asyncio, errno, sys
from pathlib import Path
from lineclear.store import acts, sqlite
from lineclear.worker.writer import Writer
store = sqlite.SqliteStore(Path(sys.argv[1]))
def failing(descriptor):
    raise OSError(errno.EIO, "Input/output error")
sqlite._fdatasync = failing
async def main():
    await Writer(store).write(lambda tx: tx.all("lane_add", lane="x"))
    print("acknowledged")
asyncio.run(main())
"""


def test_p18_a_disk_that_does_not_confirm_ends_the_process_with_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", UNSAFE, str(tmp_path / "q.db")]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(SOURCES)}, check=False
    )
    assert (ended.returncode, ended.stdout) == (EXIT_UNSAFE, "")
    assert "did not confirm a write" in ended.stderr


# Text that no database stores faithfully


def test_p21_nul_and_lone_surrogates_are_escaped_wherever_text_goes_in(store: SqliteStore) -> None:
    job = add(store, title=ODD, key=ODD, args='{"t": "\\u0000\\ud800"}')
    assert add(store, key=ODD).id == job.id, "the same key is found by the same text"
    assert (job.title, job.key, job.args) == (ESCAPED, ESCAPED, '{"t": "\\u0000\\ud800"}')
    run = claimed(store)
    with store.write() as tx:
        runs.beat(tx, [runs.Beat(run.id, run.lease or "", 1, 1, 1, None, None, ODD, ODD)])
        runs.keep_step(tx, run, name=ODD, weight=1, result='"\\u0000"', started_ms=1)
        note_event(tx, "seen", job=run, by=ODD, detail={"why": ODD})
    with store.read() as tx:
        after = reads.job(tx, run.id)
        assert (after.unit, after.note) == (ESCAPED, ESCAPED)
        assert runs.steps_of(tx, run.id) == {ESCAPED: {"weight": 1.0, "result": '"\\u0000"'}}
        events = reads.events(tx, None, after=0, limit=9)
    assert (events[-1].by, events[-1].detail) == (ESCAPED, {"why": ESCAPED})
    assert events[-2].detail == {"name": ESCAPED}
    text = "".join(f"{event.by}{event.detail}" for event in events) + after.note
    text.encode("utf-8")


def test_p21_what_is_escaped_stays_as_it_is_when_it_is_stored_again(store: SqliteStore) -> None:
    first = add(store, title=ODD)
    finish(store, claimed(store))
    assert add(store, title=first.title).title == first.title
