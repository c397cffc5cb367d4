"""The queue as the page knows it, read once: for the stream, ``GET /state`` and who comes back.

Called by ``hub.py`` and ``stream.py``, in threads. Sentences carry marks. It reads, in short
transactions, and never changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from lineclear import estimate, view
from lineclear.errors import NoSuchJob
from lineclear.figures import marked
from lineclear.job import Lane, State
from lineclear.queue import Queue
from lineclear.web.changes import Public, rows

WAITING, ENDED = 50, 10
"""The window: the first of each lane, and the last that ended."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One look. ``states`` by lane (``None``: all) hold at least every change up to ``seq``;
    ``named`` are the rows of jobs with a journal line since the look before, ``None`` where those
    are too many.
    """

    seq: int
    states: dict[str | None, Public]
    named: dict[int, Public | None] | None


def look(queue: Queue, lanes: Iterable[str | None], since: int, most: int) -> Looked:
    """The states of these lanes, and what changed since a number of the journal."""
    seq = queue.last_seq()
    states = {lane: of(queue, lane) for lane in lanes}
    if seq == since:
        return Looked(seq, states, {})
    known = {job: row for each in states.values() for job, row in rows(each).items()}
    return Looked(seq, states, named_since(queue, since, most, known=known))


def of(queue: Queue, lane: str | None) -> Public:
    """All but the cursor."""
    with marked():
        return view.state_fields(view.picture(queue, waiting=WAITING, ended=ENDED, lane=lane))


def running(queue: Queue, ids: Collection[int]) -> dict[int, Public]:
    """The rows of those of these jobs that run."""
    with marked(), queue.snapshot() as seen:
        get = view.Gatherer(queue)
        get.usual = cache(lambda task: estimate.usual(seen.usual(task)))
        jobs = [job for job in seen.running(None) if job.id in ids]
        paces = seen.paces([job.id for job in jobs if job.total])
        return {job.id: view.fields(get.running(job, pace=paces.get(job.id, ()))) for job in jobs}


def named_since(
    queue: Queue, since: int, most: int, *, known: Mapping[int, Public], lane: str | None = None
) -> dict[int, Public | None] | None:
    """The present row of each job with a journal line after a number; ``None`` for those that are
    no more. Nothing at all where there are more than ``most`` lines, or where some may be missing:
    the line of that number is there no more.
    """
    first = max(since, 1)
    lines = queue.events(after=first - 1, limit=most + 2)
    if not lines or lines[0].seq != first:
        return None
    lines = lines[1:] if since else lines
    if len(lines) > most:
        return None
    ids = {line.job for line in lines if line.job is not None and lane in (None, line.lane)}
    with marked():
        row = _rows(queue)
        return {job: known[job] if job in known else row(job) for job in sorted(ids)}


def _rows(queue: Queue) -> Callable[[int], Public | None]:
    """Rows of any jobs; what all of a lane have in common is read once."""
    get = view.Gatherer(queue)

    @cache
    def lane(name: str) -> tuple[Lane, list[view.Row]]:
        return get.lane_of(name), [get.running(job) for job in queue.running(name)]

    def row(job_id: int) -> Public | None:
        try:
            job = queue.brief(job_id)
        except NoSuchJob:
            return None
        if job.state is not State.QUEUED:
            return view.fields(get.row(job))
        at, running = lane(job.lane)
        return view.fields(get.waiting(job, at, running, place=queue.place(job_id)))

    return row
