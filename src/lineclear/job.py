"""The data everything else speaks of. Frozen, no behaviour beyond reading itself; imports nothing
of ours.

Times ending in ``_ms`` are wall-clock milliseconds since 1970 (for people). Fields ending in
``_tick`` are milliseconds of the lease clock (see clock.py) and are compared only on the machine
that wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

TEXT_LIMIT = 500
"""Characters of an error, note or reason kept in a row; the whole of it is in the job's log."""

PAYLOAD_LIMIT = 16 * 1024 * 1024
"""Bytes of JSON that arguments, or a result, may have."""


class State(StrEnum):
    """The five stored states."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (State.DONE, State.FAILED, State.CANCELLED)


class Wish(StrEnum):
    """What people want of a running job. Wishes only rise: requeue, cancel, kill."""

    REQUEUE = "requeue"
    CANCEL = "cancel"
    KILL = "kill"


class Cause(StrEnum):
    """How a job ended, or how its last attempt did. ``error`` carries the sentence with the
    particulars.
    """

    RETURNED = "returned"
    RAISED = "raised"
    EXITED = "exited"
    SIGNALLED = "signalled"
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"
    ASKED = "asked"
    KILLED = "killed"
    REMOVED = "removed"
    INTERRUPTED = "interrupted"
    WORKER_LOST = "worker lost"
    STOPPED_NOW = "stopped now"
    SUPERSEDED = "superseded"
    PARENT_CANCELLED = "parent cancelled"


RunsIn = Literal["own", "thread", "coroutine"]
"""A process of its own, or a place in its lane's host process."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a task wants its jobs to be run. Travels with the job, since the supervisor never loads
    the task.
    """

    retries: int = 0
    retry_delay_s: float = 60.0
    timeout_s: float | None = None
    memory_mb: int | None = None
    nice: int | None = None
    max_interruptions: int = 3
    unit: str = ""
    runs_in: RunsIn = "own"
    keep_on_stop_now: bool = True


@dataclass(frozen=True, slots=True)
class NewJob:
    """A checked submission: what ``Queue.submit`` hands to the store."""

    task: str
    lane: str
    args: str
    app: str
    key: str | None = None
    title: str = ""
    priority: int = 0
    first: bool = False
    run_at_ms: int | None = None
    held_by: str | None = None
    parent: int | None = None
    ordinal: str | None = None
    by: str = ""
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it was when it was read.

    ``beat_age_ms``, ``moved_age_ms`` and ``worker_alive`` are computed at that moment and stored
    nowhere; each is ``None`` where it cannot be known. In lists ``args`` and ``result`` are cut;
    their sizes (in characters) are those of the whole. ``kept`` is the weight of finished steps.
    """

    id: int
    lane: str
    task: str
    args: str
    app: str
    key: str | None
    title: str
    state: State
    priority: int
    position: int
    run_at_ms: int | None
    held_ms: int | None
    held_by: str | None
    forced_ms: int | None
    revision: int
    run_revision: int
    attempt: int
    failures: int
    interruptions: int
    slot: int | None
    lease: str | None
    worker: str | None
    child_pid: int | None
    child_start: int | None
    beat_tick: int | None
    moved_tick: int | None
    start_tick: int | None
    moves: int
    publishing: str | None
    wish: Wish | None
    wish_by: str | None
    wish_ms: int | None
    outcome: str | None
    done: float | None
    total: float | None
    unit: str
    note: str
    result: str | None
    error: str | None
    cause: Cause | None
    parent: int | None
    submitted_ms: int
    submitted_by: str
    started_ms: int | None
    start_done: float | None
    ended_ms: int | None
    ended_by: str | None
    worked_ms: int
    kept: float
    hidden_ms: int | None
    version: int
    args_size: int
    result_size: int | None
    options: Options
    beat_age_ms: int | None = None
    moved_age_ms: int | None = None
    worker_alive: bool | None = None

    @property
    def name(self) -> str:
        """What people call it: its title, else its task."""
        return self.title or self.task

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Pause:
    """One reason why a lane is paused. A lane may have several; each source sets and clears its
    own.
    """

    source: str
    by: str
    why: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane as it was when it was read. Counts stop at ``COUNT_LIMIT``: a look must not grow
    with the backlog.
    """

    name: str
    concurrency: int
    delay_ms: int
    last_end_ms: int | None
    pauses: tuple[Pause, ...] = ()
    running: int = 0
    waiting: int = 0
    workers: int = 0
    last_served_ms: int | None = None


COUNT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs are in the lists, by state. Each stops at ``COUNT_LIMIT`` for each lane;
    ``capped`` says that one did.
    """

    done: int
    failed: int
    cancelled: int
    waiting: int
    running: int
    capped: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a lane's waiting jobs in order, with the place in line of each. ``next`` is where
    the following page begins, ``None`` at the end.
    """

    jobs: tuple[Job, ...]
    places: tuple[int | None, ...]
    next: str | None
    total: int


@dataclass(frozen=True, slots=True)
class Step:
    """One finished, recorded part of a job."""

    name: str
    weight: float
    result: str | None
    started_ms: int
    ended_ms: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal."""

    seq: int
    job: int | None
    lane: str | None
    at_ms: int
    kind: str
    attempt: int | None
    by: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Worker:
    """One life of a worker process. ``alive`` is computed when it is read; ``None`` where it cannot
    be known.
    """

    id: str
    host: str
    pid: int
    version: str
    lanes: tuple[str, ...]
    started_ms: int
    alive: bool | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What the one who waited for a run's process knows of its end.

    ``why`` says what ended it: ``itself``, or one of the reasons for which this worker ended it
    (``lost``: another worker's run was taken back). A process that several jobs shared died, nobody
    knows by whose doing (``shared``), or was ended for another's sake (``aside``). ``sentence``
    says more where the code or signal does not.
    """

    why: Literal[
        "itself",
        "interrupt",
        "wish",
        "timeout",
        "not started",
        "no room",
        "lost",
        "shared",
        "aside",
    ] = "itself"
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child says its task ended. ``result`` is JSON text."""

    kind: Literal["done", "failed", "cancelled", "interrupted", "timed out"]
    result: str | None = None
    error: str | None = None
    cause: Cause = Cause.RETURNED
