"""``watch``: the queue as it changes, redrawn when the bell rings.

On a terminal it takes keys; elsewhere it prints a line for each change. Nothing is drawn while
nothing happens, but for one look every ``LOOK_AGAIN_S`` while a job runs, since ages grow silently.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Annotated

import typer

from lineclear import view, words
from lineclear.cli.follow import STILL, ending, outcome_of
from lineclear.cli.ground import (
    INTERRUPTED,
    Ended,
    Ids,
    JsonLines,
    LaneName,
    ground,
    note,
    pick,
    say,
)
from lineclear.figures import clock, printable
from lineclear.job import Job
from lineclear.queue import Queue

SHORTEST_S = 0.5
"""At most two pictures a second."""
LOOK_AGAIN_S = 10.0


def watch(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    exit_status: Annotated[
        bool, typer.Option("--exit-status", help="Exit 1 unless all are done.")
    ] = False,
    as_jsonl: JsonLines = False,
) -> None:
    """Watch the queue, or jobs until they have ended. Ctrl-C leaves them alone."""
    at = ground(ctx)
    chosen = [job.id for job in pick(at.queue, ids)] if ids else []
    live = sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"
    try:
        if live and not as_jsonl:
            from lineclear.cli.live import Live

            Live(at.queue, chosen, lane=lane, color=at.color).run()
        else:
            print_changes(at.queue, chosen, lane=lane, as_jsonl=as_jsonl)
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, STILL.replace("waiting", "watching")) from None
    jobs = [at.queue.get(job_id) for job_id in chosen]
    for job in jobs if live else ():
        if job.ended:
            note(ending(at.queue, job))
    if exit_status and (code := outcome_of(at.queue, jobs, told=True)):
        raise Ended(code)


def print_changes(queue: Queue, ids: list[int], *, lane: str | None, as_jsonl: bool) -> None:
    """One line for each change, until the jobs named have ended; for ever where none is named."""
    known: dict[int, tuple[str, str]] = {}
    shown_to = queue.last_seq()
    with queue.changes() as listener:
        while True:
            get = view.Gatherer(queue)
            jobs = _of_interest(queue, ids, lane, shown_to)
            shown_to = max(shown_to, queue.last_seq())
            for job in jobs:
                row = get.row(job)
                state = (str(row.seen), _whole(row))
                if known.get(job.id) != state:
                    known[job.id] = state
                    _print(row, get, as_jsonl=as_jsonl)
            if ids and all(job.ended for job in jobs):
                return
            time.sleep(SHORTEST_S if listener.wait(LOOK_AGAIN_S) else 0)


def _whole(row: view.Row) -> str:
    """What of a job's progress is worth a line: its whole percent."""
    part = words.percent(row.job)
    return part or row.job.note


def _of_interest(queue: Queue, ids: list[int], lane: str | None, since: int) -> list[Job]:
    if ids:
        return [queue.get(job_id) for job_id in ids]
    running = {job.id: job for job in queue.running(lane)}
    for event in queue.events(after=since, limit=1000):
        if event.job is not None and lane in (None, event.lane) and event.job not in running:
            running[event.job] = queue.get(event.job)
    return list(running.values())


def _print(row: view.Row, get: view.Gatherer, *, as_jsonl: bool) -> None:
    if as_jsonl:
        say(json.dumps(view.fields(row), default=str))
        return
    tail = f" · {row.progress}" if row.progress and not row.job.ended else ""
    at = clock(get.now_ms, now_ms=get.now_ms)
    say(f"{at} {row.job.id} {printable(row.job.name)}: {row.word} · {row.detail}{tail}")
