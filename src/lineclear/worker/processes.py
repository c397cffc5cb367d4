"""The supervisor's side of a run's processes: start, reap, end all that came of one.

Only the supervisor calls it (and whoever takes over a dead supervisor's run: ``kill_tree``). It
never waits for "any child", so it never takes an exit status that somebody else asks for, and never
signals a process whose start time differs from the recorded one.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from lineclear.errors import LineClearError
from lineclear.worker import linux
from lineclear.worker.keeper import MARK, QUIET_ROUNDS, carries
from lineclear.worker.linux import Process

FD = "{fd}"
"""Stands in a command for the number of the descriptor on which the child finds its socket."""

_WATCHED = 32  # descriptors one round of killing may hold; the next round sees to the rest
_ROUND_S = 0.5


class NotStarted(LineClearError):
    """The process could not be started. Nothing of it ran and nothing is left of it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. Both ``None``: another has asked first, it cannot be known."""

    code: int | None = None
    signal: int | None = None


@dataclass(slots=True, eq=False)
class Spawned:
    """A started process. Not frozen: it owns descriptors and an exit status given only once.

    ``pidfd`` turns readable when it has ended. ``socket``, ``stdout`` and ``stderr`` never block.
    ``notes`` says what could not be set, for the job's log.
    """

    pid: int
    start: int
    mark: str
    pidfd: int
    socket: socket.socket
    stdout: FileIO
    stderr: FileIO
    notes: tuple[str, ...] = ()
    _exit: Exit | None = field(default=None, init=False)

    def reap(self) -> Exit | None:
        """How it ended, ``None`` while it runs. First ``kill_tree``: its pid is free after this."""
        if self._exit is None:
            try:
                seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                self._exit = Exit()
                return self._exit
            if seen is not None and seen.si_code == os.CLD_EXITED:
                self._exit = Exit(code=seen.si_status)
            elif seen is not None:
                self._exit = Exit(signal=seen.si_status)
        return self._exit

    def close(self) -> None:
        """Give back every descriptor. The process itself is not touched. Twice is harmless."""
        for each in (self.socket, self.stdout, self.stderr):
            each.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def spawn(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    mark: str,
    cwd: str | Path | None = None,
    nice: int = 0,
    oom_score: int = 500,
) -> Spawned:
    """Start a marked process in its own session, with one end of a socket pair at ``FD``.

    Its standard input is empty. ``nice`` is added to the supervisor's own. On the main thread only:
    a parent-death signal would come when another thread ends. Raises NotStarted with the system's
    sentence.
    """
    assert threading.current_thread() is threading.main_thread()
    with ExitStack() as always, ExitStack() as on_failure:
        try:
            ours, theirs = socket.socketpair()
            on_failure.callback(ours.close)
            always.callback(theirs.close)
            stdout, stdout_end = _pipe(always, on_failure)
            stderr, stderr_end = _pipe(always, on_failure)
            ours.settimeout(0)
            number = theirs.fileno()
            process = subprocess.Popen(
                [str(number) if part == FD else part for part in command],
                stdin=subprocess.DEVNULL,
                stdout=stdout_end,
                stderr=stderr_end,
                pass_fds=(number,),
                env={**env, MARK: mark},
                cwd=cwd,
                start_new_session=True,
            )
            process.returncode = 0  # Popen is never to wait for it: reap() does
            pidfd, start = _hold(process.pid)
        except (OSError, ValueError) as error:
            raise NotStarted(f"The process could not be started: {_sentence(error)}") from error
        on_failure.pop_all()
    notes = _set_apart(process.pid, nice=nice, oom_score=oom_score)
    return Spawned(process.pid, start, mark, pidfd, ours, stdout, stderr, notes)


def _pipe(always: ExitStack, on_failure: ExitStack) -> tuple[FileIO, int]:
    reading, writing = os.pipe()
    always.callback(os.close, writing)
    os.set_blocking(reading, False)
    file = FileIO(reading)
    on_failure.callback(file.close)
    return file, writing


def _hold(pid: int) -> tuple[int, int]:
    """What names the new process for good. Nothing runs in it yet: where this fails, end it."""
    try:
        start, pidfd = linux.start_time(pid), os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED)
        raise
    assert start is not None, "a child that is not reaped can be looked at"
    return pidfd, start


def _set_apart(pid: int, *, nice: int, oom_score: int) -> tuple[str, ...]:
    notes = []
    if nice:
        try:
            os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
        except OSError as error:
            notes.append(f"The priority could not be set (nice {nice}): {_sentence(error)}")
    if not linux.raise_oom_score(pid, score=oom_score):
        notes.append("The memory killer could not be told to prefer this process to its worker")
    return tuple(notes)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


def has_ended(pidfd: int, *, timeout_s: float = 0.0) -> bool:
    """Whether that process has ended, waiting so long for it. A zombie has."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0.0, timeout_s) * 1000))


def terminate_group(pid: int, start: int, number: int = signal.SIGTERM) -> bool:
    """Send a signal to the process's group, the gentle way. False where that process is no more."""
    if linux.start_time(pid) != start:
        return False
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_tree(pid: int, start: int, mark: str, *, timeout_s: float = 10.0) -> bool:
    """End it, its group, session and descendants, and what carries the mark. Whether all are gone.

    It waits up to ``timeout_s`` and may be called again, from any thread. A zombie is gone. Orphans
    handed to this process are reaped; the process itself is left for ``Spawned.reap``, to be called
    afterwards: as long as its pid is known to be its own, its session's leftovers are too. Once it
    is not, only marked ones can be told.
    """
    known: set[tuple[int, int]] = set()
    deadline = time.monotonic() + timeout_s
    quiet = 0
    while True:
        quiet = 0 if _end_round((pid, start), mark, known, deadline=deadline) else quiet + 1
        if quiet == QUIET_ROUNDS:
            return True
        if not quiet and time.monotonic() >= deadline:
            return False
        time.sleep(0.002)


def _end_round(
    leader: tuple[int, int], mark: str, known: set[tuple[int, int]], *, deadline: float
) -> bool:
    """Look once, end what is found. Whether anything was there that lived."""
    try:
        table = linux.processes()
        members = _members(table, leader, mark, known)
    except OSError:  # no descriptor was free: nothing is known, look again
        time.sleep(0.05)
        return True
    known.update(member.identity for member in members)
    living = [member for member in members if not member.gone]
    if living:
        terminate_group(*leader, signal.SIGKILL)
        _end(living, until=min(time.monotonic() + _ROUND_S, deadline))
    for member in members:
        if member.identity != leader:
            _reap(member)
    return bool(living)


def _members(
    table: dict[int, Process], leader: tuple[int, int], mark: str, known: set[tuple[int, int]]
) -> list[Process]:
    """What belongs to the run: nothing older than its first process, and never this one."""
    pid, start = leader
    young = [each for each in table.values() if each.start >= start and each.pid != os.getpid()]
    whole = pid in table and table[pid].start == start
    found = {
        each.pid
        for each in young
        if each.identity in known
        or (whole and pid in (each.pid, each.group, each.session))
        or carries(each.pid, mark)
    }
    mine = {each.pid: each for each in young}
    return [mine[each] for each in (*found, *linux.descendants(*found, table=mine))]


def _end(living: Sequence[Process], *, until: float) -> None:
    """SIGKILL to each, then wait until they are gone or the time is up."""
    opened: list[int] = []
    try:
        for process in living:
            if len(opened) == _WATCHED:
                os.close(opened.pop())
            with suppress(OSError):  # gone, or no descriptor is free: the next round tells
                opened.append(os.pidfd_open(process.pid))
                # Asked now that the descriptor holds on to one: the number may be another's.
                if linux.start_time(process.pid) == process.start:
                    signal.pidfd_send_signal(opened[-1], signal.SIGKILL)
                else:
                    os.close(opened.pop())
        for pidfd in opened:
            has_ended(pidfd, timeout_s=until - time.monotonic())
    finally:
        for pidfd in opened:
            os.close(pidfd)


def _reap(process: Process) -> None:
    with suppress(OSError):  # not ours, or gone already
        if linux.start_time(process.pid) == process.start:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG)


def reap_orphans(own: Collection[int]) -> int:
    """Reap ended children that nobody else will ask for: all but ``own``. Returns how many.

    ``own`` holds the pid of every process the supervisor started and has not reaped: runs, keeper,
    all. Call it where those are started (the main thread), when SIGCHLD came or now and then.
    """
    reaped = 0
    while True:
        try:
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return reaped
        if seen is None:
            return reaped
        if seen.si_pid in own:
            break  # it hides those behind it in the kernel's list: ask for each by its pid
        reaped += _reap_orphan(seen.si_pid)
    return reaped + sum(_reap_orphan(pid) for pid in linux.children() if pid not in own)


def _reap_orphan(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None
    except ChildProcessError:
        return False
