"""What people look at. Called by queue.py. No look grows with the backlog, and none with the
history but ``listing`` where few jobs fit its filters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from lineclear.clock import here
from lineclear.errors import BadInput, NoSuchJob
from lineclear.job import COUNT_LIMIT, ENDED, Counts, Event, Job, Lane, Page, State, Step
from lineclear.store.base import Row, Tx, one
from lineclear.store.rows import read_event, read_job, read_pause, read_step
from lineclear.store.runs import Sign, signs

NEWEST = 2**62


def job(tx: Tx, job_id: int) -> Job:
    """One job, whole."""
    row = one(tx, "job_get", id=job_id)
    if row is None:
        raise NoSuchJob(f"There is no job {job_id}. `lineclear history --all` lists every job.")
    return _aged(tx, [row])[0]


def brief(tx: Tx, job_id: int) -> Job:
    row = one(tx, "job_brief", id=job_id)
    return job(tx, job_id) if row is None else _aged(tx, [row])[0]


def running(
    tx: Tx, lane: str | None, *, alive: Callable[[str], bool | None] | None = None
) -> list[Job]:
    return _aged(tx, tx.all("job_running", lane=lane), alive=alive)


def waiting(tx: Tx, lane: str, limit: int) -> list[Job]:
    """In order: the line with the held at the places they keep, then what is due later, soonest
    first.
    """
    line = [read_job(row) for row in tx.all("job_line", lane=lane, limit=limit)]
    held = [read_job(row) for row in tx.all("job_held", lane=lane, limit=limit)]
    later = [read_job(row) for row in tx.all("job_later", lane=lane, limit=limit)]
    return (sorted(line + held, key=_in_line) + later)[:limit]


def waiting_after(tx: Tx, lane: str, cursor: str | None, limit: int) -> Page:
    """One page of the same order. A page costs its own length wherever it begins."""
    row = one(tx, "lane_get", lane=lane)
    total = 0 if row is None else _lane(tx, row, []).waiting
    kind, first, second, job_id = _read_cursor(cursor)
    found: list[Job] = []
    if kind == "line":
        at = {"lane": lane, "priority": first, "position": second, "id": job_id, "limit": limit + 1}
        names = ("job_line_after", "job_held_after")
        found = [read_job(row) for name in names for row in tx.all(name, **at)]
        found.sort(key=_in_line)
        first, job_id = EARLIEST, 0
    if len(found) <= limit:
        at = {"lane": lane, "run_at_ms": first, "id": job_id, "limit": limit + 1 - len(found)}
        found += [read_job(row) for row in tx.all("job_later_after", **at)]
    jobs = found[:limit]
    more = _cursor(jobs[-1]) if len(found) > limit and jobs else None
    return Page(tuple(jobs), tuple(places(tx, jobs)), more, total)


def places(tx: Tx, jobs: list[Job]) -> list[int | None]:
    """The place of each of these neighbours in line, in their order, counted once."""
    told: list[int | None] = []
    here: int | None = None
    for each in jobs:
        if each.run_at_ms is not None:  # in no line yet, though one set aside may stand among them
            told.append(None)
            continue
        here = place(tx, each) if here is None else here
        told.append(here)
        if here is not None and each.held_ms is None:
            here += 1
    return told


EARLIEST = -(2**62)


def _in_line(job: Job) -> tuple[int, int, int]:
    return (-job.priority, job.position, job.id)


def _cursor(job: Job) -> str:
    if job.run_at_ms is not None and job.held_ms is None:
        return f"later.{job.run_at_ms}.0.{job.id}"
    return f"line.{job.priority}.{job.position}.{job.id}"


def _read_cursor(cursor: str | None) -> tuple[str, int, int, int]:
    if cursor is None:
        return "line", NEWEST, 0, 0
    kind, *numbers = cursor.split(".")
    try:
        first, second, job_id = map(int, numbers)
    except ValueError:
        kind = ""
    if kind not in ("line", "later") or max(map(abs, (first, second, job_id))) > NEWEST:
        raise BadInput("after", "This is no cursor of a page before.")
    return kind, first, second, job_id


def counts(tx: Tx, lane: str | None) -> Counts:
    """How many are in the lists. Each count of each lane stops at ``COUNT_LIMIT``."""
    found, capped = dict.fromkeys(ENDED, 0), False
    seen = [row for row in tx.all("lane_all") if lane in (None, row["name"])]
    lanes = [_lane(tx, row, []) for row in seen]
    for each in lanes:
        for state in ENDED:
            rows = tx.all("job_count_of", lane=each.name, state=str(state), most=COUNT_LIMIT)
            found[state] += rows[0]["jobs"]
            capped |= rows[0]["jobs"] >= COUNT_LIMIT
        capped |= each.waiting >= COUNT_LIMIT
    waits, runs = sum(each.waiting for each in lanes), sum(each.running for each in lanes)
    done, failed, cancelled = (found[state] for state in ENDED)
    return Counts(done, failed, cancelled, waits, runs, capped)


def recent(tx: Tx, lane: str | None, limit: int) -> list[Job]:
    """The last that ended, newest first; over all lanes the newest of each lane's last."""
    names = [row["name"] for row in tx.all("lane_all")] if lane is None else [lane]
    rows = [row for name in names for row in tx.all("job_recent", lane=name, limit=limit)]
    newest = sorted(rows, key=lambda row: (row["ended_ms"], row["id"]), reverse=True)
    return [read_job(row) for row in newest[:limit]]


def listing(
    tx: Tx,
    *,
    lane: str | None,
    task: str | None,
    state: State | None,
    text: str | None,
    since_ms: int | None,
    before: int | None,
    limit: int,
    hidden: bool,
) -> list[Job]:
    """Newest first; ``before`` is the id the last page ended with."""
    asked = {
        "task": task,
        "state": state,
        "text": None if text is None else f"%{_literal(text)}%",
        "since_ms": since_ms,
        "before": NEWEST if before is None else before,
        "limit": limit,
    }
    if state in ENDED and not hidden:
        names = [row["name"] for row in tx.all("lane_all")] if lane is None else [lane]
        found = [row for name in names for row in tx.all("job_list_of", lane=name, **asked)]
        found.sort(key=lambda row: -row["id"])
        return [read_job(row) for row in found[:limit]]
    rows = tx.all("job_list", lane=lane, hidden=int(hidden), **asked)
    return _aged(tx, rows)


def named(tx: Tx, prefix: str) -> list[Job]:
    """Jobs whose title or key begins with ``prefix`` among the newest 100,000, newest first, ten at
    most.
    """
    rows = tx.all("job_named", text=f"{_literal(prefix)}%", limit=10)
    return [read_job(row) for row in rows]


def last_id(tx: Tx) -> int | None:
    row = one(tx, "job_last")
    return None if row is None else row["id"]


def place(tx: Tx, job: Job) -> int | None:
    """The place in line from 1; ``None`` for what is not in it. Counting stops at
    ``COUNT_LIMIT``.
    """
    if job.state is not State.QUEUED or job.run_at_ms is not None:
        return None
    rows = tx.all(
        "job_place",
        lane=job.lane,
        priority=job.priority,
        position=job.position,
        id=job.id,
        most=COUNT_LIMIT,
    )
    return int(rows[0]["ahead"]) + 1


def lanes(tx: Tx, living: Iterable[Sign]) -> list[Lane]:
    """Every lane, with how many of the living workers serve it."""
    workers = list(living)
    return [_lane(tx, row, workers) for row in tx.all("lane_all")]


def lane(tx: Tx, name: str, living: Iterable[Sign]) -> Lane | None:
    row = one(tx, "lane_get", lane=name)
    return None if row is None else _lane(tx, row, list(living))


def _lane(tx: Tx, row: object, living: list[Sign]) -> Lane:
    values = dict(row)  # type: ignore[call-overload]
    counts = tx.all("lane_counts", lane=values["name"], most=COUNT_LIMIT)[0]
    return Lane(
        name=values["name"],
        concurrency=values["concurrency"],
        delay_ms=values["delay_ms"],
        last_end_ms=values["last_end_ms"],
        pauses=tuple(
            pause
            for pause in (read_pause(row) for row in tx.all("pause_all", lane=values["name"]))
            if pause.until_ms is None or pause.until_ms > tx.now_ms
        ),
        running=counts["running"],
        waiting=min(COUNT_LIMIT, counts["ready"] + counts["held"] + counts["later"]),
        workers=sum(sign.serves(values["name"]) for sign in living),
        last_served_ms=values["served_ms"],
    )


def steps(tx: Tx, job_id: int) -> list[Step]:
    return [read_step(row) for row in tx.all("step_all", job=job_id)]


def events(tx: Tx, job_id: int | None, *, after: int, limit: int) -> list[Event]:
    """The journal, oldest first: all of it after a number, or the last of one job."""
    if job_id is None:
        return [read_event(row) for row in tx.all("event_after", after=after, limit=limit)]
    return [
        read_event(row) for row in tx.all("event_of_job", job=job_id, after=after, limit=limit)
    ][::-1]


def last_seq(tx: Tx) -> int:
    row = one(tx, "event_last")
    return 0 if row is None or row["seq"] is None else int(row["seq"])


def pace(tx: Tx, job_id: int) -> list[tuple[int, float]]:
    return [(row["minute_ms"], row["done"]) for row in tx.all("pace_of_run", job=job_id)]


def paces(tx: Tx, job_ids: list[int]) -> dict[int, list[tuple[int, float]]]:
    """Of each of these runs what ``estimate.time_left`` needs of its pace, not all of it."""
    found: dict[int, list[tuple[int, float]]] = {}
    for row in tx.all("pace_of_runs", ids=json.dumps(job_ids)):
        found.setdefault(row["job"], []).append((row["minute_ms"], row["done"]))
    return found


def tasks_in_line(tx: Tx, lane: str, skip: int, limit: int) -> list[str]:
    rows = tx.all("job_tasks_in_line", lane=lane, skip=skip, limit=limit)
    return [row["task"] for row in rows]


def usual(tx: Tx, task: str) -> list[int]:
    return [row["worked_ms"] for row in tx.all("job_usual", task=task)]


def _aged(
    tx: Tx, rows: list[Row], *, alive: Callable[[str], bool | None] | None = None
) -> list[Job]:
    """The jobs with the ages of their beats and moves, known only where the worker's clock
    is ours; and with what ``alive`` says of their workers.
    """
    if not any(row["beat_tick"] is not None for row in rows):
        return [read_job(row) for row in rows]
    ours = here()
    clocks = {sign.id: sign.place.same_clock(ours) for sign in signs(tx)}

    def age(worker: str, tick: int | None) -> int | None:
        return max(0, tx.tick_ms - tick) if tick is not None and clocks.get(worker) else None

    return [
        read_job(
            row,
            beat_age_ms=age(row["worker"], row["beat_tick"]),
            moved_age_ms=age(row["worker"], row["moved_tick"]),
            worker_alive=alive(row["worker"]) if alive and row["worker"] else None,
        )
        for row in rows
    ]


def _literal(text: str) -> str:
    """``text`` with LIKE's wildcards taken as themselves."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
