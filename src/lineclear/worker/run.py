"""One run: a claimed job, the process it runs in, and everything said between the two. The supervisor makes one.

It ends in one place: when the process and all that came of it are gone, the end is stored under the lease, and only
then is the slot free. A run whose lease is lost ends its process and writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Literal, Protocol

from lineclear import wire
from lineclear.errors import LineClearError, Refused
from lineclear.files import Files
from lineclear.job import Ending, Job, NewJob, State, Wish
from lineclear.settings import Settings
from lineclear.store import acts, runs
from lineclear.store.base import Tx
from lineclear.store.runs import Beat
from lineclear.worker import linux
from lineclear.worker.leases import mark_of, wipe
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
from lineclear.worker.writer import Writer

log = logging.getLogger("lineclear.worker")

Why = Literal["interrupt", "wish", "timeout", "lost"]

DRAIN_S = 5.0
READ_BYTES = 256 * 1024


class Owner(Protocol):
    """What a run needs of its supervisor."""

    files: Files
    writer: Writer
    settings: Settings
    worker: str

    def moved(self) -> None:
        """A run has something to store with the next beat."""

    def ended(self, tx: Tx, job: Job) -> Job | None:
        """Inside the transaction that frees the slot: the next job of that lane, if it can start at once."""


class Run:
    """A job in its own process, from spawn to reap."""

    def __init__(self, job: Job, owner: Owner, *, echo: bool = False) -> None:
        """``echo`` shows the job's output on this process's own too, for a run by hand."""
        self.job = job
        self._owner = owner
        self._log = JobLog(owner.files.log(job.id, job.attempt), mode=owner.files.mode)
        self._reader = LogReader(owner.files.log(job.id, job.attempt)) if echo else None
        self._spawned: Spawned | None = None
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._stop_sent = ""
        self._ended_for: Why | None = None
        self._said_end = False
        self._state = State.RUNNING
        self._moves = 0
        self._moved: wire.Moved | None = None
        self._moved_tick = 0
        self._done = job.done
        self._writer: asyncio.StreamWriter | None = None
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def pid(self) -> int | None:
        return self._spawned.pid if self._spawned else None

    @property
    def state(self) -> State:
        """The job's state once the run has ended."""
        return self._state

    async def live(self) -> Job | None:
        """The whole life; answers the next job of the lane where one was claimed with the end."""
        oom_before = linux.oom_kills()
        ending: Ending
        try:
            await asyncio.to_thread(self._prepare)
            self._spawned = self._spawn()
        except (NotStarted, OSError) as error:
            self._log.note(str(error))
            return await self._finish(Ending("not started", sentence=str(error)))
        with contextlib.ExitStack() as watching:
            self._watch(watching, self._spawned)
            talk = asyncio.create_task(self._converse(self._spawned))
            await self._exited.wait()
            await self._end_processes(self._spawned)
            seen = self._spawned.reap() or Exit()
            _, late = await asyncio.wait([talk], timeout=DRAIN_S)
            for task in late:
                task.cancel()
            self._pump_rest(self._spawned)
        self._spawned.close()
        ending = Ending(
            self._ended_for or "itself",
            exit_code=seen.code,
            signal=seen.signal,
            out_of_memory=seen.signal == signal.SIGKILL and linux.oom_kills() > oom_before,
        )
        return await self._finish(ending)

    # What others ask of it

    def wish(self, want: Wish | None, by: str) -> None:
        """What people want of this job, as the last beat or scan brought it."""
        match want:
            case Wish.CANCEL:
                self._stop("cancel", by)
            case Wish.KILL | Wish.REQUEUE:
                self.end_now("wish")
            case None:
                pass

    def interrupt(self) -> None:
        """Ask it to stop at its next safe point because the worker stops."""
        self._stop("interrupt", "the worker")

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
        if self._spawned is not None and not self._exited.is_set():
            terminate_group(self._spawned.pid, self._spawned.start, signal.SIGKILL)

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

    @property
    def has_moved(self) -> bool:
        return self._moves > 0

    @property
    def done(self) -> float | None:
        """Progress as last heard, for the pace."""
        return self._done

    # Starting

    def _prepare(self) -> None:
        files, job = self._owner.files, self.job
        for older in files.staging(job.id, 0).parent.glob(f"{job.id}-*"):
            shutil.rmtree(older, ignore_errors=True)
        files.make(files.staging(job.id, job.attempt))
        files.make(files.log(job.id, job.attempt).parent)
        kept = files.kept(job.id, job.revision)
        if not kept.exists():
            _wipe_kept(files, job)
            files.make(kept)

    def _spawn(self) -> Spawned:
        command = [
            sys.executable,
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
            sys.stderr.write(f"{line.text}\n")

    def _pump_rest(self, spawned: Spawned) -> None:
        for pipe, stream in _pipes(spawned):
            self._loop.remove_reader(pipe.fileno())
            pump(pipe, self._log, stream)

    # Talking

    async def _converse(self, spawned: Spawned) -> None:
        reader, self._writer = await asyncio.open_connection(sock=spawned.socket)
        messages = wire.Reader()
        try:
            if not await self._store_child(spawned):
                self.end_now("lost")
                return
            await self._send_run()
            while data := await reader.read(READ_BYTES):
                for message in messages.feed(data):
                    await self._hear(message)
        except (ConnectionError, BrokenPipeError):
            pass
        except (wire.WireError, LineClearError) as error:
            self._log.note(f"The run's process sent nonsense and is ended: {error}")
            terminate_group(spawned.pid, spawned.start, signal.SIGKILL)
        finally:
            self._writer.close()

    async def _store_child(self, spawned: Spawned) -> bool:
        """Nothing runs before its process is on record, so that whoever takes over can end it."""
        job, pid, start = self.job, spawned.pid, spawned.start
        self.job = replace(job, child_pid=pid, child_start=start)
        return await self._owner.writer.write(
            lambda tx: runs.set_child(tx, job, pid=pid, start=start)
        )

    async def _send_run(self) -> None:
        job, files = self.job, self._owner.files
        steps = await self._owner.writer.write(lambda tx: runs.steps_of(tx, job.id), durable=False)
        await self._send(
            wire.Run(
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
        )
        if job.options.timeout_s is not None:
            self._later(job.options.timeout_s, self._time_is_up)

    async def _send(self, message: wire.Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.encode(message))
            await self._writer.drain()

    async def _hear(self, message: wire.Message) -> None:
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
                await self._send(await self._submit(message))
            case wire.Ended():
                kept = await self._owner.writer.write(
                    lambda tx: runs.set_outcome(tx, self.job, message.outcome)
                )
                self._said_end = True
                self._later(self._owner.settings.kill_s, lambda: self.end_gently("wish"))
                await self._answer(message.re, kept)
            case wire.Run() | wire.Stop() | wire.Answer():
                raise wire.WireError(f"{type(message).__name__} is a message to the child")

    async def _answer(self, question: int, kept: bool) -> None:  # noqa: FBT001  the verdict itself
        await self._send(wire.Answer(question, "kept" if kept else "lost"))
        if not kept:
            self.end_now("lost")

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

    async def _submit(self, asked: wire.Submit) -> wire.Answer:
        new = NewJob(
            task=asked.task, lane=asked.lane, args=asked.args, app=asked.app, key=asked.key,
            title=asked.title, parent=self.job.id, ordinal=f"{self.job.revision}/{asked.ordinal}",
            by=f"job {self.job.id}", options=asked.options,
        )  # fmt: skip
        try:
            job, _ = await self._owner.writer.write(lambda tx: acts.submit(tx, new))
        except Refused as error:
            return wire.Answer(asked.re, "refused", error=str(error))
        return wire.Answer(asked.re, "kept", {"id": job.id, "title": job.title})

    # Stopping

    def _stop(self, why: Literal["cancel", "interrupt", "timeout"], by: str) -> None:
        if self._stop_sent in (why, "cancel"):
            return
        self._stop_sent = why
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.encode(wire.Stop(why, by)))

    def _time_is_up(self) -> None:
        if not self._said_end:
            self._log.note(f"Its time limit of {self.job.options.timeout_s:g} s is over.")
            self._stop("timeout", "its time limit")
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

    async def _finish(self, ending: Ending) -> Job | None:
        job = self.job
        last = self.take_beat()
        self._log.close()
        self._show()
        if ending.why == "lost":
            await asyncio.to_thread(shutil.rmtree, self._staging, ignore_errors=True)
            log.warning(
                "job %d: its lease is lost; nothing more of attempt %d counts", job.id, job.attempt
            )
            return None
        await asyncio.to_thread(wipe, self._owner.files, job)

        def finish(tx: Tx) -> tuple[Job | None, Job | None]:
            runs.beat(tx, [last])
            after = runs.finish(tx, job, ending, by=self._owner.worker)
            return after, None if after is None else self._owner.ended(tx, after)

        after, following = await self._owner.writer.write(finish)
        if after is None:
            log.warning(
                "job %d: its lease is lost; nothing more of attempt %d counts", job.id, job.attempt
            )
            return None
        self._state = after.state
        log.info("job %d: %s%s", job.id, after.state, f", {after.error}" if after.error else "")
        await asyncio.to_thread(self._clean_up, after)
        return following

    def _clean_up(self, after: Job) -> None:
        stopped_now = after.state is State.QUEUED and after.cause == "stopped now"
        if after.state is State.DONE or (stopped_now and not after.options.keep_on_stop_now):
            _wipe_kept(self._owner.files, after)

    @property
    def _staging(self) -> Path:
        return self._owner.files.staging(self.job.id, self.job.attempt)


def _pipes(spawned: Spawned) -> tuple[tuple[FileIO, Stream], ...]:
    return (spawned.stdout, "o"), (spawned.stderr, "e")


def _wipe_kept(files: Files, job: Job) -> None:
    for folder in files.kept(job.id, 0).parent.glob(f"{job.id}-*"):
        shutil.rmtree(folder, ignore_errors=True)
