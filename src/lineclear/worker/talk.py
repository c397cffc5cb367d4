"""Everything said between the supervisor and a run. One for each run, made by run.py.

Every write on behalf of the run carries its lease; one that is refused ends the process. It never
ends a job: that is for run.py, once the process is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lineclear import wire
from lineclear.errors import LineClearError, Refused
from lineclear.job import Job, NewJob
from lineclear.store import acts, runs
from lineclear.store.base import Tx
from lineclear.store.runs import Beat
from lineclear.worker.line import Line

if TYPE_CHECKING:
    from lineclear.worker.owner import Owner

KEPT_ARGS = 4096
Heard = Literal["started", "ended", "lost"]


class Talk:
    """One conversation, from the process's start to the end of its socket."""

    def __init__(self, job: Job, owner: Owner, *, heard: Callable[[Heard], None]) -> None:
        """``heard`` is told when the job was handed over, has said its end, or lost its lease."""
        self.job = job
        self.asked_to_stop: wire.Stop | None = None
        self.said_end = False
        self.end_stored = asyncio.Event()
        self._owner = owner
        self._heard = heard
        self._line: Line | None = None
        self._number = 0
        self._moves = 0
        self._moved: wire.Moved | None = None
        self._moved_tick = 0
        self._done = job.done

    @property
    def done(self) -> float | None:
        """Progress as last heard, for the pace."""
        return self._done

    def take_beat(self) -> Beat:
        """What moved since the last beat, taken: the next one starts from nothing."""
        moved, moves = self._moved, self._moves
        self._moved, self._moves = None, 0
        beat = Beat(self.job.id, self.job.lease or "")
        if not moves:
            return beat
        beat = replace(beat, moved=1, moves=moves, moved_tick=self._moved_tick)
        if moved is None:
            return beat
        return replace(
            beat, done=moved.done, total=moved.total, unit=moved.unit or None, note=moved.note
        )

    def stop(self, why: Literal["cancel", "interrupt", "timeout"], by: str) -> None:
        """The next safe point is to raise; asked before the process listens, it is told then."""
        if self.asked_to_stop is not None and self.asked_to_stop.why in (why, "cancel"):
            return
        self.asked_to_stop = wire.Stop(why, by)
        self._say(self.asked_to_stop)

    def break_off(self, why: Literal["cancel", "interrupt"], by: str) -> None:
        """A coroutine's next ``await`` is to raise too. What was asked before stays the reason."""
        self.asked_to_stop = (self.asked_to_stop or wire.Stop(why, by))._replace(now=True)
        self._say(self.asked_to_stop)

    async def hand_over(self, pid: int, start: int, line: Line, *, number: int = 0) -> bool:
        """Send the job to its process, which knows it by ``number``. False: the lease is lost.

        Nothing runs before its process is on record, so that whoever takes over can end it.
        """
        job = self.job
        if (job.child_pid, job.child_start) != (pid, start):
            self.job = replace(job, child_pid=pid, child_start=start)
            if not await self._owner.writer.write(
                lambda tx: runs.set_child(tx, job, pid=pid, start=start)
            ):
                self._heard("lost")
                return False
        run = await self._run()
        self._line, self._number = line, number
        line.send(run)
        if self.asked_to_stop is not None:
            self._say(self.asked_to_stop)
        if len(self.job.args) > KEPT_ARGS:  # they are the process's now
            self.job = replace(self.job, args="")
        self._heard("started")
        await line.drain()
        return True

    async def _run(self) -> wire.Run:
        job, files = self.job, self._owner.files
        steps = {}
        if job.attempt > 1:
            steps = await self._owner.writer.write(
                lambda tx: runs.steps_of(tx, job.id), durable=False
            )
        return wire.Run(
            job=job.id,
            attempt=job.attempt,
            lane=job.lane,
            task=job.task,
            app=job.app,
            args=job.args,
            key=job.key,
            title=job.title,
            unit=job.unit,
            steps=steps,
            staging=str(files.staging(job.id, job.attempt)),
            kept=str(files.kept(job.id, job.revision)),
            memory_mb=job.options.memory_mb,
            started_ms=job.started_ms or 0,
        )

    def _say(self, message: wire.Stop | wire.Answer) -> None:
        if self._line is not None:
            self._line.send(message._replace(job=self._number))

    async def hear(self, message: wire.Message) -> None:
        """Keep what the process says, and answer it.

        Raises:
            LineClearError: it is nonsense, or what it wanted stored could not be.
        """
        self._moves += 1
        self._moved_tick = time.monotonic_ns() // 1_000_000
        match message:
            case wire.Ready():
                pass
            case wire.Moved():
                self._moved = message
                self._done = message.done
                self._owner.moved()
            case wire.StepDone():
                await self._answer(message.re, await self._keep_step(message))
            case wire.Publish():
                await self._answer(message.re, await self._may_publish(message))
            case wire.Submit():
                await self._submit(message)
            case wire.Ended() if not self.said_end:
                self.said_end = True  # before it is stored, which a locked database may delay
                kept = await self._owner.writer.write(
                    lambda tx: runs.set_outcome(tx, self.job, message.outcome)
                )
                self.end_stored.set()
                self._heard("ended")
                await self._answer(message.re, kept)
            case _:
                raise wire.WireError(f"{type(message).__name__} is not to be said now")

    async def _answer(self, question: int, kept: bool) -> None:  # noqa: FBT001  the verdict itself
        self._say(wire.Answer(question, "kept" if kept else "lost"))
        if not kept:
            self._heard("lost")

    async def _keep_step(self, step: wire.StepDone) -> bool:
        beat = self.take_beat()

        def keep(tx: Tx) -> bool:
            runs.beat(tx, [beat])
            return runs.keep_step(
                tx, self.job, name=step.name, weight=step.weight, result=step.result,
                started_ms=step.started_ms,
            )  # fmt: skip

        return await self._owner.writer.write(keep)

    async def _may_publish(self, publish: wire.Publish) -> bool:
        temporary = str(Path(publish.path).parent / Path(publish.temporary).name)
        self.job = replace(self.job, publishing=temporary)
        return await self._owner.writer.write(
            lambda tx: runs.set_publishing(tx, self.job, temporary)
        )

    async def _submit(self, asked: wire.Submit) -> None:
        new = NewJob(
            task=asked.task, lane=asked.lane, args=asked.args, app=asked.app, key=asked.key,
            title=asked.title, parent=self.job.id, ordinal=f"{self.job.revision}/{asked.ordinal}",
            by=f"job {self.job.id}", options=asked.options,
        )  # fmt: skip
        beat = self.take_beat()

        def submit(tx: Tx) -> Job | None:
            # A run that lost its lease has no say any more, whatever its job does now.
            return acts.submit(tx, new)[0] if runs.beat(tx, [beat]) else None

        try:
            job = await self._owner.writer.write(submit)
        except Refused as error:
            self._say(wire.Answer(asked.re, "refused", error=str(error)))
            return
        if job is None:
            await self._answer(asked.re, False)  # noqa: FBT003  the verdict itself
        else:
            self._owner.submitted()
            self._say(wire.Answer(asked.re, "kept", {"id": job.id, "title": job.title}))


def sentence_of(error: BaseException) -> str:
    """Why a run's process was ended, where talking to it failed."""
    if isinstance(error, wire.WireError):
        return f"Its process said what cannot be understood, and was ended: {error}"
    what = str(error) if isinstance(error, LineClearError) else f"{type(error).__name__}: {error}"
    return f"Talking to its process failed, and it was ended: {what}"
