"""A job in a process of its own, from spawn to reap."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from io import FileIO
from typing import Literal

from lineclear.job import Ending, Job
from lineclear.worker import linux
from lineclear.worker.leases import mark_of
from lineclear.worker.line import Line
from lineclear.worker.logreader import Stream
from lineclear.worker.logs import pump
from lineclear.worker.owner import Owner
from lineclear.worker.processes import (
    FD,
    Exit,
    NotStarted,
    Spawned,
    kill_tree,
    spawn,
    terminate_group,
)
from lineclear.worker.run import Run, Why, shortage
from lineclear.worker.talk import Heard, sentence_of

log = logging.getLogger("lineclear.worker")

DRAIN_S = 5.0


class OwnRun(Run):
    """A run whose process is its own: all of it is gone before its slot is free."""

    def __init__(self, job: Job, owner: Owner, *, echo: bool = False) -> None:
        super().__init__(job, owner, echo=echo)
        self._spawned: Spawned | None = None
        self._exited = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._spawned.pid if self._spawned else None

    async def live(self) -> None:
        """The whole life, and the start of the job that was claimed with its end."""
        oom_before = linux.oom_kills()
        try:
            await asyncio.to_thread(self.prepare)
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
        self._cancel_timers()
        self._spawned.close()
        ending = Ending(
            self._ended_for or self.why_signalled(seen),
            exit_code=seen.code,
            signal=seen.signal,
            out_of_memory=seen.signal == signal.SIGKILL
            and self._owner.by_memory_killer(oom_before),
            sentence=self._fault,
        )
        await self._finish(ending)

    def end(self) -> None:
        if self._spawned is not None and not self._exited.is_set():
            terminate_group(self._spawned.pid, self._spawned.start, signal.SIGKILL)

    def end_gently(self, why: Why) -> None:
        """TERM to its group now, the end of everything after the time for that."""
        self._ended_for = self._ended_for or why
        if self._spawned is not None and not self._exited.is_set():
            terminate_group(self._spawned.pid, self._spawned.start)
            self._later(self._owner.settings.kill_s, lambda: self.end_now(why))

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

    def _pumper(self, pipe: FileIO, stream: Stream) -> Callable[[], None]:
        descriptor = pipe.fileno()

        def call() -> None:
            if not pump(pipe, self._log, stream):
                self._loop.remove_reader(descriptor)
            self._show()

        return call

    def _pump_rest(self, spawned: Spawned) -> None:
        for pipe, stream in _pipes(spawned):
            self._loop.remove_reader(pipe.fileno())
            pump(pipe, self._log, stream)

    # While it runs

    async def _converse(self, spawned: Spawned) -> None:
        """Nobody may wait for an answer that does not come: where talking fails, it is ended."""
        try:
            await self._talk(spawned)
        except Exception as error:
            log.warning("job %d: talking to its process failed", self.job.id, exc_info=error)
            self._fault = sentence_of(error)
            self._log.note(self._fault)
            self.end()

    async def _talk(self, spawned: Spawned) -> None:
        """Listen until the process's end of the socket is closed."""
        with contextlib.suppress(ConnectionError):  # it has ended: that is heard by its pidfd
            async with Line(spawned.socket) as line:
                if await self.talk.hand_over(spawned.pid, spawned.start, line):
                    async for message in line.messages():
                        await self.talk.hear(message)

    def _heard(self, what: Heard) -> None:
        super()._heard(what)
        if what == "ended":
            self._later(self._owner.settings.kill_s, lambda: self.end_gently("wish"))

    async def _end_processes(self, spawned: Spawned) -> None:
        """Everything that came of the run has to be gone before its slot is free."""
        while not await asyncio.to_thread(kill_tree, spawned.pid, spawned.start, spawned.mark):
            log.warning(
                "job %d: some of its processes will not end; its slot stays taken", self.job.id
            )


def _pipes(spawned: Spawned) -> tuple[tuple[FileIO, Stream], ...]:
    return (spawned.stdout, "o"), (spawned.stderr, "e")
