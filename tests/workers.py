"""Real workers on a database of their own, with a module of tasks, for tests that kill them.

No product code knows of tests: what is to happen at a named point of a worker's life is wrapped
around a function by the small program that starts it.
"""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tests.helpers import SOURCES, wait_until

from lineclear import Job, Queue
from lineclear.job import Event, State
from lineclear.tasks import load_app
from lineclear.worker import linux
from lineclear.worker.keeper import all_pids, read_proc

T = TypeVar("T")

TOKEN = "LINECLEAR_TEST_SITE"
SHORT = {
    "LINECLEAR_BEAT_S": "0.3",
    "LINECLEAR_LEASE_S": "1.5",
    "LINECLEAR_GRACE_S": "10",
    "LINECLEAR_KILL_S": "1",
}
LONG_LEASE = {"LINECLEAR_BEAT_S": "10", "LINECLEAR_LEASE_S": "600"}
"""For what must not wait for a lease: a test that did would not end in time."""

PRELUDE = """
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
from lineclear import Context, Queue

HERE = Path(__file__).parent
queue = Queue(HERE / "jobs.db", by="tester")

def say(*words):
    line = " ".join(map(str, (time.monotonic_ns(), *words))) + "\\n"
    with open(HERE / "diary", "a") as diary:
        diary.write(line)

def once(name):
    try:
        os.close(os.open(HERE / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def until(name):
    while not (HERE / name).exists():
        time.sleep(0.005)
"""
"""``say`` keeps a diary that no crash tears, ``once`` is true for the first who asks."""

DRIVER = """
import inspect, os, signal, sys
from pathlib import Path
from lineclear.worker import hosted, hosts, own, run, supervisor
from lineclear.worker.hosted import HostRun
from lineclear.worker.own import OwnRun
from lineclear.worker.talk import Talk
from lineclear.worker.leases import Leases
from lineclear.store import runs

def around(owner, name, before=None, after=None):
    real = getattr(owner, name)
    if inspect.iscoroutinefunction(real):
        async def wrapped(*args, **more):
            before and before(*args, **more)
            answer = await real(*args, **more)
            after and after(answer)
            return answer
    else:
        def wrapped(*args, **more):
            before and before(*args, **more)
            answer = real(*args, **more)
            after and after(answer)
            return answer
    setattr(owner, name, wrapped)

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

{sabotage}

signal.signal(signal.SIGHUP, signal.SIG_DFL)
lanes = tuple(sys.argv[2:]) or None
sys.exit(supervisor.run_worker(Path(sys.argv[1]), lanes=lanes))
"""


@dataclass(eq=False)
class Worker:
    """One life of a worker: a real process."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def end(self, *, timeout_s: float = 30) -> int:
        """Ask it to stop, and wait until it has."""
        self.process.terminate()
        return self.process.wait(timeout_s)

    def wait(self, timeout_s: float = 30) -> int:
        return self.process.wait(timeout_s)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass(eq=False)
class Site:
    """A folder with a database, its tasks, and everything that was started on it."""

    folder: Path
    source: str
    env: dict[str, str] = field(default_factory=dict)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.module = self.folder / f"tasks_{self.token}.py"
        self.module.write_text(PRELUDE + self.source)

    @cached_property
    def queue(self) -> Queue:
        found = load_app(f"{self.module}:queue")
        assert isinstance(found, Queue)
        return found

    def submit(self, name: str, /, **args: Any) -> int:
        return self.queue.submit(name, args).id

    def worker(self, *lanes: str, sabotage: str = "", **env: str) -> Worker:
        log = self.folder / f"worker-{len(self.workers)}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    DRIVER.replace("{sabotage}", sabotage),
                    self.queue.database,
                    *lanes,
                ],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd=self.folder,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": str(SOURCES),
                    TOKEN: self.token,
                    **SHORT,
                    **self.env,
                    **env,
                },
            )
        self.workers.append(Worker(process, log))
        return self.workers[-1]

    # Looking

    def job(self, job_id: int) -> Job:
        return self.queue.get(job_id)

    def ended(self, *ids: int, timeout_s: float = 60) -> list[Job]:
        try:
            return self.queue.wait(*ids, timeout_s=timeout_s)
        except TimeoutError:
            raise AssertionError(self.report(*ids)) from None

    def running(self, job_id: int, *, attempt: int = 1, timeout_s: float = 30) -> Job:
        """The job once this attempt's process is on record."""

        def look() -> Job | None:
            job = self.job(job_id)
            there = job.state is State.RUNNING and job.child_pid is not None
            return job if there and job.attempt >= attempt else None

        return self.until(look, what=f"job {job_id} to run", timeout_s=timeout_s)

    def stop(self, *pids: int) -> None:
        """SIGSTOP to all, at a moment when none of them is amid a write: a stopped process keeps
        the database's lock, and nobody could go on before it does.
        """

        def stopped() -> bool:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            with closing(sqlite3.connect(self.queue.database, timeout=0.3)) as database:
                try:
                    database.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    for pid in pids:
                        os.kill(pid, signal.SIGCONT)
                    return False
            return True

        self.until(stopped, what="a moment between two writes")

    def until_said_or_ended(self, job_id: int, *words: object) -> None:
        self.until(lambda: self.said(*words) or self.job(job_id).ended, what=f"{words}")

    def until_not(self, ask: Callable[[Worker], T], worker: Worker, *, was: T) -> None:
        self.until(lambda: ask(worker) != was, what=f"something else than {was}")

    def until_attempt(self, job_id: int, number: int) -> None:
        self.until(lambda: self.job(job_id).attempt >= number, what=f"attempt {number}")

    def until_alone(self, worker: Worker) -> None:
        """Until the dead are forgotten and this worker is known."""
        self.until(lambda: [one.pid for one in self.queue.workers()] == [worker.pid])

    def until(
        self, condition: Callable[[], T | None], *, what: str = "", timeout_s: float = 30
    ) -> T:
        try:
            answer = wait_until(condition, timeout_s=timeout_s, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report()}") from None
        assert answer is not None
        return answer

    def report(self, *ids: int) -> str:
        jobs = [self.job(one) for one in ids] or self.queue.jobs(limit=5)
        logs = "\n".join(f"--- {one.log.name}\n{one.said[-3000:]}" for one in self.workers)
        return "\n".join(f"job {j.id}: {j.state} {j.attempt} {j.error}" for j in jobs) + logs

    @property
    def diary(self) -> list[list[str]]:
        """What tasks said, a list of words each, the moment (ns) first."""
        path = self.folder / "diary"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def said(self, *words: object) -> int:
        """How often a task said exactly this."""
        return sum(line[1:] == [str(word) for word in words] for line in self.diary)

    def until_said(self, *words: object, times: int = 1, timeout_s: float = 30) -> None:
        self.until(
            lambda: self.said(*words) >= times, what=f"a task to say {words}", timeout_s=timeout_s
        )

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def events(self, job_id: int | None = None) -> list[Event]:
        return self.queue.events(job_id, limit=100_000)

    def kinds(self, job_id: int) -> list[str]:
        return [event.kind for event in self.events(job_id)]

    def processes(self) -> list[int]:
        """Everything alive that was started here, by whomever."""
        mark = f"{TOKEN}={self.token}".encode()
        found = [pid for pid in all_pids() if mark in read_proc(f"{pid}/environ").split(b"\0")]
        return [pid for pid in found if (seen := linux.look(pid)) is not None and not seen.gone]

    def keeper(self, worker: Worker) -> int:
        def look() -> int | None:
            for pid in self.processes():
                seen = linux.look(pid)
                command = read_proc(f"{pid}/cmdline")
                if seen is not None and seen.parent == worker.pid and b"keeper.py" in command:
                    return pid
            return None

        return self.until(look, what="the keeper")

    # What must be true

    def check(self) -> None:
        """No second end, no attempt skipped, never more running than slots, a sound database."""
        slots = {lane.name: lane.concurrency for lane in self.queue.lanes()}
        running: dict[str, set[int]] = defaultdict(set)
        attempts: dict[int, int] = defaultdict(int)
        for event in self.events():
            if event.job is None or event.lane is None:
                if event.kind == "slots set" and event.lane is not None:
                    slots[event.lane] = max(slots[event.lane], event.detail["concurrency"])
                continue
            if event.kind == "claimed":
                assert event.job not in running[event.lane], f"claimed twice: {event}"
                attempts[event.job] += 1
                assert event.attempt == attempts[event.job], event
                running[event.lane].add(event.job)
                assert len(running[event.lane]) <= slots[event.lane], event
            elif event.kind in ("back in line", "to retry"):
                running[event.lane].remove(event.job)
            elif event.kind == "ended":
                running[event.lane].discard(event.job)
        now = {job.id for job in self.queue.running()}
        assert now == {job for jobs in running.values() for job in jobs}
        with closing(sqlite3.connect(self.queue.database)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def check_idle(self) -> None:
        """With no worker left: nothing runs, nothing is left in the staging folder."""
        self.until(lambda: not self.processes(), what="the end of every process")
        self.check()
        staging = self.queue.files.staging(0, 0).parent
        assert not staging.exists() or list(staging.iterdir()) == [], list(staging.iterdir())
        assert [p.name for p in self.folder.iterdir() if p.name.startswith(".")] == []

    def close(self) -> None:
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.wait(30)
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.queue.close()
        sys.modules.pop(self.module.stem, None)


@contextmanager
def site(folder: Path, source: str, **env: str) -> Iterator[Site]:
    made = Site(folder, source, env)
    try:
        yield made
    finally:
        made.close()
