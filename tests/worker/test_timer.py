"""The timer of the wall clock, with the machine's own clock."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from collections.abc import Iterator

import pytest

from lineclear.worker.timer import WallTimer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")


@pytest.fixture
def timer() -> Iterator[WallTimer]:
    timer = WallTimer()
    yield timer
    timer.close()


def readable(timer: WallTimer, *, timeout_s: float = 0.0) -> bool:
    return bool(select.select([timer], [], [], timeout_s)[0])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_p16_a_deadline_is_met_and_not_before(timer: WallTimer) -> None:
    deadline = now_ms() + 150
    timer.set(deadline)
    assert not timer.read()
    assert readable(timer, timeout_s=20)
    assert now_ms() >= deadline
    assert timer.read()
    assert not timer.read(), "the news is taken once"
    assert not readable(timer)


@pytest.mark.parametrize("deadline_ms", [0, -5, 1, 1_700_000_000_000])
def test_p16_a_deadline_in_the_past_is_due_at_once(timer: WallTimer, deadline_ms: int) -> None:
    timer.set(deadline_ms)
    assert readable(timer, timeout_s=20)
    assert timer.read()


def test_p16_a_new_deadline_replaces_the_old_and_none_waits_for_nothing(timer: WallTimer) -> None:
    timer.set(0)
    timer.set(10**18)
    assert not readable(timer, timeout_s=0.05)
    timer.set(0)
    assert readable(timer, timeout_s=20)
    timer.set(None)
    assert not readable(timer, timeout_s=0.05)
    assert not timer.read()


def test_p16_the_descriptor_stays_out_of_children_and_is_given_back_once() -> None:
    timer = WallTimer()
    assert not os.get_inheritable(timer.fileno())
    timer.close()
    timer.close()
    assert timer.fileno() == -1


def test_p16_a_set_clock_is_noticed(timer: WallTimer) -> None:
    timer.set(now_ms() + 3_600_000)
    assert not readable(timer)
    set_clock_ahead_by_a_nanosecond()
    assert readable(timer, timeout_s=20)
    assert timer.read()
    assert not timer.read()
    timer.set(now_ms() + 3_600_000)
    set_clock_ahead_by_a_nanosecond()
    timer.set(now_ms() + 3_600_000)
    assert not readable(timer, timeout_s=0.05), "setting it again looked at the clock anyway"


def set_clock_ahead_by_a_nanosecond() -> None:
    """The smallest change that counts as setting the clock; only a privileged process may."""

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint),
            ("unused", ctypes.c_long * 8),
            ("seconds", ctypes.c_long),
            ("nanoseconds", ctypes.c_long),
            ("rest", ctypes.c_long * 20),
        )

    set_offset, in_nanoseconds = 0x0100, 0x2000
    change = Timex(modes=set_offset | in_nanoseconds, nanoseconds=1)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(change)) < 0:
        pytest.skip(f"may not set the clock: {os.strerror(ctypes.get_errno())}")
