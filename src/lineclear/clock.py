"""The one clock seam: wall time for people, the lease clock for leases. Tests pass their own.

The lease clock on SQLite is the machine's monotonic clock: the same for every process since boot,
and neither a set clock nor a sleep ages a lease. Two ticks may be compared only where the
clock of both ``Place``s is the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Where the present comes from."""

    def now_ms(self) -> int:
        """Wall time, milliseconds since 1970."""

    def tick_ms(self) -> int:
        """The lease clock, milliseconds."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def tick_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process lives: ticks compare only where boot and time namespace agree, pids where all
    three do.
    """

    boot: str
    time_ns: str
    pid_ns: str

    def same_clock(self, other: Place) -> bool:
        return (self.boot, self.time_ns) == (other.boot, other.time_ns) and bool(self.boot)


@cache
def here() -> Place:
    """This process's place; empty strings where the system does not say (then nothing is ever
    compared).
    """
    boot = _read(Path("/proc/sys/kernel/random/boot_id"))
    return Place(boot, _link(Path("/proc/self/ns/time")), _link(Path("/proc/self/ns/pid")))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
