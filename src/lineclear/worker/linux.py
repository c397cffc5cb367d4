"""What the worker asks of Linux beyond the standard library: signals, limits and ``/proc``.

The supervisor and its children call it, the children right after their ``exec``: it stays light,
and loads ``ctypes`` only for the two calls that need it. Elsewhere there is no ``/proc`` and no
such call: a question then finds nothing, a setting says False, and nothing is ever signalled on a
guess.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from lineclear.worker.keeper import all_pids, carries, read_proc

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """One process as it was when looked at. ``start``: clock ticks since boot."""

    pid: int
    parent: int
    group: int
    session: int
    start: int
    gone: bool
    """A zombie without living threads: it runs no more and only waits for its parent to ask."""

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start


def look(pid: int) -> Process | None:
    """That process, or ``None``. Raises OSError only where no descriptor is free to look."""
    stat = read_proc(f"{pid}/stat")
    if not stat:
        return None
    # The name stands in parentheses and may hold blanks and parentheses: what follows the last one
    # is plain.
    fields = stat.rpartition(b")")[2].split()
    state, threads = fields[0], int(fields[17])
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=int(fields[19]),
        gone=state in (b"Z", b"X") and threads <= 1,
    )


def processes() -> dict[int, Process]:
    """Every process by its pid."""
    seen = (look(pid) for pid in all_pids())
    return {process.pid: process for process in seen if process is not None}


def start_time(pid: int) -> int | None:
    """When it started, in clock ticks since boot."""
    process = look(pid)
    return None if process is None else process.start


def identity(pid: int) -> tuple[int, int] | None:
    """Pid and start: the pid alone is handed out again."""
    process = look(pid)
    return None if process is None else process.identity


def session_of(pid: int) -> int | None:
    """The session it is in."""
    process = look(pid)
    return None if process is None else process.session


def descendants(*pids: int, table: dict[int, Process] | None = None) -> list[int]:
    """Their children, theirs, and so on; not those whose parent has died: they are another's."""
    below: dict[int, list[int]] = {}
    for process in (processes() if table is None else table).values():
        below.setdefault(process.parent, []).append(process.pid)
    line, found = list(pids), set(pids)
    for each in line:
        fresh = [child for child in below.get(each, ()) if child not in found]
        line += fresh
        found.update(fresh)
    return line[len(pids) :]


def marked(prefix: str) -> list[int]:
    """Processes whose mark is this or goes on behind a dot: a worker's, a job's, an attempt's."""
    return [pid for pid in all_pids() if carries(pid, prefix)]


def children() -> list[int]:
    """The children of this process, zombies and orphans it was handed included."""
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            found.extend(int(pid) for pid in path.read_text().split())
        except OSError:
            continue  # that thread has just ended
    return found


def set_parent_death_signal(number: int) -> bool:
    """Ask for this signal when the thread that started this process ends. Not inherited."""
    return _prctl(_PR_SET_PDEATHSIG, number)


def set_subreaper() -> bool:
    """Become the parent of all descendants whose own dies; ``reap_orphans`` is due then."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).prctl
    except AttributeError:
        return False
    zero = ctypes.c_ulong(0)
    return bool(call(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero) == 0)


def raise_oom_score(pid: int | None = None, *, score: int = 500) -> bool:
    """Make the memory killer prefer that process, by default this one. Never lowers a score."""
    path = Path(f"/proc/{'self' if pid is None else pid}/oom_score_adj")
    try:
        if int(path.read_text()) < score:
            path.write_text(str(score))
    except OSError:
        return False
    return True


def memory_mb(pid: int) -> float:
    """Megabytes of memory the process holds; 0 where that cannot be known."""
    fields = read_proc(f"{pid}/statm").split()
    pages = int(fields[1]) if fields else 0
    return pages * resource.getpagesize() / 1e6


def oom_kills() -> int:
    """How often the memory killer struck here: two counts tell whether it did in between.

    The control group's own count where it can be read: it counts kills for the machine's lack of
    memory too, but not those of the neighbours. Else the machine's. 0 where neither is known.
    """
    for path in _oom_counters():
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _oom_counters() -> list[Path]:
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    found: list[Path] = []
    for group in groups:
        _, controllers, path = group.split(":", 2)
        # Inside a container the path may be the host's: the group is then mounted at the top.
        if not controllers:
            top, name = Path("/sys/fs/cgroup"), "memory.events"
        elif "memory" in controllers.split(","):
            top, name = Path("/sys/fs/cgroup/memory"), "memory.oom_control"
        else:
            continue
        found += [top / path.lstrip("/") / name, top / name]
    return [*found, Path("/proc/vmstat")]


def limit_memory(memory_mb: int) -> None:
    """Limit this process, and each it starts, to that many MiB of data (RLIMIT_DATA), for good.

    Counted: the heap, private writable mappings (which ``malloc`` and NumPy use) and thread stacks,
    each as asked for, touched or not. Not counted: shared memory, files mapped to be read (models),
    page cache, the graphics card. Each process has the whole of it for itself. Asking for more
    fails there with ``MemoryError``.
    """
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = memory_mb * 1024 * 1024
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
