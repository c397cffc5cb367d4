"""The host processes of a worker: one for each lane and application, for as many jobs as come.

A host is started for the first job that needs it and lives until the worker ends. It is replaced
between jobs after ``host_jobs`` of them, above ``host_mb`` of memory, and when it could not load a
task: the old one gets no more jobs and ends after its last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from io import FileIO
from itertools import count
from typing import TYPE_CHECKING

from lineclear.job import Cause, Job, Outcome
from lineclear.worker import linux
from lineclear.worker.leases import host_of, mark_of
from lineclear.worker.line import Line
from lineclear.worker.logreader import Stream
from lineclear.worker.logs import JobLog, pump
from lineclear.worker.processes import FD, Exit, Spawned, kill_tree, spawn, terminate_group
from lineclear.worker.talk import sentence_of

if TYPE_CHECKING:
    from lineclear.worker.hosted import HostRun
    from lineclear.worker.owner import Owner

log = logging.getLogger("lineclear.worker")

DRAIN_S = 5.0


class Hosts:
    """All of one worker's, by what may run in them."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._open: dict[str, Host] = {}
        self._all: dict[Host, asyncio.Task[None]] = {}
        self._numbers = count(1)

    @property
    def pids(self) -> set[int]:
        return {host.pid for host in self._all}

    def process_for(self, job: Job) -> tuple[int, int] | None:
        """The process a job would run in, where it is there already. From any thread."""
        host = self._open.get(host_of(job)) if job.options.runs_in != "own" else None
        return None if host is None else (host.pid, host.start)

    def place(self, run: HostRun) -> Host:
        """The host a run has its place in from now on. Raises ``NotStarted``, ``OSError``."""
        which = host_of(run.job)
        host = self._open.get(which)
        if host is None or not host.take(run):
            host = self._open[which] = self._start(run.job)
            host.take(run)
        return host

    def close_to(self, host: Host) -> None:
        """It gets no more jobs."""
        for which in [which for which, each in self._open.items() if each is host]:
            del self._open[which]

    async def close(self) -> None:
        """Let all of them go, and wait until they are gone. No job runs any more."""
        for host in list(self._all):
            host.retire()
        await asyncio.gather(*self._all.values())

    def _start(self, job: Job) -> Host:
        command = [
            sys.executable,
            "-P",  # what lies in the folder it starts in never hides the standard library
            "-m",
            "lineclear.worker.host",
            "--fd",
            FD,
            "--parent",
            str(os.getpid()),
        ]
        mark = f"{mark_of(job)}.{next(self._numbers)}"
        spawned = spawn(command, env=dict(os.environ), mark=mark)
        host = Host(spawned, job.lane, self, self._owner)
        living = asyncio.get_running_loop().create_task(host.live())
        self._all[host] = living
        living.add_done_callback(lambda _: self._all.pop(host))
        return host


class Host:
    """One host process, from spawn to reap."""

    def __init__(self, spawned: Spawned, lane: str, hosts: Hosts, owner: Owner) -> None:
        self.pid, self.start = spawned.pid, spawned.start
        self._spawned, self._hosts, self._owner = spawned, hosts, owner
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[Line | None] = self._loop.create_future()
        """``None`` where it could not be opened: the host ends, and its runs with it."""
        self._path = owner.files.host_log(lane)
        self._log = JobLog(self._path, mode=owner.files.mode)
        self._runs: dict[int, HostRun] = {}
        self._jobs = 0
        self._retired = False
        self._exited = asyncio.Event()
        self._ended_for: HostRun | None = None
        self._fault = ""
        self._oom_before = linux.oom_kills()

    def take(self, run: HostRun) -> bool:
        """Give a run a place. False where it is no longer to have jobs, or has this very one: the
        run of a lost lease that has not ended yet.
        """
        if self._retired or self._exited.is_set() or run.job.id in self._runs:
            return False
        self._runs[run.job.id] = run
        self._jobs += 1
        return True

    def leave(self, run: HostRun, outcome: Outcome | None = None) -> None:
        """A run of it is over."""
        self._runs.pop(run.job.id, None)
        settings = self._owner.settings
        worn = self._jobs >= settings.host_jobs or linux.memory_mb(self.pid) > settings.host_mb
        unfit = outcome is not None and outcome.cause is Cause.NOT_STARTED
        if self._retired or worn or unfit:
            self.retire()

    def retire(self) -> None:
        """No more jobs, and its end after the last."""
        self._retired = True
        self._hosts.close_to(self)
        line = self.opened.result() if self.opened.done() else None
        if not self._runs and not self._exited.is_set() and line is not None:
            line.finish()
            self._loop.call_later(self._owner.settings.kill_s, self._kill)

    def end(self, run: HostRun) -> None:
        """End it now for the sake of one run: its others go back in line, uncounted."""
        self._ended_for = self._ended_for or run
        self._hosts.close_to(self)
        self._kill()

    def _kill(self) -> None:
        if not self._exited.is_set():
            terminate_group(self.pid, self.start, signal.SIGKILL)

    async def live(self) -> None:
        """From its start until everything that came of it is gone, and its runs know."""
        with contextlib.ExitStack() as watching:
            self._watch(watching)
            talking = self._loop.create_task(self._talk())
            await self._exited.wait()
            self._hosts.close_to(self)
            while not await asyncio.to_thread(kill_tree, self.pid, self.start, self._spawned.mark):
                log.warning("process %d: some of what it started will not end", self.pid)
            seen = self._spawned.reap() or Exit()
            await asyncio.wait([talking], timeout=DRAIN_S)
            if not talking.done():
                talking.cancel()
                await asyncio.wait([talking])
            for pipe, stream in self._pipes:
                self._loop.remove_reader(pipe.fileno())
                self._pump(pipe, stream)
        self._spawned.close()
        self._log.close()
        left = list(self._runs.values())
        killed = seen.signal == signal.SIGKILL and self._ended_for is None and bool(left)
        out_of_memory = killed and self._owner.by_memory_killer(self._oom_before)
        for run in left:
            run.host_ended(
                seen,
                out_of_memory=out_of_memory,
                ended_for=self._ended_for,
                fault=self._fault,
                alone=len(left) == 1,
            )

    async def _talk(self) -> None:
        try:
            async with Line(self._spawned.socket) as line:
                self.opened.set_result(line)
                if self._retired and not self._runs:
                    self.retire()
                async for message in line.messages():
                    if (run := self._runs.get(getattr(message, "job", 0))) is not None:
                        run.hear(message)
        except ConnectionError:
            pass  # it has ended: that is heard by its pidfd
        except Exception as error:
            log.warning("process %d: talking to it failed, it is ended", self.pid, exc_info=error)
            self._fault = sentence_of(error)
            self._kill()
        finally:
            if not self.opened.done():
                self.opened.set_result(None)

    @property
    def _pipes(self) -> tuple[tuple[FileIO, Stream], ...]:
        return (self._spawned.stdout, "o"), (self._spawned.stderr, "e")

    def _watch(self, watching: contextlib.ExitStack) -> None:
        def readable(descriptor: int, call: Callable[[], None]) -> None:
            self._loop.add_reader(descriptor, call)
            watching.callback(self._loop.remove_reader, descriptor)

        def exited() -> None:
            self._loop.remove_reader(self._spawned.pidfd)
            self._exited.set()

        def pumper(pipe: FileIO, stream: Stream) -> Callable[[], None]:
            descriptor = pipe.fileno()

            def call() -> None:
                if not self._pump(pipe, stream):
                    self._loop.remove_reader(descriptor)

            return call

        for note in self._spawned.notes:
            self._log.note(note)
        readable(self._spawned.pidfd, exited)
        for pipe, stream in self._pipes:
            readable(pipe.fileno(), pumper(pipe, stream))

    def _pump(self, pipe: FileIO, stream: Stream) -> bool:
        """What none of its jobs can be told for; each that runs meanwhile says where it is."""
        seen = self._log.fed
        more = pump(pipe, self._log, stream)
        if self._log.fed > seen:
            for run in self._runs.values():
                run.tell_of(self._path)
        return more
