"""One run: a claimed job and the process it runs in. The supervisor makes one for each claim.

It ends in one place: when the process and all that came of it are gone, the end is stored under the
lease, and only then is the slot free. A run whose lease is lost ends its process and changes
nothing: each write carries the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable
from io import FileIO
from typing import Literal

from lineclear.job import Ending, Job, State, Wish
from lineclear.store import acts, runs
from lineclear.store.base import Tx
from lineclear.worker import linux
from lineclear.worker.leases import mark_of, wipe, wipe_kept, wipe_older
from lineclear.worker.logreader import LogReader, Stream
from lineclear.worker.logs import JobLog, pump
from lineclear.worker.processes import (
    FD,
    Exit,
    NotStarted,
    Spawned,
    kill_tree,
    spawn,
    terminate_group,
)
from lineclear.worker.talk import Heard, Owner, Talk, sentence_of

log = logging.getLogger("lineclear.worker")

Why = Literal["interrupt", "wish", "timeout", "lost"]

DRAIN_S = 5.0
SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
ROOM_MS = 60_000
STOP_SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT)


class Run:
    """A job in its own process, from spawn to reap."""

    def __init__(self, job: Job, owner: Owner, *, echo: bool = False) -> None:
        """``echo`` shows the job's output on this process's own too, for a run by hand."""
        self.talk = Talk(job, owner, heard=self._heard)
        self._owner = owner
        self._log = JobLog(owner.files.log(job.id, job.attempt), mode=owner.files.mode)
        self._reader = LogReader(owner.files.log(job.id, job.attempt)) if echo else None
        self._spawned: Spawned | None = None
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._ended_for: Why | None = None
        self._fault = ""
        self._state = State.RUNNING
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def job(self) -> Job:
        return self.talk.job

    @property
    def pid(self) -> int | None:
        return self._spawned.pid if self._spawned else None

    @property
    def state(self) -> State:
        """The job's state once the run has ended."""
        return self._state

    async def live(self) -> None:
        """The whole life, and the start of the job that was claimed with its end."""
        oom_before = linux.oom_kills()
        try:
            await asyncio.to_thread(self._prepare)
            if (why := self._wanted_over) is not None:
                await self._finish(Ending(why))
                return
            self._spawned = self._spawn()
        except (NotStarted, OSError) as error:
            self._log.note(str(error))
            kind: Literal["no room", "not started"]
            kind = "no room" if shortage(error) else "not started"
            await self._finish(Ending(kind, sentence=str(error)))
            return
        with contextlib.ExitStack() as watching:
            self._watch(watching, self._spawned)
            talking = asyncio.create_task(self._converse(self._spawned))
            await self._exited.wait()
            await self._end_processes(self._spawned)
            seen = self._spawned.reap() or Exit()
            _, late = await asyncio.wait([talking], timeout=DRAIN_S)
            if late and self.talk.said_end:  # what it said is stored however long that takes
                stored = asyncio.ensure_future(self.talk.end_stored.wait())
                await asyncio.wait([talking, stored], return_when=asyncio.FIRST_COMPLETED)
                stored.cancel()
            if not talking.done():
                # To its very end: it holds a descriptor, whose number is free after this.
                talking.cancel()
                await asyncio.wait([talking])
            self._pump_rest(self._spawned)
        self._spawned.close()
        ending = Ending(
            self._ended_for or self._why_signalled(seen),
            exit_code=seen.code,
            signal=seen.signal,
            out_of_memory=seen.signal == signal.SIGKILL and self._by_memory_killer(oom_before),
            sentence=self._fault,
        )
        await self._finish(ending)

    @property
    def _wanted_over(self) -> Why | None:
        """Why there is no point in starting its process."""
        if self._ended_for is None and (stop := self.talk.asked_to_stop) is not None:
            return "interrupt" if stop.why == "interrupt" else "wish"
        return self._ended_for

    def _why_signalled(self, seen: Exit) -> Literal["itself", "interrupt"]:
        """A service manager that stops the worker signals the processes of its runs too."""
        stop = self.talk.asked_to_stop
        stopping = stop is not None and stop.why == "interrupt" and seen.signal in STOP_SIGNALS
        return "interrupt" if stopping else "itself"

    def _by_memory_killer(self, oom_before: int) -> bool:
        """Whether it struck since then, other than at a run that has ended by it already."""
        told = max(oom_before, self._owner.oom_told)
        if linux.oom_kills() <= told:
            return False
        self._owner.oom_told = told + 1
        return True

    # What others ask of it

    def wish(self, want: Wish | None, by: str) -> None:
        """What people want of this job, as the last beat or scan brought it."""
        match want:
            case Wish.CANCEL:
                self.talk.stop("cancel", by)
            case Wish.KILL | Wish.REQUEUE:
                self.end_now("wish")
            case None:
                pass

    def interrupt(self) -> None:
        """Ask it to stop at its next safe point because the worker stops."""
        self.talk.stop("interrupt", "the worker")

    def end_gently(self, why: Why) -> None:
        """TERM to its group now, the end of everything after the time for that."""
        self._ended_for = self._ended_for or why
        if self._spawned is not None and not self._exited.is_set():
            terminate_group(self._spawned.pid, self._spawned.start)
            self._later(self._owner.settings.kill_s, lambda: self.end_now(why))

    def end_now(self, why: Why) -> None:
        """KILL now. The first reason stands, except that a lost lease outranks every other."""
        if why == "lost" or self._ended_for is None:
            self._ended_for = why
        self._kill()

    def _kill(self) -> None:
        if self._spawned is not None and not self._exited.is_set():
            terminate_group(self._spawned.pid, self._spawned.start, signal.SIGKILL)

    # Starting

    def _prepare(self) -> None:
        files, job = self._owner.files, self.job
        wipe_older(files, job)
        files.make(files.staging(job.id, job.attempt))
        files.make(files.log(job.id, job.attempt).parent)
        files.make(files.kept(job.id, job.revision))

    def _spawn(self) -> Spawned:
        command = [
            sys.executable,
            "-P",  # what lies in the folder it starts in never hides the standard library
            "-m",
            "lineclear.worker.child",
            "--fd",
            FD,
            "--parent",
            str(os.getpid()),
        ]
        return spawn(
            command, env=dict(os.environ), mark=mark_of(self.job), nice=self.job.options.nice or 0
        )

    def _watch(self, watching: contextlib.ExitStack, spawned: Spawned) -> None:
        def readable(descriptor: int, call: Callable[[], None]) -> None:
            self._loop.add_reader(descriptor, call)
            watching.callback(self._loop.remove_reader, descriptor)

        def exited() -> None:
            self._loop.remove_reader(spawned.pidfd)
            self._exited.set()

        for note in spawned.notes:
            self._log.note(note)
        readable(spawned.pidfd, exited)
        for pipe, stream in _pipes(spawned):
            readable(pipe.fileno(), self._pumper(pipe, stream))
        watching.callback(self._cancel_timers)

    def _pumper(self, pipe: FileIO, stream: Stream) -> Callable[[], None]:
        descriptor = pipe.fileno()

        def call() -> None:
            if not pump(pipe, self._log, stream):
                self._loop.remove_reader(descriptor)
            self._show()

        return call

    def _show(self) -> None:
        for line in self._reader.read_new() if self._reader else ():
            with contextlib.suppress(OSError):  # who looked on has gone: the job goes on
                sys.stderr.write(f"{line.text}\n")

    def _pump_rest(self, spawned: Spawned) -> None:
        for pipe, stream in _pipes(spawned):
            self._loop.remove_reader(pipe.fileno())
            pump(pipe, self._log, stream)

    # While it runs

    async def _converse(self, spawned: Spawned) -> None:
        """Nobody may wait for an answer that does not come: where talking fails, it is ended."""
        try:
            await self.talk.until_closed(spawned)
        except Exception as error:
            log.warning("job %d: talking to its process failed", self.job.id, exc_info=error)
            self._fault = sentence_of(error)
            self._log.note(self._fault)
            self._kill()

    def _heard(self, what: Heard) -> None:
        match what:
            case "started" if self.job.options.timeout_s is not None:
                self._later(self.job.options.timeout_s, self._time_is_up)
            case "ended":
                self._later(self._owner.settings.kill_s, lambda: self.end_gently("wish"))
            case "lost":
                self.end_now("lost")
            case _:
                pass

    def _time_is_up(self) -> None:
        if not self.talk.said_end:
            self._log.note(f"Its time limit of {self.job.options.timeout_s:g} s is over.")
            self.talk.stop("timeout", "its time limit")
            self._later(self._owner.settings.kill_s, lambda: self.end_gently("timeout"))

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, call))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    # Ending

    async def _end_processes(self, spawned: Spawned) -> None:
        """Everything that came of the run has to be gone before its slot is free."""
        while not await asyncio.to_thread(kill_tree, spawned.pid, spawned.start, spawned.mark):
            log.warning(
                "job %d: some of its processes will not end; its slot stays taken", self.job.id
            )

    async def _finish(self, ending: Ending) -> None:
        job = self.job
        last = self.talk.take_beat()
        self._log.close()
        self._show()
        await asyncio.to_thread(wipe, self._owner.files, job)

        def finish(tx: Tx) -> tuple[Job | None, list[Job]]:
            runs.beat(tx, [last])
            after = runs.finish(tx, job, ending, by=self._owner.worker)
            if after is not None and ending.why == "no room":
                self._wait_for_room(tx, ending.sentence)
                return after, []
            return after, [] if after is None else self._owner.ended(tx, after)

        after, following = await self._owner.writer.write(finish)
        if after is None:
            log.warning(
                "job %d: its lease is lost; nothing more of attempt %d counts", job.id, job.attempt
            )
            return
        self._state = after.state
        log.info("job %d: %s%s", job.id, after.state, f", {after.error}" if after.error else "")
        self._owner.start(following)  # first: it is claimed, and has to beat
        await asyncio.to_thread(wipe_kept, self._owner.files, after)

    def _wait_for_room(self, tx: Tx, sentence: str) -> None:
        """The machine lacks room for a process: the lane waits instead of failing job after job."""
        until_ms = tx.now_ms + ROOM_MS
        acts.pause(
            tx, self.job.lane, by="the worker", why=sentence, until_ms=until_ms, source="worker"
        )


def shortage(error: Exception) -> bool:
    """Whether the machine lacks something for now, which is nothing that the job has done."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in SHORTAGES


def _pipes(spawned: Spawned) -> tuple[tuple[FileIO, Stream], ...]:
    return (spawned.stdout, "o"), (spawned.stderr, "e")
