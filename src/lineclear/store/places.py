"""Places in a lane's line: where a job goes that is added, moved or tried again. Called by ``acts``
alone, inside its transactions; changes nothing but the numbers behind an order that stays.
"""

from __future__ import annotations

from lineclear.errors import BadInput, Refused, WrongState
from lineclear.job import Job, State
from lineclear.store.base import Row, Tx, job_of, one
from lineclear.store.rows import read_job

GAP = 2**20
"""Room between two places in line, so that moving one job seldom renumbers the others. A place
grows with the job's id: no set clock puts a later job before an earlier one.
"""

To = str | int | tuple[str, int]
"""Where to move: ``top``, ``bottom``, ``up``, ``down``, a place from 1, ``("before", id)`` or
``("after", id)``.
"""


def target(tx: Tx, job: Job, to: To) -> tuple[int, int] | None:
    """Priority and position that put ``job`` there; ``None`` where it is there already."""
    match to:
        case "top" | "bottom" if _is_at(tx, job, to):
            return None
        case "top":
            return top(tx, job.lane, job.priority)
        case "bottom":
            row = one(tx, "job_ends_of_line", lane=job.lane)
            low = (
                job.priority if row is None or row["low_priority"] is None else row["low_priority"]
            )
            return min(job.priority, low), bottom(tx, job.lane, min(job.priority, low))
        case "up" | "down" | int():
            return _by_place(tx, job, to)
        case ("before" | "after" as side, int(other)):
            return _beside(tx, job, other, after=side == "after")
        case _:
            raise BadInput(
                "to",
                f"{to!r} is no place: top, bottom, up, down, a number from 1, or before or after "
                "a job.",
            )


def _is_at(tx: Tx, job: Job, end: str) -> bool:
    """Whether it is the first or last in line; one set aside or not due yet is in none."""
    if job.held_ms is not None or job.run_at_ms is not None:
        return False
    if end == "top":
        return not _row(tx, "job_place", **_order(job), most=1)["ahead"]
    return one(tx, "job_line_after", **_order(job), limit=1) is None


def _by_place(tx: Tx, job: Job, to: str | int) -> tuple[int, int] | None:
    if isinstance(to, int) and to < 1:
        raise BadInput("to", f"{to} is no place in line: the first is 1.")
    ahead = int(_row(tx, "job_place", **_order(job), most=1_000_000)["ahead"])
    place = {"up": ahead, "down": ahead + 2}.get(to, to) if isinstance(to, str) else to
    limit = max(int(place), ahead + 1) + 1
    line = [read_job(row) for row in tx.all("job_line", lane=job.lane, limit=limit)]
    others = [other for other in line if other.id != job.id]
    if int(place) < 1 or min(int(place), len(others) + 1) == ahead + 1:
        return None
    if int(place) > len(others):
        return _beside(tx, job, others[-1].id, after=True)
    return _beside(tx, job, others[int(place) - 1].id, after=False)


def _beside(tx: Tx, job: Job, other_id: int, *, after: bool) -> tuple[int, int] | None:
    other = job_of(tx, other_id)
    if other.id == job.id:
        return None
    if other.lane != job.lane or other.state is not State.QUEUED:
        raise WrongState(
            other.state,
            f"Job {other_id} does not wait in lane {job.lane}, so nothing can be put beside it.",
        )
    for _ in range(2):
        position = _between(tx, job, other, after=after)
        if position is not None:
            return other.priority, position
        tx.all("job_spread", lane=job.lane, gap=GAP)
        other = job_of(tx, other_id)
    raise Refused("The line could not be renumbered. Please report this.")


def _between(tx: Tx, job: Job, other: Job, *, after: bool) -> int | None:
    """A free position directly before or after ``other``; ``None`` when there is no room between it
    and its neighbour.
    """
    name = "job_next_position" if after else "job_previous_position"
    row = one(tx, name, **_order(other), but=job.id)
    far = None if row is None else row["position"]
    if far is None:
        return other.position + (GAP if after else -GAP)
    middle = (far + other.position) // 2
    return middle if middle not in (far, other.position) else None


def top(tx: Tx, lane: str, priority: int) -> tuple[int, int]:
    """Priority and position before everything in line."""
    row = one(tx, "job_ends_of_line", lane=lane)
    highest = (
        priority
        if row is None or row["top_priority"] is None
        else max(priority, row["top_priority"])
    )
    first = _row(tx, "job_first_position", lane=lane, priority=highest)["position"]
    return highest, (_after_all(tx) if first is None else first - GAP)


def bottom(tx: Tx, lane: str, priority: int) -> int:
    """A position after everything of this priority."""
    last = _row(tx, "job_last_position", lane=lane, priority=priority)["position"]
    return _after_all(tx) if last is None else max(_after_all(tx), last + GAP)


def _after_all(tx: Tx) -> int:
    """After every job there is, but for those that were moved behind it."""
    return (int(_row(tx, "job_last")["id"] or 0) + 1) * GAP


def _row(tx: Tx, name: str, **parameters: object) -> Row:
    return tx.all(name, **parameters)[0]


def _order(job: Job) -> dict[str, object]:
    return {"lane": job.lane, "priority": job.priority, "position": job.position, "id": job.id}
