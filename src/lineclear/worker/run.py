"""One run: a claimed job, wherever it runs. The supervisor makes one for each claim: an ``OwnRun``
(own.py) or a ``HostRun`` (hosted.py).

It ends in one place: when what ran is over, the end is stored under the lease, and only then is the
slot free. A run whose lease is lost ends what runs and changes nothing: each write carries the
lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from lineclear.job import Ending, Job, Outcome, State, Wish
from lineclear.store import acts, runs
from lineclear.store.base import Tx
from lineclear.worker.leases import wipe, wipe_kept, wipe_older
from lineclear.worker.logreader import LogReader
from lineclear.worker.logs import JobLog
from lineclear.worker.owner import Owner
from lineclear.worker.processes import (
    Exit,
)
from lineclear.worker.talk import Heard, Talk

log = logging.getLogger("lineclear.worker")

Why = Literal["interrupt", "wish", "timeout", "lost"]

DRAIN_S = 5.0
SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
ROOM_MS = 60_000
STOP_SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGINT)


class Run:
    """What the supervisor needs of a run."""

    def __init__(self, job: Job, owner: Owner, *, echo: bool = False) -> None:
        """``echo`` shows the job's output on this process's own too, for a run by hand."""
        self.talk = Talk(job, owner, heard=self._heard)
        self._owner = owner
        self._reader = LogReader(owner.files.log(job.id, job.attempt)) if echo else None
        self._loop = asyncio.get_running_loop()
        self._ended_for: Why | None = None
        self._fault = ""
        self._state = State.RUNNING
        self.followed = False
        """Whether the lane's next job was claimed with the end of this one."""
        self._timers: list[asyncio.TimerHandle] = []

    @cached_property
    def _log(self) -> JobLog:
        """Made for the first line: most jobs of a host print none."""
        files = self._owner.files
        return JobLog(files.log(self.job.id, self.job.attempt), mode=files.mode)

    @property
    def job(self) -> Job:
        return self.talk.job

    @property
    def state(self) -> State:
        """The job's state once the run has ended."""
        return self._state

    async def live(self) -> None:
        """The whole life, and the start of the job that was claimed with its end."""
        raise NotImplementedError

    def end(self) -> None:
        """End what runs, at once."""
        raise NotImplementedError

    def end_gently(self, why: Why) -> None:
        """Ask what runs to end, and end it after the time for that."""
        raise NotImplementedError

    @property
    def _wanted_over(self) -> Why | None:
        """Why there is no point in starting its process."""
        if self._ended_for is None and (stop := self.talk.asked_to_stop) is not None:
            return "interrupt" if stop.why == "interrupt" else "wish"
        return self._ended_for

    def why_signalled(self, seen: Exit) -> Literal["itself", "interrupt"]:
        """A service manager that stops the worker signals the processes of its runs too."""
        stop = self.talk.asked_to_stop
        stopping = stop is not None and stop.why == "interrupt" and seen.signal in STOP_SIGNALS
        return "interrupt" if stopping else "itself"

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

    def end_now(self, why: Why) -> None:
        """KILL now. The first reason stands, except that a lost lease outranks every other."""
        if why == "lost" or self._ended_for is None:
            self._ended_for = why
        self.end()

    # Starting

    def prepare(self) -> None:
        """An attempt finds nothing of earlier ones; what it needs itself is made when it does."""
        wipe_older(self._owner.files, self.job)

    # While it runs

    def _heard(self, what: Heard) -> None:
        match what:
            case "started" if self.job.options.timeout_s is not None:
                self._later(self.job.options.timeout_s, self._time_is_up)
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

    def _show(self) -> None:
        for line in self._reader.read_new() if self._reader else ():
            with contextlib.suppress(OSError):  # who looked on has gone: the job goes on
                sys.stderr.write(f"{line.text}\n")

    # Ending

    async def _finish(self, ending: Ending, outcome: Outcome | None = None) -> None:
        """``outcome`` is the task's word where it is not stored yet."""
        job, files = self.job, self._owner.files
        self._cancel_timers()
        last = self.talk.take_beat()
        if "_log" in vars(self):
            self._log.close()
        self._show()
        if job.publishing or files.staging(job.id, job.attempt).exists():
            await asyncio.to_thread(wipe, files, job)

        def finish(tx: Tx) -> tuple[Job | None, list[Job]]:
            if last.moves:
                runs.beat(tx, [last])
            after = runs.finish(tx, job, ending, by=self._owner.worker, outcome=outcome)
            if after is not None and ending.why == "no room":
                self._wait_for_room(tx, ending.sentence)
                return after, []
            return after, [] if after is None else self._owner.ended(tx, after)

        after, following = await self._owner.writer.write(
            finish, early=lambda ended: self._owner.start(seated(ended[1]))
        )
        if after is None:
            log.warning(
                "job %d: its lease is lost; nothing more of attempt %d counts", job.id, job.attempt
            )
            return
        self._state, self.followed = after.state, bool(following)
        log.info("job %d: %s%s", job.id, after.state, f", {after.error}" if after.error else "")
        self._owner.start(unseated(following))  # first: it is claimed, and has to beat
        if job.attempt > 1 or files.kept(job.id, job.revision).exists():
            await asyncio.to_thread(wipe_kept, files, after)

    def _wait_for_room(self, tx: Tx, sentence: str) -> None:
        """The machine lacks room for a process: the lane waits instead of failing job after job."""
        until_ms = tx.now_ms + ROOM_MS
        acts.pause(
            tx, self.job.lane, by="the worker", why=sentence, until_ms=until_ms, source="worker"
        )


def seated(jobs: list[Job]) -> list[Job]:
    """Claims of host jobs whose process is there: they start before their claim is on disk."""
    return [job for job in jobs if job.child_pid is not None]


def unseated(jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if job.child_pid is None]


def shortage(error: Exception) -> bool:
    """Whether the machine lacks something for now, which is nothing that the job has done."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in SHORTAGES
