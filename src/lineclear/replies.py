"""What is answered to who acted: why nothing was done, what was taken back. English; pure.

Beside words.py, which has the words for states; the same rules hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lineclear.figures import clock, count, printable
from lineclear.job import Job, State
from lineclear.looks import look
from lineclear.words import state_word, who

BUTTONS: Final[Mapping[str, str]] = {
    "hold": "Pause",
    "release": "Resume",
    "move": "Move",
    "remove": "Remove",
    "force": "Start now",
    "stop": "Stop",
    "kill": "Stop now",
    "retry": "Retry",
}
"""The act of a route, as its button says it."""

DONE_TO: Final[Mapping[str, str]] = {
    "hold": "paused",
    "release": "resumed",
    "move": "moved",
    "remove": "removed",
    "force": "started",
    "stop": "stopped",
    "kill": "stopped",
    "retry": "added again",
}

NOTHING_TO_UNDO: Final = "There is nothing to undo."
UNDONE_BEFORE: Final = "It was undone already."
UNKNOWN_DURATION: Final = "How long it takes is not known: no job of this kind is done yet."


def too_late(act: str, job: Job, *, now_ms: int, me: str = "") -> str:
    """``Nothing was stopped: it ended by itself at 03:12 (Done).``"""
    return f"Nothing was {DONE_TO[act]}: it {_now(job, now_ms=now_ms, me=me)}."


def _now(job: Job, *, now_ms: int, me: str) -> str:
    word = state_word(look(job, now_ms=now_ms), job)
    if job.state is State.CANCELLED:
        at = clock(job.ended_ms or now_ms, now_ms=now_ms)
        return f"was {word.lower()} by {who(job.ended_by, me)} at {at}"
    if job.ended:
        return f"ended by itself at {clock(job.ended_ms or now_ms, now_ms=now_ms)} ({word})"
    if job.state is State.RUNNING:
        return f"started at {clock(job.started_ms or now_ms, now_ms=now_ms)} ({word})"
    return f"has changed meanwhile ({word})"


def undone(kind: str, jobs: int, ago: str) -> str:
    """``Undone: the move of 1 job, 2 min ago.``"""
    kinds = {"moved": "the move", "hidden": "the clearing", "retried": "the retry"}
    return f"Undone: {kinds.get(kind, 'the removal')} of {count(jobs, 'job')}, {ago} ago."


def stopped_now(lane: str, jobs: int) -> str:
    """What stopping a lane did, or that there was nothing to stop."""
    name = printable(lane)
    if not jobs:
        return f"Nothing runs in lane {name}, so nothing was stopped and it is not paused."
    back = "goes" if jobs == 1 else "go"
    return f"Stopping {count(jobs, 'job')} now; {back} back in line. Lane {name} is paused."
