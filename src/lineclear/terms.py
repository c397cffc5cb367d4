"""The tables behind ``words.py``: the word for each state, act and event, and what is said of the
disk. English; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lineclear.figures import size
from lineclear.looks import Look

WORDS: Final[Mapping[Look, tuple[str, str, str]]] = {
    Look.WAITING: ("Waiting", "·", "muted"),
    Look.SCHEDULED: ("Waiting", "·", "muted"),
    Look.RETRY_WAIT: ("Waiting to retry", "↻", "muted"),
    Look.HELD: ("Paused", "‖", "muted"),
    Look.RUNNING: ("Running", "▶", "accent"),
    Look.QUIET: ("Quiet", "▷", "warn"),
    Look.SILENT: ("Not responding", "!", "bad"),
    Look.WORKER_GONE: ("Worker gone", "!", "bad"),
    Look.STOPPING: ("Stopping", "◼", "warn"),
    Look.STOPPING_NO_ANSWER: ("Stopping, no answer", "◼", "bad"),
    Look.STOPPING_NOW: ("Stopping now", "◼", "bad"),
    Look.DONE: ("Done", "✓", "ok"),
    Look.FAILED: ("Failed", "✗", "bad"),
    Look.STOPPED: ("Stopped", "◻", "muted"),
    Look.KILLED: ("Killed", "✗", "bad"),
    Look.LOST: ("Lost", "?", "bad"),
    Look.REMOVED: ("Removed", "–", "muted"),
}
"""The word, its glyph and its tone. Glyph and tone only repeat what the word says."""

ACTED: Final[Mapping[str, str]] = {
    "pause": "Paused",
    "resume": "Resumed",
    "move": "Moved",
    "remove": "Removed",
    "stop": "Stopping",
    "kill": "Stopping now",
    "retry": "Added again",
    "start": "Starting now",
}
"""What a command answers, before the name of the job."""

HAPPENED: Final[Mapping[str, str]] = {
    "added": "added by {by}",
    "claimed": "started, try {attempt}",
    "held": "paused by {by}",
    "released": "resumed by {by}",
    "removed": "removed by {by}",
    "restored": "put back by {by}",
    "forced": "started now by {by}",
    "moved": "moved by {by}",
    "retried": "added again by {by}",
    "retry undone": "put back as it had ended by {by}",
    "asked again": "added again by {by} while it was being stopped",
    "hidden": "cleared from the lists by {by}",
    "shown again": "back in the lists by {by}",
    "back in line": "back in line",
    "to retry": "failed, waits to retry",
}
"""What an event says; ``asked`` and ``ended`` depend on more."""

ASKED: Final[Mapping[str, str]] = {"cancel": "stop", "kill": "stop now", "requeue": "stop now"}

LOW_DISK = 1_000_000_000
BIG_LOG = 256 * 1024 * 1024
"""Bytes below which the disk's free space, and above which the write-ahead log, is said."""

LOG_HINT: Final = "a program holds a read open; close what has looked longest"


def warnings(*, free: int, log: int) -> list[str]:
    """What threatens the whole queue, a sentence each."""
    told = [f"Disk almost full: {size(free)} free. Jobs may fail."] if free < LOW_DISK else []
    return told + ([f"The write-ahead log has {size(log)}: {LOG_HINT}."] if log > BIG_LOG else [])
