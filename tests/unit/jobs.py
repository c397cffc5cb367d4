"""Jobs as data, for the tests of what only looks at data."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from lineclear.job import Job, Options, State

NOW_MS = 1_800_000_000_000


def queued(**changes: Any) -> Job:
    bare: dict[str, Any] = {
        "id": 1,
        "lane": "line",
        "task": "sleep",
        "args": "{}",
        "app": "app:sleep",
        "title": "",
        "state": State.QUEUED,
        "priority": 0,
        "position": 7,
        "revision": 1,
        "run_revision": 0,
        "attempt": 0,
        "failures": 0,
        "interruptions": 0,
        "moves": 0,
        "unit": "",
        "note": "",
        "submitted_ms": NOW_MS - 60_000,
        "submitted_by": "ann",
        "worked_ms": 0,
        "version": 1,
        "options": Options(),
    }
    rest = {f.name: None for f in fields(Job) if f.name not in bare and f.default is MISSING}
    return Job(**(rest | bare | changes))


def running(**changes: Any) -> Job:
    run = {
        "state": State.RUNNING,
        "slot": 0,
        "lease": "0" * 32,
        "worker": "w1",
        "attempt": 1,
        "run_revision": 1,
        "started_ms": NOW_MS - 5_000,
        "start_tick": 1_000,
        "beat_tick": 6_000,
        "moved_tick": 6_000,
    }
    return queued(**(run | changes))
