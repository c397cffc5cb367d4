"""The queue as programs, the command line and the page hold it: tasks, submitting, and every act
a person can ask for. Looking is ``Database``, which this extends.

Importing this loads no store: the child imports applications, and must stay small.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from lineclear import moves
from lineclear.clock import Clock
from lineclear.database import Database
from lineclear.errors import UnknownTask
from lineclear.job import TEXT_LIMIT, Job, NewJob, State
from lineclear.lanes import LaneHandle
from lineclear.tasks import Task, check_key, check_name, make_task, refuse_while_loading, register

if TYPE_CHECKING:
    from lineclear.store.base import Tx
    from lineclear.store.places import To

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Added:
    """What a submission made: the job, whether it is new, and its place in line from 1."""

    job: Job
    new: bool
    place: int | None


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo took back, the ids of the jobs it changed, and when the act was done."""

    kind: str
    jobs: tuple[int, ...]
    at_ms: int


class TaskOptions(TypedDict, total=False):
    """How a task's jobs are run; ``Queue.task`` says what each means."""

    lane: str
    name: str | None
    key: str | None
    title: str | None
    retries: int
    retry_delay_s: float
    timeout_s: float | None
    memory_mb: int | None
    nice: int | None
    unit: str
    max_interruptions: int


class Queue(Database):
    """Jobs in one database, with the tasks that do them."""

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        by: str | None = None,
        clock: Clock | None = None,
        create: bool = True,
    ) -> None:
        """``by`` names who asks, in the journal (default: the user and the machine)."""
        super().__init__(database, clock=clock, create=create)
        self.tasks: dict[str, Task] = {}
        self._by = by

    @property
    def by(self) -> str:
        if self._by is None:
            self._by = _user()
        return self._by

    # Tasks

    @overload
    def task(self, function: Callable[..., Any], /) -> Task: ...

    @overload
    def task(self, /, **options: Unpack[TaskOptions]) -> Callable[[Callable[..., Any]], Task]: ...

    def task(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]
    ) -> Task | Callable[[Callable[..., Any]], Task]:
        """Register a function as the task for a kind of job.

        Args:
            lane: the line its jobs wait in.
            key: template such as ``"{book}"``; one live job per key and lane.
            title: template for what people read.
            retries: how often a failure is tried again by itself; 0 by default, no blind retry.
            retry_delay_s: seconds before the first such try, doubled each time.
            timeout_s: seconds one attempt may take.
            memory_mb: megabytes of data one attempt's process may hold.
            nice: added to its process's niceness.
            unit: what its progress counts, such as ``"characters"``.
            name: what the task is called; the function's name by default.
            max_interruptions: interruptions in a row without a finished step after which it fails.

        Raises:
            BadInput: an option does not fit; ``field`` names it.
        """

        def registered(wrapped: Callable[..., Any]) -> Task:
            task = make_task(wrapped, queue=self, **options)
            register(self.tasks, task)
            return task

        return registered if function is None else registered(function)

    # Submitting

    def submit(
        self, task: str | Task, args: Mapping[str, Any] | None = None, **options: Any
    ) -> Job:
        """``add``, answering the job alone."""
        return self.add(task, args, **options).job

    def add(
        self,
        task: str | Task,
        args: Mapping[str, Any] | None = None,
        *,
        lane: str | None = None,
        key: str | None = None,
        title: str | None = None,
        priority: int = 0,
        first: bool = False,
        run_at_ms: int | None = None,
        held: bool = False,
        by: str | None = None,
    ) -> Added:
        """Write a job and answer at once; never starts work here. On disk before it answers.

        A live job with the same key is answered instead of a second one (``new`` is false then).

        Raises:
            UnknownTask, UnknownLane, BadInput, TooLarge: what was wrong; nothing has changed.
        """
        known = self._task(task)
        by = by or self.by
        text = known.check(args or {})
        if lane is not None:
            self._check_lane(lane)
        new = NewJob(
            task=known.name,
            lane=lane or known.lane,
            args=text,
            app=known.app,
            key=known.render_key(text) if key is None else check_key(key),
            title=(title or known.render_title(text))[:TEXT_LIMIT],
            priority=priority,
            first=first,
            run_at_ms=run_at_ms,
            held_by=by if held else None,
            by=by,
            options=known.options,
        )
        return self.put(new)

    def put(self, new: NewJob) -> Added:
        """Store a checked submission."""
        refuse_while_loading()
        from lineclear.store import acts, reads

        with self.store.write() as tx:
            job, is_new = acts.submit(tx, new)
            place = reads.place(tx, job)
        return Added(job, is_new, place)

    def _task(self, task: str | Task) -> Task:
        if isinstance(task, Task):
            return task
        if task not in self.tasks:
            names = ", ".join(sorted(self.tasks)) or "none"
            raise UnknownTask("task", f"There is no task {task!r}. Tasks here: {names}.")
        return self.tasks[task]

    def _check_lane(self, lane: str) -> None:
        from lineclear.store import acts

        check_name("lane", lane)
        with self.store.write(durable=False) as tx:
            acts.known_lane(tx, lane, declared=self._declared)

    @property
    def _declared(self) -> set[str]:
        return {task.lane for task in self.tasks.values()}

    def lane(self, name: str) -> LaneHandle:
        """Raises ``UnknownLane`` where nothing was ever submitted to it and no task here declares
        it.
        """
        self._check_lane(name)
        return LaneHandle(self, name)

    # Acts on one job

    def hold(self, job_id: int, **asked: Any) -> Job:
        """Set one waiting job aside; it keeps its place."""
        return self._act(
            job_id, lambda job, who, now, _: moves.hold(job, by=who, now_ms=now), **asked
        )

    def release(self, job_id: int, **asked: Any) -> Job:
        return self._act(job_id, lambda job, who, _now, _why: moves.release(job, by=who), **asked)

    def cancel(self, job_id: int, **asked: Any) -> Job:
        """Waiting: it ends at once. Running: asked, and done at the job's next safe point."""
        return self._act(
            job_id,
            lambda job, who, now, why: moves.cancel(job, by=who, now_ms=now, why=why),
            **asked,
        )

    def kill(self, job_id: int, **asked: Any) -> Job:
        """End its processes now; it ends as cancelled."""
        return self._act(
            job_id, lambda job, who, now, why: moves.kill(job, by=who, now_ms=now, why=why), **asked
        )

    def force(self, job_id: int, **asked: Any) -> Job:
        """Start one waiting job past its lane's pause and delay, never past its slots."""
        return self._act(
            job_id, lambda job, who, now, _: moves.force(job, by=who, now_ms=now), **asked
        )

    def prioritize(self, job_id: int, priority: int, **asked: Any) -> Job:
        """Higher goes first."""

        def decide(job: Job, who: str, _now: int, _why: str) -> moves.Move | None:
            return moves.place(job, priority=priority, position=job.position, by=who)

        return self._act(job_id, decide, **asked)

    def _act(
        self,
        job_id: int,
        decide: Callable[[Job, str, int, str], moves.Move | None],
        *,
        if_version: int | None = None,
        if_state: State | None = None,
        by: str | None = None,
        why: str = "",
    ) -> Job:
        job: Job = self._write(
            lambda tx, acts: acts.act(
                tx,
                job_id,
                lambda job: decide(job, by or self.by, tx.now_ms, why),
                if_version=if_version,
                if_state=if_state,
            )
        )
        return job

    def _write(self, act: Callable[[Tx, Any], T]) -> T:
        from lineclear.store import acts

        with self.store.write() as tx:
            return act(tx, acts)

    def move(self, job_id: int, to: To, *, by: str | None = None) -> Job:
        """``top``, ``bottom``, ``up``, ``down``, a place from 1, ``("before", id)`` or ``("after",
        id)``.
        """
        job: Job = self._write(lambda tx, acts: acts.move_to(tx, job_id, to, by=by or self.by))
        return job

    def retry(
        self, job_id: int, *, start_over: bool = False, first: bool = False, by: str | None = None
    ) -> Job:
        """An ended job back in line with its finished steps; ``start_over`` drops them."""
        who = by or self.by
        job: Job = self._write(
            lambda tx, acts: acts.retry(tx, job_id, by=who, start_over=start_over, first=first)
        )
        return job

    def remove(self, *job_ids: int, by: str | None = None, why: str = "") -> list[Job]:
        """Take waiting jobs out of the line, all of them or none. ``undo`` brings them back."""
        return self._write(lambda tx, acts: acts.remove(tx, job_ids, by=by or self.by, why=why))

    def clear(
        self,
        *,
        states: Iterable[State] = (State.DONE,),
        lane: str | None = None,
        before_ms: int | None = None,
        by: str | None = None,
    ) -> int:
        """Hide ended jobs from the lists; answers how many. Rows and logs stay."""
        who = by or self.by
        hidden = self._write(
            lambda tx, acts: acts.clear(tx, states=states, lane=lane, before_ms=before_ms, by=who)
        )
        return len(hidden)

    def undo(self, *, by: str | None = None) -> Undone | None:
        """Take back the last remove, clear or move of the last seven days; ``None`` where there is
        none.
        """
        done = self._write(lambda tx, acts: acts.undo(tx, by=by or self.by))
        return None if done is None else Undone(done[0], tuple(done[1]), done[2])


def _user() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
