"""The queue as programs, the command line and the page hold it: tasks and submitting. Acts are
``Control``, looking is ``Database``, which this extends.

Importing this loads no store: the child imports applications, and must stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from lineclear.clock import Clock
from lineclear.control import Control, Many, Request, Undone
from lineclear.errors import UnknownTask
from lineclear.job import TEXT_LIMIT, Job, NewJob
from lineclear.lanes import LaneHandle
from lineclear.tasks import Task, check_key, check_name, make_task, refuse_while_loading, register

if TYPE_CHECKING:
    from lineclear.store.base import Tx

__all__ = ["Added", "Many", "Queue", "Request", "TaskOptions", "Undone"]


@dataclass(frozen=True, slots=True)
class Added:
    """What a submission made: the job, whether it is new, and its place in line from 1."""

    job: Job
    new: bool
    place: int | None


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
    runs_in: Literal["own", "thread"] | None


class Queue(Control):
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
        super().__init__(database, by=by, clock=clock, create=create)
        self.tasks: dict[str, Task] = {}

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
            runs_in: ``"thread"`` for a thread of the lane's host process; a process of its own by
                default. An ``async def`` is a coroutine in the host process.

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

    def add(self, task: str | Task, args: Mapping[str, Any] | None = None, **options: Any) -> Added:
        """Write a job and answer at once; never starts work here. On disk before it answers.

        A live job with the same key is answered instead of a second one (``new`` is false then).
        The options are those of ``checked``, which says what is wrong with them.
        """
        return self.put(self.checked(task, args, **options))

    def checked(
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
    ) -> NewJob:
        """A submission, checked and not stored yet.

        Raises:
            UnknownTask, UnknownLane, BadInput, TooLarge: what is wrong; nothing has changed.
        """
        known = self._task(task)
        by = by or self.by
        text = known.check(args or {})
        if lane is not None:
            self._check_lane(lane)
        return NewJob(
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

    def put(self, new: NewJob) -> Added:
        """Store a checked submission."""
        refuse_while_loading()
        from lineclear.store import reads

        def submit(tx: Tx, acts: Any) -> tuple[Job, bool, int | None]:
            job, is_new = acts.submit(tx, new)
            return job, is_new, reads.place(tx, job)

        return Added(*self.change(submit))

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
