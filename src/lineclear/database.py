"""A database of jobs as one looks at it: jobs, lanes, workers, the journal, waiting for changes.

``Queue`` is this with every act a person can ask for. Opening is late: importing this loads no
store, since the child imports applications and must stay small.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lineclear import terms
from lineclear.clock import Clock, SystemClock
from lineclear.errors import BadInput, UnknownLane
from lineclear.estimate import Stats
from lineclear.files import Files
from lineclear.job import Counts, Event, Job, Lane, Page, State, Step, Worker
from lineclear.locks import is_held
from lineclear.looks import Reason, why_waiting
from lineclear.settings import database_path

if TYPE_CHECKING:
    from lineclear.bell import Listener
    from lineclear.store.base import Tx
    from lineclear.store.runs import Sign
    from lineclear.store.sqlite import SqliteStore

T = TypeVar("T")


class Database:
    """Jobs in one database. Opens it at the first use; safe to share between threads."""

    def __init__(
        self,
        database: str | Path | None = None,
        *,
        clock: Clock | None = None,
        create: bool = True,
    ) -> None:
        """``create=False`` makes no new file."""
        self._named = database
        self._clock = clock or SystemClock()
        self._create = create

    @cached_property
    def database(self) -> Path:
        """Named at construction, else ``LINECLEAR_DATABASE``, else ``./lineclear.db``."""
        return database_path(self._named)

    @property
    def files(self) -> Files:
        return Files(self.database)

    @cached_property
    def store(self) -> SqliteStore:
        from lineclear.store.sqlite import SqliteStore

        return SqliteStore(self.database, clock=self._clock, create=self._create)

    def check_store(self) -> None:
        """Open it and let go of it. Raises ``StoreError`` saying why it cannot be used."""
        _ = self.store
        self.close()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        if "store" in self.__dict__:
            self.store.close()
            del self.__dict__["store"]

    def get(self, job_id: int) -> Job:
        """One job, whole. Raises ``NoSuchJob``."""
        return self._read_jobs(lambda tx, reads: [reads.job(tx, job_id)])[0]

    def brief(self, job_id: int) -> Job:
        """One job, its arguments and result cut short. Raises ``NoSuchJob``."""
        return self._read_jobs(lambda tx, reads: [reads.brief(tx, job_id)])[0]

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

    def waiting_after(self, lane: str, cursor: str | None = None, *, limit: int = 50) -> Page:
        """One page of a lane's whole line, held and later ones too; ``cursor`` is the ``next`` of
        the page before. Raises ``BadInput`` (``after``) for what is no cursor.
        """
        page: Page = self._look(lambda tx, reads: reads.waiting_after(tx, lane, cursor, limit))
        return page

    def counts(self, lane: str | None = None) -> Counts:
        """How many jobs the lists have, by state: what is counted can be paged through."""
        found: Counts = self._look(lambda tx, reads: reads.counts(tx, lane))
        return found

    def stats(self, since_ms: int, *, lane: str | None = None) -> Stats:
        """What was done since then, how long it took, and how often the ranges shown were right.

        Grows with the jobs that ended since, to the newest 10,000 of each task and state.
        """
        from lineclear.store.stats import stats

        with self.store.read() as tx:
            return stats(tx, since_ms=since_ms, lane=lane)

    def warnings(self) -> list[str]:
        """What threatens the whole queue: the disk almost full, the write-ahead log too large."""
        return terms.warnings(
            free=shutil.disk_usage(self.database.parent).free, log=self.wal_bytes()
        )

    def recent(self, lane: str | None = None, *, limit: int = 10) -> list[Job]:
        """The last that ended, newest first."""
        return self._read_jobs(lambda tx, reads: reads.recent(tx, lane, limit))

    def lanes(self) -> list[Lane]:
        return self._look(lambda tx, reads: reads.lanes(tx, self._living(tx)))

    def lane_now(self, name: str) -> Lane:
        """One lane as it is now; raises ``UnknownLane``."""
        lane: Lane | None = self._look(lambda tx, reads: reads.lane(tx, name, self._living(tx)))
        if lane is None:
            raise UnknownLane("lane", f"There is no lane {name!r}.")
        return lane

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
        return self._look(lambda tx, reads: reads.steps(tx, job_id))

    def steps_done(self, job_id: int) -> int:
        return int(self._look(lambda tx, _: tx.all("step_count", job=job_id)[0]["steps"]))

    def events(self, job_id: int | None = None, *, after: int = 0, limit: int = 200) -> list[Event]:
        """The journal after a number, oldest first; or the last events of one job."""
        return self._look(lambda tx, reads: reads.events(tx, job_id, after=after, limit=limit))

    def last_seq(self) -> int:
        return int(self._look(lambda tx, reads: reads.last_seq(tx)))

    def place(self, job_id: int) -> int | None:
        """The place in its lane's line from 1; ``None`` for what is not in it now."""
        found: int | None = self._look(lambda tx, reads: reads.place(tx, reads.job(tx, job_id)))
        return found

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
        """(minute, progress at the first beat stored in it) of the present attempt, oldest
        first.
        """
        return self._look(lambda tx, reads: reads.pace(tx, job_id))

    def usual(self, task: str) -> list[int]:
        """Milliseconds of work of the last 20 done jobs of a task."""
        return self._look(lambda tx, reads: reads.usual(tx, task))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Several looks at one moment. Never hold it open across a wait."""
        with self.store.read() as tx:
            yield Snapshot(self, tx)

    def check(self) -> list[str]:
        """What is wrong with the database's contents; empty when nothing is."""
        return self.store.check()

    def wal_bytes(self) -> int:
        return self.store.log_bytes()

    def log_path(self, job_id: int, attempt: int) -> Path:
        return self.files.log(job_id, attempt)

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

    def _look(self, look: Callable[[Tx, Any], T]) -> T:
        from lineclear.store import reads

        with self.store.read() as tx:
            return look(tx, reads)

    def _read_jobs(self, look: Callable[[Tx, Any], list[Job]]) -> list[Job]:
        jobs = self._look(look)
        return [
            replace(job, worker_alive=self._alive(job.worker)) if job.worker else job
            for job in jobs
        ]

    def _alive(self, worker: str) -> bool | None:
        return is_held(self.files.lock(worker))

    def _living(self, tx: Tx) -> list[Sign]:
        from lineclear.store import runs

        return [sign for sign in runs.signs(tx) if self._alive(sign.id) is not False]


class Snapshot:
    """The database at one moment: one read transaction, each worker asked once whether it lives."""

    def __init__(self, database: Database, tx: Tx) -> None:
        from lineclear.store import reads

        self._database, self._tx, self._reads = database, tx, reads
        self._alive = cache(database._alive)  # noqa: SLF001  a part of it

    def lanes(self) -> list[Lane]:
        from lineclear.store import runs

        living = [sign for sign in runs.signs(self._tx) if self._alive(sign.id) is not False]
        return self._reads.lanes(self._tx, living)

    def running(self, lane: str | None = None) -> list[Job]:
        return self._reads.running(self._tx, lane, alive=self._alive)

    def paces(self, job_ids: list[int]) -> dict[int, list[tuple[int, float]]]:
        return self._reads.paces(self._tx, job_ids)

    def usual(self, task: str) -> list[int]:
        return self._reads.usual(self._tx, task)

    def line(self, lane: str, limit: int) -> list[tuple[Job, int | None]]:
        """The first of a lane's waiting jobs, each with its place."""
        jobs = self._reads.waiting(self._tx, lane, limit)
        return list(zip(jobs, self._reads.places(self._tx, jobs), strict=True))

    def tasks_after(self, lane: str, skip: int, limit: int) -> list[str]:
        """The tasks of the jobs in line behind the first ``skip``."""
        return self._reads.tasks_in_line(self._tx, lane, skip, limit)

    def recent(self, lane: str | None, limit: int) -> list[Job]:
        return self._reads.recent(self._tx, lane, limit)


def _reached(until: str) -> Callable[[Job], bool]:
    match until:
        case "ended":
            return lambda job: job.ended
        case "started":
            return lambda job: job.ended or job.state is State.RUNNING
        case _:
            raise BadInput("until", f"{until!r} is nothing to wait for: ended or started.")
