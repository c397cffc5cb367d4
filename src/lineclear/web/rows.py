"""A job and a lane as every answer of the API shows them, as exact models, for the document alone.

Answers are built by view.py and shown.py as plain values and never pass through these (a row that
cannot be decoded must not fail); the tests hold the two together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lineclear.job import State
from lineclear.looks import Look

Act = Literal["hold", "release", "move", "remove", "force", "stop", "kill", "retry"]
Pair = Annotated[list[float | None], Field(min_length=2, max_length=2)]


class Told(BaseModel):
    """An answer: these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Moment(Told):
    at: str | None
    words: str


class Row(Told):
    """One job as it is shown. In lists ``args`` and ``result`` are cut; unknown is null."""

    id: int
    title: str
    task: str
    lane: str
    key: str | None
    state: State
    look: Look
    word: str
    glyph: str
    tone: Literal["muted", "accent", "ok", "warn", "bad"]
    detail: str
    progress: str
    note: str
    place: int | None
    priority: int
    try_: Annotated[int, Field(alias="try")]
    acts: list[Act]
    stakes: str
    args: Any
    result: Any
    done: float | None
    total: float | None
    unit: str
    percent: int | None
    left_s: Pair | None
    starts_in_s: Pair | None
    cause: str | None
    error: str | None
    worked_s: float
    beat_age_s: float | None
    moved_age_s: float | None
    wish: Literal["requeue", "cancel", "kill"] | None
    added: Moment | None
    added_by: str
    not_before: Moment | None
    paused: Moment | None
    started: Moment | None
    ended: Moment | None
    ended_by: str | None
    submitted_ms: int
    run_at_ms: int | None
    held_ms: int | None
    started_ms: int | None
    ended_ms: int | None
    hidden: bool
    parent: int | None
    version: int


class JobAfter(Row):
    """A row after an act; ``undo`` is the act's number where it can be taken back."""

    undo: int | None = None


class Whole(Row):
    """One job with everything: arguments and result uncut, and what only its own page shows."""

    reasons: list[str]
    kept: float
    usual: str | None
    tries: int
    log: bool
    steps_done: int


class Pause(Told):
    source: str
    by: str
    why: str
    since: str | None
    until: str | None
    since_ms: int
    until_ms: int | None


class Lane(Told):
    """``next_start_ms`` is there while the delay between jobs runs."""

    name: str
    slots: int
    delay_s: float
    running: int
    waiting: int
    workers: int
    last_served: str | None
    last_served_ms: int | None
    pauses: list[Pause]
    sentence: str
    next_start_ms: int | None
    counts_capped: bool
