"""Numbers, times, durations and ranges as people read them, on the page and the command line. Pure.

``words.py`` builds its sentences from these. They never read a clock: callers hand in ``now_ms``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from lineclear.estimate import Span

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

# Control characters, line separators, what turns the direction of writing, halves of characters.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


_marks: ContextVar[bool] = ContextVar("marks", default=False)


@contextmanager
def marked() -> Iterator[None]:
    """Inside, moments and names in sentences are marks, which the page turns into its reader's own
    time and "you": ``\\x02<ms>\\x03`` and ``\\x02@<name>\\x03``. Nothing else makes one: what comes
    from a job passes ``printable``.
    """
    before = _marks.set(True)
    try:
        yield
    finally:
        _marks.reset(before)


def name_mark(name: str) -> str | None:
    """A person's name as a mark, where marks are wanted."""
    return f"\x02@{printable(name)}\x03" if _marks.get() else None


def printable(text: str) -> str:
    """``text`` in one line, with everything escaped that could steer a terminal or a page."""
    text = text.replace("\n", " ").replace("\t", " ")
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def count(amount: int, noun: str, nouns: str | None = None) -> str:
    """``1 job``, ``6 jobs``."""
    return f"{amount:,} {noun if amount == 1 else nouns or noun + 's'}"


def ordinal(place: int) -> str:
    """``1st``, ``12th``, ``23rd``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place:,}{'th' if place % 100 in (11, 12, 13) else ending}"


def number(value: float) -> str:
    """``1,204`` or ``12.5``."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def size(octets: float) -> str:
    """``1.2 GB``, in steps of a thousand."""
    if octets < 1000:
        return f"{octets:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        octets /= 1000
        if octets < 1000:
            return f"{octets:.0f} {unit}" if octets >= 100 else f"{octets:.1f} {unit}"
    return f"{octets / 1000:,.1f} TB"


def duration(value_ms: float, *, exact: bool = False) -> str:
    """In at most two units: ``1 h 12 min``, ``38 min``, ``12 s``; ``exact``: ``1 min 30 s``."""
    seconds = max(0, int(value_ms // SECOND_MS))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        parts = [(days, "d"), (hours % 24, "h")]
    elif hours:
        parts = [(hours, "h"), (minutes % 60, "min")]
    elif minutes and not exact:
        parts = [(minutes, "min")]
    else:
        parts = [(minutes, "min"), (seconds % 60, "s")]
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount) or "0 s"


def _local(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone()


def clock(at_ms: int, *, now_ms: int) -> str:
    """Local time; the day unless it is today: ``03:12``, ``yesterday 23:10``, ``28 Nov 09:00``."""
    if _marks.get():
        return f"\x02{at_ms}\x03"
    try:
        at, now = _local(at_ms), _local(now_ms)
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
    day = {0: "", 1: "tomorrow ", -1: "yesterday "}.get((at.date() - now.date()).days)
    if day is None:
        day = f"{at.day} {at:%b} " if at.year == now.year else f"{at:%Y-%m-%d} "
    return f"{day}{at:%H:%M}"


def iso(at_ms: int | None) -> str | None:
    """ISO 8601 with the local offset; ``None`` for what is not known."""
    try:
        return None if at_ms is None else _local(at_ms).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def span(value: Span) -> str:
    """``45–70 min``, ``1–1½ h``, ``more than 40 min``, ``about 5 min``."""
    low, high = value.low_ms // MINUTE_MS, (value.high_ms or 0) // MINUTE_MS
    if value.high_ms is None:
        return f"more than {duration(max(low, 1) * MINUTE_MS)}"
    if low == 0:
        return f"under {max(high, 1)} min"
    if high >= 120 and low >= 60:
        low -= low % 15
    if low >= high:
        return f"about {duration(high * MINUTE_MS)}"
    if low >= 60 and low % 15 == 0 and high % 15 == 0:
        return f"{_hours(low)}–{_hours(high)} h"
    return f"{low} min–{_hours(high)} h" if high >= 120 else f"{low}–{high} min"


def about(text: str) -> str:
    """``about`` before a range that does not say so itself."""
    return text if text.startswith(("about", "more", "under")) else f"about {text}"


def _hours(minutes: int) -> str:
    whole, quarter = divmod(minutes // 15, 4)
    return f"{whole or ''}{('', '¼', '½', '¾')[quarter]}"
