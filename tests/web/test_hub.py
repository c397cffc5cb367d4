"""What the streams cost and survive: nothing while nobody looks, trouble of the store, the slow."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.helpers import wait_until
from tests.web.streams import Public, Server, server
from tests.workers import Site, site

from lineclear import Queue
from lineclear.web.asked import Heard
from lineclear.web.hub import Channel, Hub
from lineclear.web.subscriber import BUFFER_BYTES, Subscriber

TASKS = """
@queue.task(lane="render", title="{name}", unit="pages")
def slow(ctx: Context, name: str = "book"):
    until(f"{name}.end")

@queue.task(lane="render")
def quick(ctx: Context, text: str = ""):
    pass

@queue.task(lane="render")
def wild(ctx: Context):
    told = [(12, 7), (12, 40), (0, 0), (float("nan"), 7), (-1, 7), (1e9, 7)]
    for number, (done, total) in enumerate(told):
        ctx.progress(done, total)
        say("told", number)
        until(f"go.{number}")

@queue.task(lane="render")
def half(ctx: Context):
    for number in ctx.steps(range(10), name=str, weight=lambda n: 1):
        if number == 6 and once("stopped"):
            say("at six")
            while True:
                ctx.safe_point()
                time.sleep(0.01)
        if number == 6:
            say("again")
            until("go on")
"""
CALLS = {"futex", "epoll_wait", "getpid", "write", "writev", "stat", "newfstatat", "statx"}
"""Of a tick: one look at the clock, one at the tokens' file, one write."""
SHORT_AGES = """
from lineclear import looks
looks.SILENT_AFTER_MS = 1_500
looks.QUIET_AFTER_MS = 500
hub.Hub.tick_s = 0.2
"""
TROUBLE = """
from lineclear.errors import StoreBusy
real = hub.state.look
def look(queue, *more):
    if Path(sys.argv[1]).with_name("trouble").exists():
        raise StoreBusy("The database stayed locked.")
    return real(queue, *more)
hub.state.look = look
"""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, TASKS) as made:
        made.queue.check_store()
        yield made


@pytest.fixture
def served(ground: Site) -> Iterator[Server]:
    with server(ground.queue.database) as made:
        yield made


def listening(ground: Site) -> list[str]:
    folder = ground.queue.files.bell
    return [p.name for p in folder.iterdir() if "watch" in p.name] if folder.is_dir() else []


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_e19_the_server_listens_only_while_somebody_looks(ground: Site, served: Server) -> None:
    with served.watch() as warm:
        warm.until_event("snapshot")
    wait_until(lambda: not listening(ground), what="the listener is gone")
    before = descriptors(served.process.pid)
    with served.watch() as one, served.watch(lane="render", slow=1) as two:
        one.until_event("snapshot")
        two.until(lambda: two.over or two.of("snapshot"))
        assert len(listening(ground)) == 1
    wait_until(lambda: not listening(ground), what="the listener is gone")
    wait_until(lambda: descriptors(served.process.pid) <= before, what="its descriptors are gone")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace tells")
def test_e19_with_a_page_open_and_nothing_running_only_the_tick_happens(ground: Site) -> None:
    with server(ground.queue.database, patch="hub.Hub.tick_s = 1.0") as served:
        with served.watch() as seen:
            seen.until(lambda: len(seen.of("tick")) >= 2)
            ticks = len(seen.of("tick"))
            traced = subprocess.run(
                ["timeout", "4", "strace", "-f", "-q", "-p", str(served.process.pid)],
                capture_output=True,
                text=True,
                check=False,
            )
            ticks = len(seen.of("tick")) - ticks
        rows = [row.rpartition("] ")[2] for row in traced.stderr.splitlines() if " = " in row]
        calls = [row.partition("(")[0] for row in rows if not row.startswith("<...")]
        if not calls:
            pytest.skip("strace may not attach here")
        assert set(calls) <= CALLS, calls
        assert len(calls) <= 25 * (ticks + 1), traced.stderr


def test_case_d5_a_fifth_stream_of_a_browser_closes_its_oldest(served: Server) -> None:
    streams = []
    for _ in range(5):
        streams.append(served.open(browser="mine").begun())
    other = served.open(browser="another").begun()
    first, *rest = streams
    first.until(lambda: first.over)
    assert first.events[-1][0] == "replaced"
    assert not any(each.over for each in [*rest, other])
    for each in [*streams, other]:
        each.close()


def test_case_e3_an_open_stream_does_not_keep_the_log_from_being_reset(
    ground: Site, served: Server
) -> None:
    with served.watch() as seen:
        seen.until_event("snapshot")
        with closing(sqlite3.connect(ground.queue.database, isolation_level=None)) as database:
            database.execute("CREATE TABLE filler (text TEXT)")
            for _ in range(3_000):
                database.execute("INSERT INTO filler VALUES (?)", ["x" * 8_000])
        ground.submit("quick")
        seen.until_event("job", state="queued")
    assert ground.queue.wal_bytes() < 12_000_000, "of 24 MB written"


def test_e26_trouble_of_the_store_closes_the_streams_and_says_why(ground: Site) -> None:
    with server(ground.queue.database, patch=TROUBLE) as served:
        with served.watch() as seen:
            seen.until_event("snapshot")
            ground.touch("trouble")
            job = ground.submit("quick")
            seen.until(lambda: seen.over)
            cursor = seen.cursor
        wait_until(lambda: not listening(ground), what="the listener is gone")
        with served.watch(after=cursor) as refused:
            refused.until(lambda: refused.status)
            assert refused.status == 503
            assert "retry-after" in refused.headers
            assert refused.problem["detail"] == "The database stayed locked."
        (ground.folder / "trouble").unlink()
        with served.watch(after=cursor) as again:
            again.until_event("job", id=job)
            assert not again.of("snapshot")


def test_e26_a_locked_database_is_reported_when_a_stream_is_opened(ground: Site) -> None:
    with (
        server(ground.queue.database, patch="hub.OPENING_S = 0.3") as served,
        closing(sqlite3.connect(ground.queue.database, isolation_level=None)) as database,
    ):
        database.execute("BEGIN IMMEDIATE")
        with served.watch() as seen:
            seen.until(lambda: seen.status)
            assert seen.status == 503, seen.events
        database.execute("ROLLBACK")
        with served.watch() as again:
            again.until_event("snapshot")


def test_what_is_asked_wrongly_is_refused_or_forgiven(ground: Site, served: Server) -> None:
    ground.submit("quick")
    for after in ("", "x", "-", "zz-1", f"{served.get('api/v1/me').json()['boot']}-999999"):
        with served.watch(after=after) as seen:
            seen.until_event("snapshot")
    with served.watch(lane="nowhere") as seen:
        seen.until(lambda: seen.status)
        assert seen.status == 404
    with served.watch(log="x@1") as seen:
        seen.until(lambda: seen.status)
        assert (seen.status, seen.problem["field"]) == (422, "log")


def test_a_cursor_older_than_the_journal_gets_a_snapshot(ground: Site, served: Server) -> None:
    job = ground.submit("quick")
    with served.watch() as seen:
        seen.until_event("snapshot")
        cursor = seen.cursor
    ground.queue.hold(job)
    with closing(sqlite3.connect(ground.queue.database)) as database, database:
        database.execute("DELETE FROM event WHERE seq <= ?", [int(cursor.split("-")[1])])
    with served.watch(after=cursor) as seen:
        seen.until_event("snapshot")


def test_many_changes_at_once_are_a_snapshot(ground: Site, served: Server) -> None:
    for _ in range(3):
        ground.submit("quick")
    with served.watch() as seen, served.watch(lane="render", marks=0) as plain:
        seen.until_event("snapshot")
        plain.until_event("snapshot")
        with ground.queue.store.write(durable=False) as tx:
            for _ in range(600):
                tx.all(
                    "event_add", job=1, lane="render", at_ms=1, kind="held", attempt=0, by="x",
                    detail="{}",
                )  # fmt: skip
            tx.ring("watch")
        seen.until(lambda: len(seen.of("snapshot")) == 2)
        plain.until(lambda: len(plain.of("snapshot")) == 2)


def test_marks_only_for_those_who_ask(ground: Site, served: Server) -> None:
    ground.submit("quick", text="\x02@eve\x03")
    ground.queue.lane("render").pause("a \x02@eve\x03 pause")
    with served.watch() as marked, served.watch(marks=0) as plain:
        ours, theirs = marked.until_event("snapshot"), plain.until_event("snapshot")
        assert "\x02@tester\x03" in ours["sentence"]
        assert "\x02" not in theirs["sentence"] and "by you at" in theirs["sentence"]
        assert theirs["waiting"][0]["args"] == {"text": "\x02@eve\x03"}
        ground.queue.lane("render").resume()
        plain.until(lambda: plain.of("queue"))
    assert "\x02@eve" not in ours["sentence"]


def test_e05_e06_silence_is_said_by_the_tick_though_nothing_is_written(ground: Site) -> None:
    job = ground.submit("slow")
    worker = ground.worker()
    child = ground.running(job).child_pid
    assert child is not None
    with server(ground.queue.database, patch=SHORT_AGES) as served, served.watch() as seen:
        quiet = seen.until(lambda: [row for row in rows(seen.fold.rows) if row["look"] == "quiet"])
        assert quiet[0]["word"].startswith("Quiet for")
        ground.stop(worker.pid)
        before = ground.queue.last_seq()
        seen.until(lambda: seen.fold.rows[job]["look"] == "silent", what="not responding")
        seen.until(lambda: "1 not responding" in seen.fold.queue["sentence"])
        assert seen.fold.queue["tone"] == "bad"
        assert ground.queue.last_seq() == before
        worker.signal(signal.SIGCONT)
        seen.until(lambda: seen.fold.rows[job]["look"] in ("quiet", "running"))
        ground.touch("book.end")
        seen.until(lambda: seen.fold.rows[job]["state"] == "done")


def rows(known: dict[int, Public]) -> list[Public]:
    return list(known.values())


def test_e25_a_worker_that_dies_idle_is_missed_where_jobs_wait(ground: Site) -> None:
    ground.queue.check_store()
    ground.submit("quick")
    ground.queue.lane("render").pause()
    worker = ground.worker()
    fast = "hub.Hub.tick_s = 0.2"
    with server(ground.queue.database, patch=fast) as served, served.watch() as seen:
        seen.until(lambda: seen.fold.queue and not seen.fold.queue["unserved"])
        worker.kill()
        seen.until(lambda: seen.fold.queue["unserved"])
        assert "Nobody serves lane render." in seen.fold.queue["sentence"]
        ground.worker()
        seen.until(lambda: not seen.fold.queue["unserved"])


def test_case_d6_progress_that_makes_no_sense_never_leaves_the_bar(ground: Site) -> None:
    job = ground.submit("wild")
    ground.worker()
    with server(ground.queue.database) as served, served.watch() as seen:
        for number in range(6):
            ground.until_said("told", number)
            ground.touch(f"go.{number}")
        seen.until(lambda: job in seen.fold.rows and seen.fold.rows[job]["state"] == "done")
    told = [data for kind, _, data in seen.events if kind in ("job", "progress")]
    running = [data for data in told if data.get("state") != "done"]
    assert all(
        data["percent"] is None or 0 <= data["percent"] < 100
        for data in running
        if "percent" in data
    )


def test_case_d7_a_resumed_job_is_shown_where_it_was(ground: Site) -> None:
    job = ground.submit("half")
    ground.worker()
    ground.until_said("at", "six")
    with server(ground.queue.database) as served, served.watch() as seen:
        seen.until(lambda: job in seen.fold.rows and seen.fold.rows[job]["done"] == 6)
        ground.queue.lane("render").stop_now()
        seen.until(lambda: seen.fold.rows[job]["state"] == "queued")
        ground.queue.lane("render").resume()
        ground.until_said("again")
        seen.until(lambda: seen.fold.rows[job]["try"] == 2)
        assert seen.fold.rows[job]["percent"] == 60
        again = [d for k, _, d in seen.events if k in ("job", "progress") and d.get("try") == 2]
        assert min(data["percent"] for data in again) == 60
        ground.touch("go on")
        seen.until(lambda: seen.fold.rows[job]["state"] == "done")


def test_a_slow_reader_gets_a_snapshot_instead_of_what_did_not_fit(tmp_path: Path) -> None:
    async def tell() -> list[bytes]:
        hub = Hub(Queue(tmp_path / "jobs.db"), boot="b", heard=Heard())
        each = Subscriber(Channel(hub, None, 1.0), browser="", me=None)
        for _ in range(BUFFER_BYTES // 1000 + 10):
            each.put(b"x" * 1000)
        each.put_log(b"log")
        first = await each.next()
        each.put(b"after")
        second = await each.next()
        each.end(b"last")
        return [part or b"" for part in (first, second, await each.next(), await each.next())]

    first, second, last, none = asyncio.run(tell())
    assert first.startswith(b"event: snapshot\nid: b-0\n") and first.endswith(b"log")
    assert (second, last, none) == (b"after", b"last", b"")


def test_a_reader_that_does_not_read_costs_bounded_memory(ground: Site, served: Server) -> None:
    where = urlsplit(served.url)
    for number in range(60):
        ground.submit("quick", text="x" * 400 + str(number))
    with closing(socket.socket()) as deaf, served.watch() as seen:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((where.hostname, where.port))
        deaf.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        seen.until_event("snapshot")
        wait_until(lambda: descriptors(served.process.pid), what="")
        before = memory_kb(served.process.pid)
        for number in range(150):
            ground.queue.move(60 - number % 2, "top")
        last = ground.queue.last_seq()
        seen.until(lambda: seen.cursor.endswith(f"-{last}"))
        assert memory_kb(served.process.pid) - before < 30_000


def memory_kb(pid: int) -> int:
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])
