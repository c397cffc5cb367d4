"""Every act a person can ask of jobs and lanes, each in one transaction that can be asked for once.

``Queue`` extends it with tasks and submitting. It decides nothing: ``moves`` does, ``store.acts``
writes. Importing it loads no store: the child imports applications, and must stay small.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lineclear import moves
from lineclear.clock import Clock
from lineclear.database import Database
from lineclear.errors import BadInput, Replayed
from lineclear.job import Job, Lane, State
from lineclear.lanes import refuse_past

if TYPE_CHECKING:
    from lineclear.store.base import Tx
    from lineclear.store.places import To

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo took back, the ids of the jobs it changed, and when the act was done."""

    kind: str
    jobs: tuple[int, ...]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Many:
    """What an act on many jobs did: the jobs it changed as they are now, and for each of the
    others its id and the sentence that says why not.
    """

    jobs: tuple[Job, ...]
    refused: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Request:
    """One request for an act, see ``Queue.once``; filled when the act is done: the ids of the jobs
    it touched or made, its number for ``Queue.undo`` (``None`` where it cannot be undone), and
    whether it had been done before, so that nothing was done now.
    """

    key: str | None
    what: str
    jobs: tuple[int, ...] = ()
    undo: int | None = None
    replayed: bool = False


KEY_LIMIT = 200
_request: ContextVar[Request | None] = ContextVar("request", default=None)


class Control(Database):
    """A database of jobs with every act a person can ask for."""

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
        self._by = by

    @property
    def by(self) -> str:
        if self._by is None:
            self._by = _user()
        return self._by

    # The one place all acts pass

    @contextmanager
    def once(self, key: str | None, what: str = "") -> Iterator[Request]:
        """The act inside is done once for this key, though it be asked twice at the same moment by
        two processes; asked again it does nothing (``replayed``). ``what`` names the act in full:
        its method, path and body. Without a key only the request's answer is gathered.

            with queue.once(key, "POST /jobs/41/remove {}") as request:
                queue.remove(41)
            request.jobs, request.undo, request.replayed

        One act in a block. The last 10,000 keys are remembered, each in the act's own transaction.

        Raises:
            BadInput: the key was used for something else, or is no key. Nothing was done.
        """
        if key is not None and not (0 < len(key) <= KEY_LIMIT and key.isascii()):
            raise BadInput(
                "Idempotency-Key", f"The Idempotency-Key has 1 to {KEY_LIMIT} ASCII characters."
            )
        request = Request(key, sha256(what.encode("utf-8", "replace")).hexdigest())
        token = _request.set(request)
        try:
            yield request
        except Replayed as known:
            request.jobs, request.undo, request.replayed = known.jobs, known.undo, True
            self.store.sync()  # it may be another process's commit that this answers for
        finally:
            _request.reset(token)

    def change(self, act: Callable[[Tx, Any], T]) -> T:
        """One act in one transaction, on disk before it is answered; once, inside ``once``."""
        from lineclear.store import acts, requests

        request = _request.get()
        with self.store.write() as tx:
            if request is None:
                return act(tx, acts)
            done: T
            done, ids, undo = requests.once(
                tx, lambda: act(tx, acts), key=request.key, what=request.what, ids=_touched
            )
        request.jobs, request.undo = tuple(ids), undo
        return done

    # Acts on one job. Each takes ``if_version``, ``if_state`` (nothing is done where the job has
    # changed), ``by`` and ``why``, and answers the job afterwards.

    def hold(self, job_id: int, **asked: Any) -> Job:
        """Set one waiting job aside; it keeps its place."""
        return self._act(
            job_id,
            lambda job, who, now, why: moves.hold(job, by=who, now_ms=now, why=why),
            **asked,
        )

    def release(self, job_id: int, **asked: Any) -> Job:
        return self._act(
            job_id, lambda job, who, _, why: moves.release(job, by=who, why=why), **asked
        )

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
            job_id,
            lambda job, who, now, why: moves.force(job, by=who, now_ms=now, why=why),
            **asked,
        )

    def prioritize(self, job_id: int, priority: int, **asked: Any) -> Job:
        """Higher goes first."""

        def decide(job: Job, who: str, _: int, why: str) -> moves.Move | None:
            return moves.place(job, priority=priority, position=job.position, by=who, why=why)

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
        return self._one(
            lambda tx, acts: acts.act(
                tx,
                job_id,
                lambda job: decide(job, by or self.by, tx.now_ms, why),
                if_version=if_version,
                if_state=if_state,
            )
        )

    def _one(self, act: Callable[[Tx, Any], Job]) -> Job:
        return self.change(act)

    # Acts that ``undo`` takes back. ``once`` tells the number of each.

    def move(self, job_id: int, to: To, *, by: str | None = None, **asked: Any) -> Job:
        """``top``, ``bottom``, ``up``, ``down``, a place from 1, ``("before", id)`` or ``("after",
        id)``.
        """
        who = by or self.by
        return self._one(lambda tx, acts: acts.move_to(tx, job_id, to, by=who, **asked))

    def retry(
        self,
        job_id: int,
        *,
        start_over: bool = False,
        first: bool = False,
        by: str | None = None,
        **asked: Any,
    ) -> Job:
        """An ended job back in line with its finished steps; ``start_over`` drops them."""
        who = by or self.by
        return self._one(
            lambda tx, acts: acts.retry(
                tx, job_id, by=who, start_over=start_over, first=first, **asked
            )
        )

    def retry_all(
        self,
        job_ids: Iterable[int],
        *,
        start_over: bool = False,
        first: bool = False,
        by: str | None = None,
        why: str = "",
    ) -> Many:
        """Those that can be tried again are, in the order given; at most 1,000 at once."""
        ids, who = tuple(job_ids), by or self.by
        return self.change(
            lambda tx, acts: Many(
                *acts.retry_all(tx, ids, by=who, start_over=start_over, first=first, why=why)
            )
        )

    def remove(self, *job_ids: int, by: str | None = None, **asked: Any) -> list[Job]:
        """Take waiting jobs out of the line, all of them or none. ``undo`` brings them back."""
        who = by or self.by
        return self.change(lambda tx, acts: acts.remove(tx, job_ids, by=who, **asked))

    def remove_all(self, job_ids: Iterable[int], *, by: str | None = None, why: str = "") -> Many:
        """Those that wait are removed; at most 1,000 at once."""
        ids, who = tuple(job_ids), by or self.by
        return self.change(lambda tx, acts: Many(*acts.remove_all(tx, ids, by=who, why=why)))

    def clear(
        self,
        *,
        states: Iterable[State] = (State.DONE,),
        lane: str | None = None,
        before_ms: int | None = None,
        expect: int | None = None,
        by: str | None = None,
    ) -> int:
        """Hide ended jobs from the lists; answers how many. Rows and logs stay.

        Raises:
            WrongState: it would not be ``expect`` jobs; says how many. Nothing has changed.
        """
        who, asked = by or self.by, tuple(states)
        hidden = self.change(
            lambda tx, acts: acts.clear(
                tx, states=asked, lane=lane, before_ms=before_ms, expect=expect, by=who
            )
        )
        return len(hidden)

    def undo(self, which: int | None = None, *, by: str | None = None) -> Undone | None:
        """Take back one act of the last seven days: that of this number (``Request.undo``), else
        the last. Only that act, whoever did it; a job that has changed since is left as it is, and
        is not among ``jobs``. ``None`` where there is none to take back.
        """
        from lineclear.store.undo import undo

        done = self.change(lambda tx, _: undo(tx, which=which, by=by or self.by))
        return None if done is None else Undone(done[0], tuple(done[1]), done[2])

    # All lanes at once

    def pause_all(
        self,
        why: str = "",
        *,
        until_ms: int | None = None,
        source: str = "person",
        by: str | None = None,
    ) -> list[Lane]:
        """Start nothing more in any lane; what runs finishes."""
        who, names = by or self.by, sorted({lane.name for lane in self.lanes()})
        refuse_past(until_ms, self.now_ms())

        def pause(tx: Tx, acts: Any) -> None:
            for name in names:
                acts.pause(tx, name, by=who, why=why, until_ms=until_ms, source=source)

        self.change(pause)
        return self.lanes()

    def resume_all(self, source: str | None = None, *, by: str | None = None) -> list[Lane]:
        """Clear one source's pause of every lane, or all of them."""
        who, names = by or self.by, [lane.name for lane in self.lanes()]
        self.change(
            lambda tx, acts: [acts.resume(tx, name, by=who, source=source) for name in names]
        )
        return self.lanes()


def _touched(done: object) -> list[int]:
    """The ids of the jobs in what an act answers."""
    match done:
        case Job():
            return [done.id]
        case (Job() as job, bool(), *_):  # what a submission made
            return [job.id]
        case Many():
            return [job.id for job in done.jobs]
        case [str(), list(ids), int()]:  # what an undo changed
            return ids
        case list():
            return [each.id if isinstance(each, Job) else each for each in done]
        case _:
            return []


def _user() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
