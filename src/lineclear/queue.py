"""The queue as programs, the command line and the page hold it: submit, look, and every act a
person can ask for.

Importing this loads no store: the child imports applications, and must stay small.
"""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from lineclear import moves
from lineclear.clock import Clock, SystemClock
from lineclear.errors import BadInput, UnknownTask
from lineclear.files import Files
from lineclear.job import TEXT_LIMIT, Event, Job, Lane, NewJob, State, Step, Worker
from lineclear.looks import Reason, why_waiting
from lineclear.settings import database_path
from lineclear.tasks import Task, check_key, check_name, make_task, refuse_while_loading, register

if TYPE_CHECKING:
    from lineclear.bell import Listener
    from lineclear.store.acts import To
    from lineclear.store.base import Tx
    from lineclear.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class Added:
    """What a submission made: the job, whether it is new, and its place in line from 1."""

    job: Job
    new: bool
    place: int | None


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo took back, the jobs as they are now, and when the act was done."""

    kind: str
    jobs: tuple[Job, ...]
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


class Queue:
    """Jobs in one database. Opens it at the first use; safe to share between threads."""

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        by: str | None = None,
        clock: Clock | None = None,
        create: bool = True,
    ) -> None:
        """``by`` names who asks, in the journal (default: the user's name); ``create=False`` makes
        no new file.
        """
        self.tasks: dict[str, Task] = {}
        self._named = database
        self._by = by
        self._clock = clock or SystemClock()
        self._create = create

    @cached_property
    def database(self) -> Path:
        """Named at construction, else ``LINECLEAR_DATABASE``, else ``./lineclear.db``."""
        return database_path(self._named)

    @property
    def by(self) -> str:
        if self._by is None:
            self._by = _user()
        return self._by

    @property
    def files(self) -> Files:
        return Files(self.database)

    @cached_property
    def store(self) -> SqliteStore:
        from lineclear.store.sqlite import SqliteStore

        return SqliteStore(self.database, clock=self._clock, create=self._create)

    def check_store(self) -> None:
        """Open the database and let go of it. Raises ``StoreError`` saying why it cannot be used."""
        _ = self.store
        self.close()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        if "store" in self.__dict__:
            self.store.close()
            del self.__dict__["store"]

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

    # Looking

    def get(self, job_id: int) -> Job:
        """One job, whole. Raises ``NoSuchJob``."""
        return self._read_jobs(lambda tx, reads: [reads.job(tx, job_id)])[0]

    def find(self, text: str) -> list[Job]:
        """The jobs a person means by an id, ``last``, ``running``, or the beginning of a title or
        key.
        """

        def look(tx: Tx, reads: Any) -> list[Job]:
            if text == "running":
                return list(reads.running(tx, None))
            if text == "last":
                last = reads.last_id(tx)
                return [] if last is None else [reads.job(tx, last)]
            if text.isascii() and text.isdecimal():
                return [reads.job(tx, int(text))] if int(text) < 2**62 else []
            return list(reads.named(tx, text))

        return self._read_jobs(look)

    def jobs(
        self,
        *,
        lane: str | None = None,
        task: str | None = None,
        state: State | None = None,
        text: str | None = None,
        since_ms: int | None = None,
        before: int | None = None,
        limit: int = 50,
        hidden: bool = False,
    ) -> list[Job]:
        """Newest first, a page at a time: ``before`` is the last id of the page before."""
        return self._read_jobs(
            lambda tx, reads: reads.listing(
                tx, lane=lane, task=task, state=state, text=text, since_ms=since_ms,
                before=before, limit=limit, hidden=hidden,
            )
        )  # fmt: skip

    def running(self, lane: str | None = None) -> list[Job]:
        return self._read_jobs(lambda tx, reads: reads.running(tx, lane))

    def waiting(self, lane: str | None = None, *, limit: int = 50) -> list[Job]:
        """In order, lane by lane."""

        def look(tx: Tx, reads: Any) -> list[Job]:
            names = [lane] if lane else [row["name"] for row in tx.all("lane_all")]
            return [job for name in names for job in reads.waiting(tx, name, limit)]

        return self._read_jobs(look)

    def recent(self, lane: str | None = None, *, limit: int = 10) -> list[Job]:
        """The last that ended, newest first."""
        return self._read_jobs(lambda tx, reads: reads.recent(tx, lane, limit))

    def lanes(self) -> list[Lane]:
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.lanes(tx, self._living(tx))

    def lane(self, name: str) -> LaneHandle:
        """Raises ``UnknownLane`` where nothing was ever submitted to it and no task here declares
        it.
        """
        self._check_lane(name)
        return LaneHandle(self, name)

    def workers(self) -> list[Worker]:
        """Every worker that has not stopped in order, with whether it lives."""
        from lineclear.store import runs

        with self.store.read() as tx:
            signs = runs.signs(tx)
        return [
            Worker(s.id, s.host, s.pid, s.version, s.lanes, s.started_ms, self._alive(s.id))
            for s in signs
        ]

    def steps(self, job_id: int) -> list[Step]:
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.steps(tx, job_id)

    def events(self, job_id: int | None = None, *, after: int = 0, limit: int = 200) -> list[Event]:
        """The journal after a number, oldest first; or the last events of one job."""
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.events(tx, job_id, after=after, limit=limit)

    def last_seq(self) -> int:
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.last_seq(tx)

    def place(self, job_id: int) -> int | None:
        """The place in its lane's line from 1; ``None`` for what is not in it now."""
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.place(tx, reads.job(tx, job_id))

    def why(self, job_id: int) -> tuple[Reason, ...]:
        """Why a waiting job does not run now, the weightiest reason first; empty for others."""
        from lineclear.store import reads

        with self.store.read() as tx:
            job = reads.job(tx, job_id)
            lane = reads.lane(tx, job.lane, self._living(tx))
            if lane is None:
                return ()
            running = tuple(other.id for other in reads.running(tx, job.lane))
            return why_waiting(
                job, lane, running=running, place=reads.place(tx, job), now_ms=tx.now_ms
            )

    def pace(self, job_id: int) -> list[tuple[int, float]]:
        """(minute, progress at its end) of the present attempt, oldest first."""
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.pace(tx, job_id)

    def usual(self, task: str) -> list[int]:
        """Milliseconds of work of the last 20 done jobs of a task."""
        from lineclear.store import reads

        with self.store.read() as tx:
            return reads.usual(tx, task)

    def check(self) -> list[str]:
        """What is wrong with the database's contents; empty when nothing is."""
        return self.store.check()

    def wal_bytes(self) -> int:
        return self.store.log_bytes()

    def log_path(self, job_id: int, attempt: int) -> Path:
        return self.files.log(job_id, attempt)

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
        from lineclear.store import acts

        with self.store.write() as tx:
            return acts.act(
                tx,
                job_id,
                lambda job: decide(job, by or self.by, tx.now_ms, why),
                if_version=if_version,
                if_state=if_state,
            )

    def move(self, job_id: int, to: To, *, by: str | None = None) -> Job:
        """``top``, ``bottom``, ``up``, ``down``, a place from 1, ``("before", id)`` or ``("after",
        id)``.
        """
        from lineclear.store import acts

        with self.store.write() as tx:
            return acts.move_to(tx, job_id, to, by=by or self.by)

    def retry(
        self, job_id: int, *, start_over: bool = False, first: bool = False, by: str | None = None
    ) -> Job:
        """An ended job back in line with its finished steps; ``start_over`` drops them."""
        from lineclear.store import acts

        with self.store.write() as tx:
            return acts.retry(tx, job_id, by=by or self.by, start_over=start_over, first=first)

    def remove(self, *job_ids: int, by: str | None = None, why: str = "") -> list[Job]:
        """Take waiting jobs out of the line, all of them or none. ``undo`` brings them back."""
        from lineclear.store import acts

        with self.store.write() as tx:
            return acts.remove(tx, job_ids, by=by or self.by, why=why)

    def clear(
        self,
        *,
        states: Iterable[State] = (State.DONE,),
        lane: str | None = None,
        before_ms: int | None = None,
        by: str | None = None,
    ) -> int:
        """Hide ended jobs from the lists; answers how many. Rows and logs stay."""
        from lineclear.store import acts

        with self.store.write() as tx:
            return len(
                acts.clear(tx, states=states, lane=lane, before_ms=before_ms, by=by or self.by)
            )

    def undo(self, *, by: str | None = None) -> Undone | None:
        """Take back the last remove, clear or move of the last seven days; ``None`` where there is
        none.
        """
        from lineclear.store import acts

        with self.store.write() as tx:
            done = acts.undo(tx, by=by or self.by)
        return None if done is None else Undone(done[0], tuple(done[1]), done[2])

    # Waiting

    def wait(
        self, *job_ids: int, until: str = "ended", timeout_s: float | None = None
    ) -> list[Job]:
        """Block until all have ended (or ``until="started"``); raises ``TimeoutError`` when the
        time is over.
        """
        reached = _reached(until)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self.changes() as listener:
            while True:
                jobs = [self.get(job_id) for job_id in job_ids]
                if all(reached(job) for job in jobs):
                    self.store.sync()
                    return jobs
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"Waited {timeout_s:g} s.")
                listener.wait(left)

    @contextmanager
    def changes(self) -> Iterator[Listener]:
        """Listen for anything visible: ``wait(timeout_s)`` on what this gives says true when
        something changed.
        """
        listener = self.store.bell.listen("watch")
        try:
            with self.store.write(durable=False):
                pass  # the first look has to be a writer's, see bell/
            yield listener
        finally:
            listener.close()

    # Inside

    def _read_jobs(self, look: Callable[[Tx, Any], list[Job]]) -> list[Job]:
        from lineclear.store import reads

        with self.store.read() as tx:
            jobs = look(tx, reads)
        return [
            replace(job, worker_alive=self._alive(job.worker)) if job.worker else job
            for job in jobs
        ]

    def _alive(self, worker: str) -> bool | None:
        from lineclear.locks import is_held

        return is_held(self.files.lock(worker))

    def _living(self, tx: Tx) -> list[Any]:
        from lineclear.store import runs

        return [sign for sign in runs.signs(tx) if self._alive(sign.id) is not False]


class LaneHandle:
    """One lane of a queue, with what can be set on it."""

    def __init__(self, queue: Queue, name: str) -> None:
        self.name = name
        self._queue = queue

    def get(self) -> Lane:
        from lineclear.store import reads

        with self._queue.store.read() as tx:
            lane = reads.lane(tx, self.name, self._queue._living(tx))  # noqa: SLF001  one unit with Queue
        assert lane is not None, "LaneHandle exists only for a lane that does"
        return lane

    def pause(
        self,
        why: str = "",
        *,
        until_ms: int | None = None,
        source: str = "person",
        by: str | None = None,
    ) -> Lane:
        """Start nothing more here; what runs finishes. Each ``source`` sets and clears its own
        pause.
        """
        from lineclear.store import acts

        if until_ms is not None and until_ms <= self._queue.now_ms():
            raise BadInput("until", "The end of the pause is in the past.")
        with self._queue.store.write() as tx:
            acts.pause(
                tx, self.name, by=by or self._queue.by, why=why, until_ms=until_ms, source=source
            )
        return self.get()

    def resume(self, source: str | None = None, *, by: str | None = None) -> Lane:
        """Clear one source's pause, or all of them."""
        from lineclear.store import acts

        with self._queue.store.write() as tx:
            acts.resume(tx, self.name, by=by or self._queue.by, source=source)
        return self.get()

    def set_delay(self, delay_ms: int, *, by: str | None = None) -> Lane:
        """Milliseconds from the last end in this lane to the next start; in force at once."""
        from lineclear.store import acts

        with self._queue.store.write() as tx:
            acts.set_delay(tx, self.name, delay_ms, by=by or self._queue.by)
        return self.get()

    def set_concurrency(self, slots: int, *, by: str | None = None) -> Lane:
        """How many run at once. Lowering it never stops what runs."""
        from lineclear.store import acts

        with self._queue.store.write() as tx:
            acts.set_concurrency(tx, self.name, slots, by=by or self._queue.by)
        return self.get()

    def stop_now(self, *, why: str = "", by: str | None = None) -> list[Job]:
        """Pause the lane and end what runs at once; those jobs go back in line, uncounted."""
        from lineclear.store import acts

        with self._queue.store.write() as tx:
            return acts.stop_now(tx, self.name, by=by or self._queue.by, why=why)

    def remove_waiting(self, *, by: str | None = None) -> int:
        """Take every waiting job out of the line; answers how many."""
        from lineclear.store import acts

        with self._queue.store.write() as tx:
            return len(acts.remove_waiting(tx, self.name, by=by or self._queue.by))


def _reached(until: str) -> Callable[[Job], bool]:
    match until:
        case "ended":
            return lambda job: job.ended
        case "started":
            return lambda job: job.ended or job.state is State.RUNNING
        case _:
            raise BadInput("until", f"{until!r} is nothing to wait for: ended or started.")


def _user() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
