"""The worker: claims jobs, starts a process for each, beats for them, ends and reaps them.

Thin on purpose: it never imports an application. One asyncio loop and one writing thread; with
nothing to do it makes no system call until the bell rings or a moment comes that it knows of.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import signal
import socket
from collections.abc import Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lineclear import locks
from lineclear.clock import here
from lineclear.errors import Refused, WrongState
from lineclear.files import Files
from lineclear.job import Job, State, Wish
from lineclear.settings import Settings
from lineclear.store import runs
from lineclear.store.base import Tx
from lineclear.store.runs import EVERY_LANE, Sign
from lineclear.store.sqlite import SqliteStore
from lineclear.worker import linux
from lineclear.worker.claims import Claims, Scan
from lineclear.worker.hosted import HostRun
from lineclear.worker.hosts import Hosts
from lineclear.worker.keeping import Keeping
from lineclear.worker.leases import Leases
from lineclear.worker.linux import set_subreaper
from lineclear.worker.own import OwnRun
from lineclear.worker.processes import reap_orphans
from lineclear.worker.run import Run, seated, unseated
from lineclear.worker.timer import WallTimer
from lineclear.worker.writer import Writer

log = logging.getLogger("lineclear.worker")

MOVE_INTERVAL_S = 1.0
TIE_AGAIN_S = 10.0
MINUTE_MS = 60_000
EXIT_FAILED = 1
EXIT_REFUSED = 5
EXIT_INTERRUPTED = 130


def run_worker(
    database: Path,
    *,
    lanes: tuple[str, ...] | None = None,
    only_job: int | None = None,
    settings: Settings | None = None,
) -> int:
    """Run a worker until it is asked to stop; answers the exit code.

    ``only_job`` runs that one job by hand, by the same claim, past its lane's pause and delay but
    never its slots, and serves no lane.

    Raises:
        Refused: that job does not wait, or its lane has no free slot.
    """
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.INFO)
    store = SqliteStore(database)
    served = () if only_job is not None else lanes or (EVERY_LANE,)
    supervisor = Supervisor(store, lanes=served, only=only_job, settings=settings)
    try:
        return asyncio.run(supervisor.work())
    finally:
        store.close()


class Supervisor:
    """One life of a worker."""

    def __init__(
        self,
        store: SqliteStore,
        *,
        lanes: tuple[str, ...],
        only: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings.from_environment()
        self.files: Files = store.files
        self.worker = secrets.token_hex(16)
        self.writer = Writer(store)
        self.hosts = Hosts(self)
        self._oom_told = 0
        self._store = store
        self._only = only
        self._leases = Leases(self.files, self.writer, self.worker)
        self._sign = Sign(
            id=self.worker,
            host=socket.gethostname(),
            place=here(),
            pid=os.getpid(),
            version=version("lineclear"),
            lanes=lanes,
            lease_ms=int(self.settings.lease_s * 1000),
            started_ms=0,
        )
        self._claims = Claims(self._sign, store.is_trouble, self.hosts.process_for, only)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wanted = asyncio.Event()
        self._stopping = 0
        self._result: State | None = None
        self._refused: Refused | None = None
        self._paced: dict[str, int] = {}
        self._beating = False
        self._last_beat = 0.0
        self._next_beat: asyncio.TimerHandle | None = None
        self._look_again: asyncio.TimerHandle | None = None

    async def work(self) -> int:
        """The whole life of this worker."""
        self._loop = asyncio.get_running_loop()
        set_subreaper()
        for folder in (self.files.workers, self.files.logs, *self.files.of_jobs):
            self.files.make(folder)
        lock = locks.take(self.files.lock(self.worker), mode=self.files.mode)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, lock)
            self._listener = self._store.bell.listen("work")
            stack.callback(self._listener.close)
            self._timer = WallTimer()
            stack.callback(self._timer.close)
            self._keeping = Keeping(self.worker)
            stack.callback(self._keeping.close)
            self._watch(stack)
            await self.writer.write(lambda tx: runs.add_worker(tx, self._sign))
            log.info("worker %d serves %s", os.getpid(), self._served)
            self._wanted.set()
            gc.collect()
            gc.freeze()
            await self._until_over()
            await self.hosts.close()
            gone = await self.writer.write(lambda tx: runs.drop_worker(tx, self._sign))
        if gone:  # else its free lock tells the next worker to take back what is left
            self.files.lock(self.worker).unlink(missing_ok=True)
        self.writer.close()
        if self._refused is not None:
            raise self._refused
        return self._exit_code()

    @property
    def _served(self) -> str:
        if self._only is not None:
            return f"job {self._only} by hand"
        return "every lane" if EVERY_LANE in self._sign.lanes else ", ".join(self._sign.lanes)

    def _exit_code(self) -> int:
        if self._only is None:
            return 0
        if self._result is State.DONE:
            return 0
        return EXIT_INTERRUPTED if self._stopping else EXIT_FAILED

    # Waking

    def _watch(self, stack: contextlib.ExitStack) -> None:
        for descriptor, call in (
            (self._listener.fileno(), self._rung),
            (self._timer.fileno(), self._due),
        ):
            self._loop.add_reader(descriptor, call)
            stack.callback(self._loop.remove_reader, descriptor)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._asked_to_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else nohup means it
            self._loop.add_signal_handler(signal.SIGHUP, self._asked_to_stop)
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def _rung(self) -> None:
        if self._listener.drain():
            self._wanted.set()
        if self._listener.again_s is not None:
            self._loop.call_later(self._listener.again_s, self._rung_again)

    def _rung_again(self) -> None:
        self._wanted.set()
        self._rung()

    def _due(self) -> None:
        if self._timer.read():
            self._wanted.set()

    def _scan_in(self, seconds: float | None) -> None:
        if self._look_again is not None:
            self._look_again.cancel()
        self._look_again = None
        if seconds is not None:
            self._look_again = self._loop.call_later(seconds, self._wanted.set)

    def _reap(self) -> None:
        own = {run.pid for run in self._runs.values() if isinstance(run, OwnRun) and run.pid}
        own |= self.hosts.pids
        reap_orphans(own | self._keeping.pids)

    async def _until_over(self) -> None:
        while not self._over:
            await self._wanted.wait()
            self._wanted.clear()
            if not self._over:
                await self._scan()

    @property
    def _over(self) -> bool:
        """Nothing runs, and nothing more is to start."""
        finished = self._stopping or self._result is not None or self._refused is not None
        return bool(finished) and not self._runs

    # Scanning and claiming

    async def _scan(self) -> None:
        tied = self._listener.hold()
        try:
            scan = await self.writer.write(
                self._look, early=lambda scan: self.start(seated(scan.claimed))
            )
        except Refused as error:
            if self._only is None:  # only what was asked for by hand can be
                raise
            self._refused = error
            return
        self.start(unseated(scan.claimed))
        self._pass_on_wishes(scan.mine)
        freed, again_s = await self._leases.take_back(
            scan.foreign, scan.signs, tick_ms=scan.tick_ms
        )
        self._timer.set(scan.next_wall_ms)
        self._scan_in(again_s if tied else min(again_s or TIE_AGAIN_S, TIE_AGAIN_S))
        if freed:
            self._wanted.set()
        elif self._only is not None and not self._closed:
            self._refused = WrongState(
                "queued", f"Job {self._only} cannot start now: its lane has no free slot."
            )

    @property
    def _closed(self) -> bool:
        """Whether nothing more is to be claimed: it stops, or has what it was named by hand."""
        named = self._only is not None and (bool(self._runs) or self._result is not None)
        return self._stopping > 0 or named

    def _look(self, tx: Tx) -> Scan:
        return self._claims.look(tx, held=set(self._runs), closed=self._closed)

    def ended(self, tx: Tx, job: Job) -> list[Job]:
        """The next job of the lane, claimed in the transaction that freed the slot."""
        if self._only is not None or self._stopping:
            return []
        return self._claims.in_lane(tx, job.lane, most=1)

    def start(self, jobs: list[Job]) -> None:
        for job in jobs:
            kind = OwnRun if job.options.runs_in == "own" else HostRun
            run: Run = kind(job, self, echo=self._only is not None)
            self._runs[job.lease or ""] = run
            if self._stopping:  # asked between the claim and now
                run.interrupt()
            self._in_background(self._live(run))
            log.info("job %d: %s, attempt %d", job.id, job.name, job.attempt)
            self._beat_in(self.settings.beat_s)

    async def _live(self, run: Run) -> None:
        try:
            await run.live()
        except Exception:
            # Its lease runs out now, and then it is taken back like a stopped worker's.
            log.exception("job %d: the worker failed at it. Please report this.", run.job.id)
            run.end_now("lost")
        finally:
            del self._runs[run.job.lease or ""]
            self._paced.pop(run.job.lease or "", None)
        if self._only is not None:
            self._result = run.state
        if not run.followed or self._closed:  # else its end has looked for what comes next
            self._wanted.set()

    def by_memory_killer(self, oom_before: int) -> bool:
        told = max(oom_before, self._oom_told)
        if linux.oom_kills() <= told:
            return False
        self._oom_told = told + 1
        return True

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself would forget it
        task.add_done_callback(self._background_over)

    def _background_over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("The worker failed. Please report this.", exc_info=error)

    def _pass_on_wishes(self, mine: list[Job]) -> None:
        for job in mine:
            if (run := self._runs.get(job.lease or "")) is not None:
                run.wish(job.wish, job.wish_by or "")

    def submitted(self) -> None:
        self._wanted.set()

    # Beating

    def moved(self) -> None:
        """Progress is stored at once, and then at most once a second, with a beat."""
        self._beat_in(max(0.0, self._last_beat + MOVE_INTERVAL_S - self._loop.time()))

    def _beat_in(self, seconds: float) -> None:
        at = self._loop.time() + seconds
        if self._next_beat is not None:
            if self._next_beat.when() <= at:
                return
            self._next_beat.cancel()
        self._next_beat = self._loop.call_at(at, self._beat_now)

    def _beat_now(self) -> None:
        self._next_beat = None
        if not self._runs:
            return
        self._beat_in(self.settings.beat_s)
        if not self._beating:
            self._beating = True
            self._last_beat = self._loop.time()
            self._in_background(self._beat())

    async def _beat(self) -> None:
        beating = dict(self._runs)
        beats = {lease: run.talk.take_beat() for lease, run in beating.items()}

        def beat(tx: Tx) -> dict[int, tuple[Wish | None, str]]:
            self._keep_pace(tx, beating)
            return runs.beat(tx, beats.values())

        try:
            answers = await self.writer.write(beat, durable=False)
        finally:
            self._beating = False
        for lease, run in beating.items():
            if run.job.id in answers:
                run.wish(*answers[run.job.id])
            elif lease in self._runs:
                run.end_now("lost")

    def _keep_pace(self, tx: Tx, beating: dict[str, Run]) -> None:
        """Progress at the end of each minute, one row a minute and run."""
        minute = tx.now_ms // MINUTE_MS * MINUTE_MS
        for lease, run in beating.items():
            done = run.talk.done
            if done is not None and self._paced.get(lease) != minute:
                self._paced[lease] = minute
                runs.keep_pace(tx, run.job, minute_ms=minute, done=done)

    # Stopping

    def _asked_to_stop(self) -> None:
        self._stopping += 1
        if self._stopping == 1:
            log.info(
                "stopping: %d running, up to %g s to reach a safe point",
                len(self._runs),
                self.settings.grace_s,
            )
            for run in self._runs.values():
                run.interrupt()
            self._loop.call_later(self.settings.grace_s, self._grace_is_over)
        elif self._stopping == 2:
            for run in self._runs.values():
                run.end_now("interrupt")
        else:
            # What keeps it is a database that does not answer. Whoever comes next takes back the
            # rest, as after a crash.
            os._exit(EXIT_INTERRUPTED)
        self._wanted.set()

    def _grace_is_over(self) -> None:
        for run in self._runs.values():
            run.end_gently("interrupt")
