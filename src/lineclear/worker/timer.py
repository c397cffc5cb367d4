"""A timer of the wall clock for the supervisor's loop: due jobs, working hours, the end of a pause.

A monotonic wait sleeps through a suspended laptop and does not notice a set clock; a ``timerfd`` of
CLOCK_REALTIME, absolute and cancelled when the clock is set, does neither. Its descriptor is given
to the loop; when it turns readable ``read`` it and look again at what is due, whatever the reason
was.

Where there is no ``timerfd`` (other systems than Linux) making one raises OSError (ENOSYS):
re-check deadlines with each beat there, and after a resume.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress

_CLOCK_REALTIME = 0
_TFD_CLOEXEC, _TFD_NONBLOCK = 0o2000000, 0o4000
_TFD_TIMER_ABSTIME, _TFD_TIMER_CANCEL_ON_SET = 1, 2
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class WallTimer:
    """One deadline at a time, in wall-clock milliseconds since 1970."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = -1
        if not hasattr(self._libc, "timerfd_create"):
            raise OSError(errno.ENOSYS, "This system has no timer that follows the wall clock")
        flags = _TFD_CLOEXEC | _TFD_NONBLOCK
        self._descriptor = self._libc.timerfd_create(_CLOCK_REALTIME, flags)
        if self._descriptor < 0:
            raise _failure()

    def fileno(self) -> int:
        """The descriptor, readable when the deadline has come or the clock was set."""
        return self._descriptor

    def set(self, deadline_ms: int | None) -> None:
        """Replace the deadline. One in the past is due at once; ``None`` waits for nothing."""
        value = _Timespec(0, 0)
        if deadline_ms is not None:
            seconds, rest_ms = divmod(min(max(deadline_ms, 0), _LATEST_MS), 1000)
            value = _Timespec(seconds, rest_ms * 1_000_000 + 1)  # all zero would mean: no timer
        wanted = ctypes.byref(_Itimerspec(_Timespec(0, 0), value))
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        for _ in range(3):
            if self._libc.timerfd_settime(self._descriptor, flags, wanted, None) == 0:
                return
            # The clock was set since the last call: the deadline is absolute, so asking again is
            # right.
            if ctypes.get_errno() != errno.ECANCELED:
                break
        raise _failure()

    def read(self) -> bool:
        """Take the news: whether the deadline has come or the clock was set since the last time."""
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.ECANCELED:
                raise
        return True

    def close(self) -> None:
        """Give the descriptor back. Twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
