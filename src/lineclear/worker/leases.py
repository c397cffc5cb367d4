"""Judges the runs of other workers and takes back the dead ones. Called by the supervisor at each
scan.

On one machine a held worker lock means alive, whatever any clock says, and a free one means dead at
once. A worker that holds its lock but has not beaten for a whole lease is stopped or wedged: its
run is taken over in three steps, the lease first, then the processes, then the slot, so that never
two run at once. Where it cannot be shown that the processes are gone, nothing is taken.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from lineclear.clock import here
from lineclear.files import Files
from lineclear.job import Cause, Ending, Job, Wish
from lineclear.job import State as JobState
from lineclear.locks import is_held
from lineclear.store import runs
from lineclear.store.base import Tx
from lineclear.store.runs import Sign
from lineclear.worker.keeper import sweep
from lineclear.worker.processes import kill_tree
from lineclear.worker.writer import Writer

log = logging.getLogger("lineclear.worker")

UNKNOWN_LEASE_MS = 60_000
ROUNDS, END_S = 8, 2.0
"""How long one scan tries to end what is left of a run. It tries again at the next: meanwhile this
worker's own jobs start and stop as usual.
"""

AGAIN_S = 1.0


class State(Enum):
    ALIVE = "alive"
    DEAD = "dead"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be thought of a run, and for how many seconds that holds without a new sign."""

    state: State
    holds_s: float | None = None


@dataclass(slots=True)
class Leases:
    """The runs of others as one worker has seen them. Not frozen: it remembers when it first saw
    each beat.
    """

    files: Files
    writer: Writer
    worker: str
    _seen: dict[tuple[int, str], tuple[int, float]] = field(default_factory=dict)
    _taken: set[str | None] = field(default_factory=set)
    """Leases that replaced a stopped worker's, of runs whose processes are not gone yet."""

    async def take_back(
        self, foreign: list[Job], signs: list[Sign], *, tick_ms: int
    ) -> tuple[bool, float | None]:
        """Take back what is dead: whether anything was freed, and in how many seconds to look
        again.
        """
        known = {sign.id: sign for sign in signs}
        dead: dict[str, list[Job]] = {worker: [] for worker in self._dead_workers()}
        freed, again_s = False, []
        for job in foreign:
            judgement = self.judge(job, known.get(job.worker or ""), tick_ms=tick_ms)
            if judgement.state is State.DEAD:
                dead.setdefault(job.worker or "", []).append(job)
            elif judgement.state is State.STOPPED:
                taken = await self._take_over(job, known.get(job.worker or ""))
                freed = freed or taken
                again_s += [] if taken else [AGAIN_S]
            elif judgement.holds_s is not None:
                again_s.append(judgement.holds_s)
        for worker, jobs in dead.items():
            # What it started must be gone before its jobs are free, and before its name is.
            gone = await asyncio.to_thread(sweep, worker, ROUNDS)
            forgotten = gone and await self._bury(worker, jobs, known.get(worker))
            freed = freed or (gone and bool(jobs))
            again_s += [] if forgotten else [AGAIN_S]
        self._forget_all_but(foreign)
        return freed, min(again_s, default=None)

    def _dead_workers(self) -> list[str]:
        locks = [lock for lock in self.files.workers.glob("*.lock") if lock.stem != self.worker]
        return [lock.stem for lock in locks if is_held(lock) is False]

    def judge(self, job: Job, sign: Sign | None, *, tick_ms: int) -> Judgement:
        lease_ms = sign.lease_ms if sign else UNKNOWN_LEASE_MS
        held = is_held(self.files.lock(job.worker or ""))
        if held is False:
            return Judgement(State.DEAD)
        if held is None and job.wish is Wish.KILL and (sign is None or sign.place != here()):
            # Nothing here will ever show what became of it, as after a restored backup: a person's
            # word ends it.
            return Judgement(State.DEAD)
        if held and sign and sign.place.same_clock(here()):
            left_ms = (job.beat_tick or 0) + lease_ms - tick_ms
            if left_ms >= 0:
                return Judgement(State.ALIVE, (left_ms + 1) / 1000)
            if sign.place == here():
                # Not at the first look: after a locked database or a paused machine everybody is
                # late, and who looks first must not end the others' work.
                return self._by_watching(job, lease_ms // 6)
        if held or sign is None or sign.place != here():
            return Judgement(State.ALIVE)  # nothing shows that its processes are gone
        return self._by_watching(job, lease_ms)

    def _by_watching(self, job: Job, for_ms: int) -> Judgement:
        """The same beat, seen for so long by this process's own clock, is one that has stopped."""
        now_s = time.monotonic()
        key = (job.id, job.lease or "")
        beat, since_s = self._seen.get(key, (-1, now_s))
        if beat != job.beat_tick:
            beat, since_s = job.beat_tick or 0, now_s
            self._seen[key] = (beat, since_s)
        left_s = since_s + for_ms / 1000 - now_s
        return Judgement(State.ALIVE, left_s) if left_s > 0 else Judgement(State.STOPPED)

    async def _take_over(self, job: Job, sign: Sign | None) -> bool:
        log.warning("job %d: its worker holds its lock but does not beat; taking over", job.id)
        mine: Job | None = job
        if job.lease not in self._taken:
            mine = await self.writer.write(lambda tx: runs.take_lease(tx, job))
        if mine is None:
            return False
        self._taken.add(mine.lease)
        if not await asyncio.to_thread(_end_processes, mine, sign):
            log.warning("job %d: its processes could not be ended; not taken", job.id)
            return False
        await self._give_back([mine], sign)
        self._taken.discard(mine.lease)
        return True

    async def _give_back(self, jobs: list[Job], sign: Sign | None) -> None:
        ending = Ending("lost", sentence=_sentence(sign))

        for job in jobs:  # before its end is stored: nobody would know of it any more
            await asyncio.to_thread(wipe, self.files, job)

        def finish(tx: Tx) -> list[Job]:
            ended = [runs.finish(tx, job, ending, by=self.worker) for job in jobs]
            return [job for job in ended if job is not None]

        for job in await self.writer.write(finish):
            log.info("job %d: taken back, %s", job.id, ending.sentence)
            await asyncio.to_thread(wipe_kept, self.files, job)

    async def _bury(self, worker: str, jobs: list[Job], sign: Sign | None) -> bool:
        """Take back a dead worker's runs and forget it. False where it left more than was seen: it
        may have claimed between the look and its death.
        """
        await self._give_back(jobs, sign)

        def forget(tx: Tx) -> bool:
            if sign is not None:
                return runs.drop_worker(tx, sign, kind="worker lost")
            return all(each.id != worker for each in runs.signs(tx))

        forgotten = await self.writer.write(forget)
        if forgotten:
            self.files.lock(worker).unlink(missing_ok=True)
        return forgotten

    def _forget_all_but(self, foreign: list[Job]) -> None:
        keys = {(job.id, job.lease or "") for job in foreign}
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}


def mark_of(job: Job) -> str:
    """What the processes of a run carry in their environment. Jobs that share one share this."""
    if job.options.runs_in == "own":
        return f"{job.worker}.{job.id}.{job.attempt}"
    return f"{job.worker}.{host_of(job)}"


def host_of(job: Job) -> str:
    """Which host processes may run a job: those of its lane and application."""
    application = f"{job.lane} {job.app.rpartition(':')[0]}"
    return f"host-{zlib.crc32(application.encode(errors='surrogatepass')):08x}"


def wipe(files: Files, job: Job) -> None:
    """Remove what a run that is over left behind: its staging, and a file beside a target that it
    had begun.
    """
    shutil.rmtree(files.staging(job.id, job.attempt), ignore_errors=True)
    if job.publishing:
        temporary = Path(job.publishing)
        if temporary.name.startswith(".") and temporary.name.endswith(f".{job.id}-{job.attempt}"):
            with suppress(OSError):  # its folder may be gone, or not ours any more
                temporary.unlink()


def wipe_older(files: Files, job: Job) -> None:
    """Remove what earlier attempts and revisions left. Never a later one's: this claim may have
    been taken over meanwhile.
    """
    _wipe_below(files.staging(job.id, job.attempt))
    _wipe_below(files.kept(job.id, job.revision))


def wipe_kept(files: Files, ended: Job) -> None:
    """Remove what a job kept over its attempts, where its end leaves no use for it."""
    stopped_now = ended.state is JobState.QUEUED and ended.cause is Cause.STOPPED_NOW
    if ended.state is JobState.DONE or (stopped_now and not ended.options.keep_on_stop_now):
        _wipe_below(files.kept(ended.id, ended.revision + 1))


def _wipe_below(folder: Path) -> None:
    """Remove the folders of the same job with lower numbers."""
    job, _, least = folder.name.partition("-")
    for other in folder.parent.glob(f"{job}-*"):
        number = other.name.partition("-")[2]
        if number.isdecimal() and int(number) < int(least):
            shutil.rmtree(other, ignore_errors=True)


def _end_processes(job: Job, sign: Sign | None) -> bool:
    if sign is None or sign.place != here():
        return False
    if job.child_pid is None or job.child_start is None:
        return sweep(mark_of(job), ROUNDS)
    return kill_tree(job.child_pid, job.child_start, mark_of(job), timeout_s=END_S)


def _sentence(sign: Sign | None) -> str:
    if sign is not None and here().boot and sign.place.boot != here().boot:
        return "The machine restarted, or its container did; it resumes at its place."
    return "Its worker was lost; it resumes at its place."
