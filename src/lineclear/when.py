"""Durations and points in time as people type them: ``1h30m``, ``07:00``, ``tomorrow 06:30``.

Raises ``BadInput`` naming the option; never guesses between two readings.
"""

from __future__ import annotations

import re
import time
from datetime import datetime

from lineclear.errors import BadInput
from lineclear.figures import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS = {
    "ms": 1,
    "s": SECOND_MS,
    "sec": SECOND_MS,
    "m": MINUTE_MS,
    "min": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_CLOCK = re.compile(r"(?:(today|tomorrow)\s+)?(\d{1,2}):(\d{2})")
LONGEST_MS = 10 * 366 * DAY_MS


def duration_ms(text: str, field: str) -> int:
    """``90s``, ``15min``, ``1h30m``, ``7d``; ``0`` needs no unit."""
    given = text.strip().lower()
    if given.startswith("-"):
        raise BadInput(field, f"{field} cannot be negative: {text}.")
    parts = _PART.findall(given)
    known = bool(parts) and _PART.sub("", given) == "" and all(unit in _UNITS for _, unit in parts)
    if not known and given != "0":
        raise BadInput(
            field, f"{field} is a duration such as 90s, 15min, 1h30m or 7d, not {text!r}."
        )
    total = sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    if total > LONGEST_MS:
        raise BadInput(field, f"{field} is longer than ten years: {text}.")
    return int(total)


def moment_ms(text: str, field: str, *, now_ms: int) -> int:
    """A time to come: ``07:00`` (the next one), ``tomorrow 06:30``, ``1h`` from now, ISO 8601."""
    given = text.strip()
    named = _CLOCK.fullmatch(given.lower())
    if named and int(named[2]) < 24 and int(named[3]) < 60:
        today = _local(now_ms, hour=int(named[2]), minute=int(named[3]))
        if named[1] == "tomorrow" or (named[1] is None and today <= now_ms):
            return _local(now_ms, hour=int(named[2]), minute=int(named[3]), days=1)
        return today
    iso = _iso_ms(given)
    if iso is not None:
        return iso
    if _PART.match(given.lower()):
        return now_ms + duration_ms(given, field)
    raise BadInput(
        field,
        f"{field} is a time such as 07:00, tomorrow 06:30, 2h or 2026-12-01T07:00, not {text!r}.",
    )


def ago_ms(text: str, field: str, *, now_ms: int) -> int:
    """A time gone by: ``7d`` ago, or ISO 8601."""
    iso = _iso_ms(text.strip())
    return iso if iso is not None else now_ms - duration_ms(text, field)


def _iso_ms(text: str) -> int | None:
    if not re.match(r"\d{4}-", text):
        return None
    try:
        # Without an offset it is the reader's own time; astimezone reads it so.
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def _local(now_ms: int, *, hour: int, minute: int, days: int = 0) -> int:
    day = time.localtime(now_ms / 1000)
    given = (day.tm_year, day.tm_mon, day.tm_mday + days, hour, minute, 0, 0, 0, -1)
    return int(time.mktime(given) * 1000)
