"""What the API answers beyond single rows and lanes, as exact models, for the document alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from lineclear.web.rows import JobAfter, Lane, Row, Told, Whole

__all__ = ["JobAfter", "Lane", "Row", "Whole"]


class Jobs(Told):
    """A page of rows, and the cursor of the next, if there is one."""

    jobs: list[Row]
    next: str | None


class Waiting(Jobs):
    total: int


class Lanes(Told):
    lanes: list[Lane]


class StoppedNow(Told):
    """``sentence`` says so where nothing ran and nothing was done."""

    lane: Lane
    jobs: list[Row]
    sentence: str


class Removed(Told):
    removed: int
    undo: int | None


class Cleared(Told):
    cleared: int
    undo: int | None


class Refusal(Told):
    id: int
    detail: str


class Many(Told):
    """What was done to each, and why not to the others."""

    jobs: list[Row]
    refused: list[Refusal]
    undo: int | None


class Undone(Told):
    kind: str
    ids: list[int]
    sentence: str


class Added(Told):
    """``new`` is false where a live job with that key is there already: that one is answered."""

    job: Row
    new: bool
    place: int | None


class Estimate(Told):
    """What adding would do (``dry_run``): nothing was added."""

    job: None
    new: bool
    place: int | None
    takes: str
    starts: str


class Counts(Told):
    """Ended jobs in the lists, and what is live; ``capped`` where counting stopped."""

    done: int
    failed: int
    cancelled: int
    waiting: int
    running: int
    capped: bool


class Step(Told):
    name: str
    weight: float
    result: Any
    started_ms: int
    ended_ms: int
    attempt: int


class Steps(Told):
    steps: list[Step]
    total: int


class Event(Told):
    seq: int
    at_ms: int
    kind: str
    by: str
    attempt: int | None
    text: str


class Events(Told):
    events: list[Event]


class Pace(Told):
    """(ms, done) at each measured minute of the present try."""

    points: list[Annotated[list[float], Field(min_length=2, max_length=2)]]
    total: float | None
    unit: str


class TaskAbout(Told):
    name: str
    lane: str
    title: str | None
    unit: str
    doc: str
    args_schema: Annotated[dict[str, Any], Field(alias="schema")]
    key: str | None
    usual: str | None


class Worker(Told):
    id: str
    host: str
    pid: int
    version: str
    lanes: list[str]
    started_ms: int
    alive: bool | None


class Spread(Told):
    """Half of `jobs` took less than the median, half of them between low and high."""

    median_ms: int
    low_ms: int
    high_ms: int
    jobs: int


class TaskStats(Told):
    task: str
    done: int
    failed: int
    ran: Spread | None
    waited: Spread | None


class Stats(Told):
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


class ProblemDocument(Told):
    """RFC 9457; ``detail`` is the sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    job: Row | None = None
