"""The keeper: ends what a dead supervisor's runs left behind.

A supervisor starts one as a small process in a session of its own and holds the write end of a pipe
to it. However the supervisor dies, the kernel closes that end; the keeper, asleep in one ``read``
until then, ends every process whose environment carries the worker's mark, and then itself. It
ignores INT, TERM and HUP, since a service manager sends those before the supervisor is gone.

It runs as ``python -I -S keeper.py WORKER``: this module must import nothing but what is light and
built in, and the supervisor's side below imports late. It must never carry a mark itself.

Limits: a process that was started with another environment, or as another user, is not found. Under
systemd the control group catches it.
"""

import errno
import os
import signal
import sys
import time

MARK = "LINECLEAR_RUN"
"""The variable that says which run a process is of: ``<worker id>.<job>.<attempt>``, of a host
``<worker id>.host-<which>.<number>``."""

QUIET_ROUNDS = 2
"""Looks in a row that must find nothing: amid an ``exec`` the environment reads as empty."""

_ROUNDS = 120
_SHORTEST_S, _LONGEST_S = 0.005, 1.0
_DESCRIPTORS_USED_UP = (errno.EMFILE, errno.ENFILE)


def all_pids() -> list[int]:
    """Every process that can be seen. Empty where there is no ``/proc``."""
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdecimal()]
    except FileNotFoundError:
        return []


def read_proc(name: str) -> bytes:
    """A file under ``/proc``, empty where it is gone or may not be read.

    Raises OSError only where no descriptor is free: then nothing is known.
    """
    try:
        descriptor = os.open(f"/proc/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _DESCRIPTORS_USED_UP:
            raise
        return b""
    text = b""
    try:
        while block := os.read(descriptor, 65536):
            text += block
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return text


def carries(pid: int, prefix: str) -> bool:
    """Whether the process was started with this mark, or with one that goes on behind a dot.

    False for a zombie, for one that is gone and for one that may not be read.
    """
    environment = read_proc(f"{pid}/environ")
    mark = f"{MARK}={prefix}".encode()
    if mark not in environment:
        return False
    return any(entry == mark or entry.startswith(mark + b".") for entry in environment.split(b"\0"))


def sweep(worker: str, rounds: int = _ROUNDS) -> bool:
    """End every process marked by that worker, this one excepted. Returns whether none is left."""
    quiet, pause_s = 0, _SHORTEST_S
    for _ in range(rounds):
        try:
            found = [p for p in all_pids() if p != os.getpid() and carries(p, worker)]
        except OSError:
            found = [0]  # no descriptor was free: nothing is known, look again
        for pid in found:
            _end(pid, worker)
        quiet = 0 if found else quiet + 1
        if quiet == QUIET_ROUNDS:
            return True
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_S) if found else _SHORTEST_S
    return False


def _end(pid: int, worker: str) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Asked again now that the descriptor holds on to one process: the number may have passed to
        # another.
        if carries(pid, worker):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(descriptor)


def main(worker: str) -> None:
    """The keeper's whole life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    sweep(worker)


class Keeper:
    """The supervisor's side. ``pidfd`` turns readable when it is dead: replace it at once then.

    ``pid`` belongs into the set that ``reap_orphans`` must leave alone.
    """

    __slots__ = ("_pipe", "pid", "pidfd")

    def __init__(self, pid: int, pidfd: int, pipe: int) -> None:
        self.pid, self.pidfd, self._pipe = pid, pidfd, pipe

    def close(self, *, wait_s: float = 10.0) -> None:
        """Let go of it, as by dying: it ends what is still marked, then itself."""
        from lineclear.worker.processes import has_ended

        if self._pipe < 0:
            return
        os.close(self._pipe)
        has_ended(self.pidfd, timeout_s=wait_s)
        try:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            pass
        finally:
            os.close(self.pidfd)
            self._pipe = -1


def start_keeper(worker: str) -> Keeper:
    """Start the keeper of that worker id. Raises OSError where no process can be started."""
    import subprocess

    assert worker, "an empty worker id would mark nothing"
    theirs, ours = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, worker],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != MARK},
            cwd="/",
            start_new_session=True,
        )
        process.returncode = 0  # Popen is never to wait for it: close() does
        return Keeper(process.pid, os.pidfd_open(process.pid), ours)
    except BaseException:
        os.close(ours)  # a keeper that did start reads the end of the file, and ends
        raise
    finally:
        os.close(theirs)


if __name__ == "__main__":
    main(sys.argv[1])
