"""What the stream says between two looks at the queue: events from two states. Pure.

Used by ``hub.py``. Events replace what is known and never count up, so hearing one twice does no
harm. It must never wait, and never reads the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from lineclear.figures import clock
from lineclear.words import who

Public = dict[str, Any]
"""A row, a lane or a state as the API answers it."""
Event = tuple[str, Public]

LISTS: Final = ("running", "waiting", "ended")
SENTENCES: Final = ("sentence", "tone", "unserved", "lanes", "warnings")
MOVING: Final = frozenset(
    ("word", "detail", "progress", "note", "done", "total", "unit", "percent", "left_s", "stakes")
)
"""What of a running row changes by itself: told as ``progress``, once in a while."""
AGES: Final = frozenset(("beat_age_s", "moved_age_s"))
"""Other at each look, and told only with something else."""
RAW: Final = frozenset(("args", "result", "lines"))
"""What comes out of a job as it is: a mark in there is none of ours."""
PROSE: Final = frozenset(
    ("sentence", "word", "detail", "progress", "stakes", "words", "over", "warnings")
)

_MARK = re.compile("\x02(@?)([^\x02\x03]*)\x03")


def rows(state: Public) -> dict[int, Public]:
    return {row["id"]: row for name in LISTS for row in state[name]}


def order(state: Public) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {lane["name"]: [] for lane in state["lanes"]}
    for row in state["waiting"]:
        lines.setdefault(row["lane"], []).append(row["id"])
    return lines


def copied(state: Public) -> Public:
    """A state whose rows are its own."""
    return {**state, **{name: [dict(row) for row in state[name]] for name in LISTS}}


def row_change(old: Public | None, new: Public) -> Event | None:
    """What to say of one row; ``None`` where all but its ages is as it was."""
    changed = {key for key, value in new.items() if old is None or old.get(key) != value} - AGES
    if not changed:
        return None
    if old is not None and new["state"] == "running" and changed <= MOVING:
        part = {key: value for key, value in new.items() if key in changed or key in AGES}
        return "progress", {"id": new["id"], **part}
    return "job", new


def between(
    old: Public, new: Public, *, named: Mapping[int, Public | None], moving: bool
) -> list[Event]:
    """Everything that differs, ``order`` and ``queue`` last.

    ``named``: the rows of jobs with a new line in the journal, ``None`` where there is none any
    more; they are told whether they are in the window or not. Without ``moving``, what changes by
    itself is kept back: ``new`` then takes it from ``old``, so that it is told later.
    """
    known, seen = rows(old), rows(new)
    told: list[Event] = []
    for job_id, row in seen.items():
        change = ("job", row) if job_id in named else row_change(known.get(job_id), row)
        if change is None:
            continue
        if change[0] == "progress" and not moving:
            row.update({key: known[job_id].get(key) for key in change[1]})
        else:
            told.append(change)
    for job_id, outside in named.items():
        if job_id not in seen:
            told.append(("gone", {"id": job_id}) if outside is None else ("job", outside))
    if order(old) != order(new):
        told.append(("order", {"lanes": order(new)}))
    if any(old[key] != new[key] for key in SENTENCES):
        told.append(("queue", {key: new[key] for key in SENTENCES}))
    return told


def encode(event: str, data: Public, cursor: str = "") -> bytes:
    """One server-sent event. ASCII: halves of characters that a job stored travel as escapes."""
    number = f"id: {cursor}\n" if cursor else ""
    body = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return f"event: {event}\n{number}data: {body}\n\n".encode()


def encode_all(events: Iterable[Event], cursor: str) -> bytes:
    return b"".join(
        encode(name, data, "" if name == "progress" else cursor) for name, data in events
    )


def unmarked(value: Any, *, now_ms: int, me: str) -> Any:
    """The same with plain words in this server's zone, for those who do not ask for marks."""

    def words_of(mark: re.Match[str]) -> str:
        if mark[1]:
            return who(mark[2], me)
        return clock(int(mark[2]), now_ms=now_ms) if mark[2].lstrip("-").isdecimal() else ""

    def walk(value: Any, *, prose: bool) -> Any:
        match value:
            case str():
                return _MARK.sub(words_of, value) if prose else value
            case dict():
                return {
                    key: each if key in RAW else walk(each, prose=key in PROSE)
                    for key, each in value.items()
                }
            case list():
                return [walk(each, prose=prose) for each in value]
            case _:
                return value

    return walk(value, prose=False)
