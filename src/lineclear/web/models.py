"""What the API takes and answers, as exact models: requests are checked by them, answers are
documented.

Answers are built by view.py and the routers as plain values and never pass through these (a row
that cannot be decoded must not fail); the tests hold the two together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lineclear.job import TEXT_LIMIT, State
from lineclear.looks import Look
from lineclear.store.acts import MOST_SLOTS

MOST_S = 10 * 366 * 86_400
"""Seconds of the longest delay or pause: ten years."""
MOST_IDS = 1_000

Id = Annotated[int, Field(ge=1, lt=2**53)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Text = Annotated[str, Field(max_length=TEXT_LIMIT)]
StateKey = Literal["queued", "running", "done", "failed", "cancelled"]
Ended = Literal["done", "failed", "cancelled"]
Act = Literal["hold", "release", "move", "remove", "force", "stop", "kill", "retry"]
Pair = Annotated[list[float | None], Field(min_length=2, max_length=2)]


class _Given(BaseModel):
    """A request: what is not named here is refused, and nothing is turned into what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


# Requests


class Nothing(_Given):
    pass


class Because(_Given):
    why: Text = ""


class Pausing(_Given):
    """``until`` is ISO 8601 (without an offset: the server's own time), ``for_s`` seconds."""

    why: Text = ""
    until: Annotated[str, Field(max_length=64)] | None = None
    for_s: Annotated[float, Field(gt=0, le=MOST_S)] | None = None


class LaneChange(_Given):
    delay_s: Annotated[float, Field(ge=0, le=MOST_S)] | None = None
    slots: Annotated[int, Field(ge=1, le=MOST_SLOTS)] | None = None


class Clearing(_Given):
    """``expect`` is the number the person saw; another number is refused."""

    expect: Annotated[int, Field(ge=0, lt=2**53)]


class Before(_Given):
    before: Id


class After(_Given):
    after: Id


class Moving(_Given):
    to: Literal["top", "bottom", "up", "down"] | Id | Before | After
    why: Text = ""


class Retrying(_Given):
    first: bool = False
    start_over: bool = False
    why: Text = ""


class Ids(_Given):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]
    why: Text = ""


class RetryingAll(Ids):
    first: bool = False


class Hiding(_Given):
    states: Annotated[list[Ended], Field(min_length=1, max_length=3)] = ["done"]
    lane: Name | None = None
    expect: Annotated[int, Field(ge=0, lt=2**53)] | None = None


class Undoing(_Given):
    """``undo`` is the number an act answered; without it the last act is taken back."""

    undo: Id | None = None


class Adding(_Given):
    task: Name
    args: dict[str, Any] = {}
    lane: Name | None = None
    key: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)] | None = None
    title: Text | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    first: bool = False
    paused: bool = False
    not_before: Annotated[str, Field(max_length=64)] | None = None
    dry_run: bool = False


# Answers


class Moment(_Told):
    at: str | None
    words: str


class Row(_Told):
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
    files: list[str]


class Jobs(_Told):
    """A page of rows, and the cursor of the next, if there is one."""

    jobs: list[Row]
    next: str | None


class Waiting(Jobs):
    total: int


class Pause(_Told):
    source: str
    by: str
    why: str
    since: str | None
    until: str | None
    since_ms: int
    until_ms: int | None


class Lane(_Told):
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


class Lanes(_Told):
    lanes: list[Lane]


class StoppedNow(_Told):
    """``sentence`` says so where nothing ran and nothing was done."""

    lane: Lane
    jobs: list[Row]
    sentence: str


class Removed(_Told):
    removed: int
    undo: int | None


class Cleared(_Told):
    cleared: int
    undo: int | None


class Refusal(_Told):
    id: int
    detail: str


class Many(_Told):
    """What was done to each, and why not to the others."""

    jobs: list[Row]
    refused: list[Refusal]
    undo: int | None


class Undone(_Told):
    kind: str
    ids: list[int]
    sentence: str


class Added(_Told):
    """``new`` is false where a live job with that key is there already: that one is answered."""

    job: Row
    new: bool
    place: int | None


class Estimate(_Told):
    """What adding would do (``dry_run``): nothing was added."""

    job: None
    new: bool
    place: int | None
    takes: str
    starts: str


class Counts(_Told):
    """Ended jobs in the lists, and what is live; ``capped`` where counting stopped."""

    done: int
    failed: int
    cancelled: int
    waiting: int
    running: int
    capped: bool


class Step(_Told):
    name: str
    weight: float
    result: Any
    started_ms: int
    ended_ms: int
    attempt: int


class Steps(_Told):
    steps: list[Step]
    total: int


class Event(_Told):
    seq: int
    at_ms: int
    kind: str
    by: str
    attempt: int | None
    text: str


class Events(_Told):
    events: list[Event]


class Pace(_Told):
    """(ms, done) at each measured minute of the present try."""

    points: list[Annotated[list[float], Field(min_length=2, max_length=2)]]
    total: float | None
    unit: str


class TaskAbout(_Told):
    name: str
    lane: str
    title: str | None
    unit: str
    doc: str
    args_schema: Annotated[dict[str, Any], Field(alias="schema")]
    key: str | None
    usual: str | None


class Worker(_Told):
    id: str
    host: str
    pid: int
    version: str
    lanes: list[str]
    started_ms: int
    alive: bool | None


class Spread(_Told):
    """Half of `jobs` took less than the median, half of them between low and high."""

    median_ms: int
    low_ms: int
    high_ms: int
    jobs: int


class TaskStats(_Told):
    task: str
    done: int
    failed: int
    ran: Spread | None
    waited: Spread | None


class Stats(_Told):
    """`throughput`: begin (ms), done and failed of each stretch; `oldest`: id, since when."""

    since_ms: int
    now_ms: int
    every_ms: int
    throughput: list[Annotated[list[int], Field(min_length=3, max_length=3)]]
    tasks: list[TaskStats]
    ranges: int
    inside: int
    oldest: Annotated[list[int], Field(min_length=2, max_length=2)] | None
    capped: bool


class ProblemDocument(_Told):
    """RFC 9457; ``detail`` is the sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    job: Row | None = None
