"""The verbs that stay: ``log``, ``wait``. Leaving them with Ctrl-C leaves the job alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import typer

from lineclear import view, words
from lineclear.cli import table
from lineclear.cli.acts import EVERYTHING, pool_of
from lineclear.cli.ground import (
    FAILED,
    INTERRUPTED,
    NO_JOB,
    TIMED_OUT,
    All,
    Ended,
    Ids,
    JsonLines,
    LaneName,
    OneId,
    Quiet,
    ground,
    note,
    one_job,
    pick,
    say,
)
from lineclear.figures import clock, iso, printable
from lineclear.job import Job, State
from lineclear.looks import look
from lineclear.queue import Queue
from lineclear.when import duration_ms
from lineclear.worker.logreader import LogLine, LogReader, older_half

FOLLOWED_EVERY_S = 0.5
"""A log grows without a ring: while it is followed it is looked at this often, and only then."""

STILL = "Not waiting any more. The job goes on."


def log(
    ctx: typer.Context,
    job: OneId,
    *,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Until it ends.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0)] = 200,
    attempt: Annotated[int | None, typer.Option("--try", min=1, help="Not the last.")] = None,
    full: Annotated[bool, typer.Option("--full", help="From its beginning.")] = False,
    times: Annotated[bool, typer.Option("--times", help="With local times.")] = False,
    as_jsonl: JsonLines = False,
) -> None:
    """Show what a job printed: the last 200 lines."""
    at = ground(ctx)
    found = one_job(at.queue, job)
    number = attempt if attempt is not None else found.attempt
    if number > found.attempt:
        raise Ended(
            NO_JOB, f"Job {found.id} had {found.attempt} tries, so there is no try {number}."
        )
    path = at.queue.log_path(found.id, max(number, 1))
    if not follow and not path.exists() and not older_half(path).exists():
        note("No output yet." if not found.ended else "It printed nothing, or its log is gone.")
        return
    now_ms = at.queue.now_ms()

    def show(line: LogLine) -> None:
        if as_jsonl:
            body = {"at": iso(line.at_ms), "stream": line.stream, "text": line.text}
            say(json.dumps(body | {"try": number}))
            return
        stamp = f"{clock(line.at_ms, now_ms=now_ms)} " if times else ""
        text = stamp + printable(line.text.replace("\t", "    "))
        say(table.coloured(text, "muted", color=at.color) if line.stream == "l" else text)

    with LogReader(path, last=None if full else lines) as reader:
        _print_log(at.queue, found.id, number, reader, show, follow=follow)


def _print_log(
    queue: Queue,
    job_id: int,
    number: int,
    reader: LogReader,
    show: Callable[[LogLine], None],
    *,
    follow: bool,
) -> None:
    try:
        with queue.changes() as listener:
            while True:
                # Looked at before reading: what is written until then is read below.
                job = queue.get(job_id)
                over = job.ended or job.attempt != number or not follow
                while new := reader.read_new():
                    for line in new:
                        show(line)
                if over:
                    break
                listener.wait(FOLLOWED_EVERY_S)
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, "Not following any more. The job goes on.") from None
    if follow:
        note(ending(queue, job))


def ending(queue: Queue, job: Job) -> str:
    """``Done: 41 The Hobbit (03:12, took 48 min).``"""
    now_ms = queue.now_ms()
    seen = look(job, now_ms=now_ms)
    told = words.detail(job, seen, (), now_ms, me=queue.by, kept=job.kept)
    return f"{words.state_word(seen, job)}: {job.id} {job.name} ({told})."


def wait(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    everything: All = False,
    lane: LaneName = None,
    what: Annotated[
        Literal["done", "started", "idle"], typer.Option("--for", help="Wait for what.")
    ] = "done",
    timeout: Annotated[str | None, typer.Option("--timeout", metavar="DURATION")] = None,
    as_jsonl: JsonLines = False,
    quiet: Quiet = False,
) -> None:
    """Block until jobs have ended; exit 0 if all are done, else 1."""
    queue = ground(ctx).queue
    timeout_s = None if timeout is None else duration_ms(timeout, "--timeout") / 1000
    if what == "idle":
        _until_idle(queue, lane, timeout_s)
        return

    def live(queue: Queue, lane: str | None) -> list[Job]:
        if lane is not None:
            queue.lane(lane)
        return [*queue.running(lane), *queue.waiting(lane, limit=EVERYTHING)]

    jobs = pick(queue, ids, pool=pool_of(live, queue, lane, all_=everything), nothing=NO_JOB)
    until = "started" if what == "started" else "ended"
    ended = wait_for(queue, [job.id for job in jobs], until=until, timeout_s=timeout_s)
    get = view.Gatherer(queue)
    for job in ended:
        if as_jsonl:
            say(json.dumps(view.fields(get.row(job)), default=str))
        elif quiet:
            say(str(job.id))
        else:
            say(printable(ending(queue, job)))
    if what == "done" and (code := outcome_of(queue, ended, told=True)):
        raise Ended(code)


def wait_for(queue: Queue, ids: Sequence[int], *, until: str, timeout_s: float | None) -> list[Job]:
    """Block until all have ended or started. Code 6 when the time is over, 130 at Ctrl-C."""
    lanes = {queue.get(job_id).lane for job_id in ids}
    alone = [lane for lane in queue.lanes() if lane.name in lanes and not lane.workers]
    if alone:
        note(words.unserved(*alone, now_ms=queue.now_ms()))
    try:
        return queue.wait(*ids, until=until, timeout_s=timeout_s)
    except TimeoutError as error:
        raise Ended(TIMED_OUT, f"{error} Not all have {until}.") from None
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, STILL) from None


def outcome_of(queue: Queue, jobs: Sequence[Job], *, told: bool = False) -> int:
    """0 where every job is done, else 1; says how each other one ended."""
    bad = [job for job in jobs if job.state is not State.DONE]
    for job in () if told else bad:
        note(ending(queue, job))
    return FAILED if bad else 0


def _until_idle(queue: Queue, lane: str | None, timeout_s: float | None) -> None:
    if lane is not None:
        queue.lane(lane)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        with queue.changes() as listener:
            while True:
                seen = [each for each in queue.lanes() if lane in (None, each.name)]
                if not any(each.running or each.waiting for each in seen):
                    say(words.EMPTY)
                    return
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise Ended(TIMED_OUT, f"Waited {timeout_s:g} s. Not idle yet.")
                listener.wait(left)
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, STILL) from None
