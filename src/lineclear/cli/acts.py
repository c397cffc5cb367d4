"""The verbs that change jobs: one function each, the same words as the buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from lineclear import replies, terms, words
from lineclear.cli.ground import (
    NOT_DONE,
    USAGE,
    All,
    Ended,
    Ids,
    IfState,
    LaneName,
    Quiet,
    Why,
    Yes,
    ask,
    each,
    ground,
    naming,
    note,
    one_job,
    pick,
    say,
)
from lineclear.figures import count, duration, ordinal, printable
from lineclear.job import Job, State
from lineclear.queue import Queue
from lineclear.when import ago_ms

EVERYTHING = 100_000


def said(verb: str, before: Job, after: Job, *, quiet: bool, more: str = "") -> None:
    """``Paused 41 The Hobbit.``, or the id alone; says so where nothing had to change."""
    if quiet:
        say(str(after.id))
        return
    same = ", as it was already" if before.version == after.version else ""
    did = "Stopped" if verb in ("stop", "kill") and after.ended else terms.ACTED[verb]
    say(f"{did} {after.id} {printable(after.name)}{', ' + more if more else ''}{same}.")


def placed(queue: Queue, job: Job) -> str:
    place = queue.place(job.id)
    return f"now {ordinal(place)}" if place is not None else ""


def waiting_of(queue: Queue, lane: str | None) -> list[Job]:
    if lane is not None:
        queue.lane(lane)
    return queue.waiting(lane, limit=EVERYTHING)


def running_of(queue: Queue, lane: str | None) -> list[Job]:
    if lane is not None:
        queue.lane(lane)
    return queue.running(lane)


def pool_of(
    find: Callable[[Queue, str | None], list[Job]], queue: Queue, lane: str | None, *, all_: bool
) -> Callable[[], list[Job]] | None:
    """What ``--all`` or ``--lane`` means for a verb; ``None`` where neither is given."""
    return (lambda: find(queue, lane)) if all_ or lane is not None else None


def move(
    ctx: typer.Context,
    words_: Annotated[
        list[str],
        typer.Argument(
            metavar="ID... POSITION",
            help="top, bottom, up, down, a place from 1, before ID, after ID.",
        ),
    ],
    *,
    quiet: Quiet = False,
) -> None:
    """Give waiting jobs another place in line."""
    queue = ground(ctx).queue
    ids, to = _position(queue, words_)
    jobs = pick(queue, ids)
    # Each goes to the same spot, so they arrive in the order named only when taken from behind.
    if to in ("top", "down") or (isinstance(to, tuple) and to[0] == "after"):
        jobs.reverse()
    spots = [to + at if isinstance(to, int) else to for at in range(len(jobs))]
    pairs = iter(spots)

    def act(job: Job) -> None:
        after = queue.move(job.id, next(pairs))
        said("move", job, after, quiet=quiet, more=placed(queue, after))

    each(jobs, act)


def _position(queue: Queue, given: list[str]) -> tuple[list[str], str | int | tuple[str, int]]:
    if len(given) >= 3 and given[-2] in ("before", "after"):
        return given[:-2], (given[-2], one_job(queue, given[-1]).id)
    if len(given) >= 2 and given[-1] in ("top", "bottom", "up", "down"):
        return given[:-1], given[-1]
    if len(given) >= 2 and given[-1].isascii() and given[-1].isdecimal():
        return given[:-1], int(given[-1])
    raise Ended(USAGE, "Say where to: top, bottom, up, down, a place from 1, before ID, after ID.")


def remove(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    everything: All = False,
    reason: Why = "",
    quiet: Quiet = False,
) -> None:
    """Take waiting jobs out of the line. 'undo' brings them back."""
    queue = ground(ctx).queue
    jobs = pick(queue, ids, pool=pool_of(waiting_of, queue, lane, all_=everything))
    busy = next((job for job in jobs if job.state is State.RUNNING), None)
    if busy is not None:
        raise Ended(NOT_DONE, f"Job {busy.id} is running: stop it first, lineclear stop {busy.id}")
    removed = queue.remove(*(job.id for job in jobs), why=reason)
    for job, after in zip(jobs, removed, strict=True):
        said("remove", job, after, quiet=quiet)
    note(f"{count(len(removed), 'job')} removed. Back with: lineclear undo")


def undo(ctx: typer.Context, *, quiet: Quiet = False) -> None:
    """Take back the last remove, clear, move or retry of the last seven days."""
    queue = ground(ctx).queue
    done = queue.undo()
    if done is None:
        note(replies.NOTHING_TO_UNDO)
        return
    if quiet:
        for job_id in done.jobs:
            say(str(job_id))
        return
    say(replies.undone(done.kind, len(done.jobs), duration(queue.now_ms() - done.at_ms)))


def retry(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Every failed job.")] = False,
    everything: All = False,
    lane: LaneName = None,
    first: Annotated[bool, typer.Option("--first", help="At the top of the line.")] = False,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="Forget its finished steps.")
    ] = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Put ended jobs back in line, with what they had finished."""
    queue = ground(ctx).queue

    def failures(queue: Queue, lane: str | None) -> list[Job]:
        return queue.jobs(state=State.FAILED, lane=lane, limit=EVERYTHING)[::-1]

    pool = pool_of(failures, queue, lane, all_=everything or failed)
    jobs = pick(queue, ids, pool=pool)
    if len(jobs) > 1:
        ask(f"Retry {naming(jobs)}?", yes=yes)

    def act(job: Job) -> None:
        after = queue.retry(job.id, start_over=start_over, first=first)
        said("retry", job, after, quiet=quiet, more=placed(queue, after))

    each(jobs[::-1] if first else jobs, act)


def start(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    everything: All = False,
    if_state: IfState = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Start waiting jobs now, past pause and delay; slots still hold."""
    queue = ground(ctx).queue
    jobs = pick(queue, ids, pool=pool_of(waiting_of, queue, lane, all_=everything))
    if len(jobs) > 1:
        ask(f"Start {naming(jobs)} now?", yes=yes)

    def act(job: Job) -> None:
        said("start", job, queue.force(job.id, if_state=if_state), quiet=quiet)
        held = next((why for why in queue.why(job.id) if why.kind in ("slots", "no worker")), None)
        if held is not None:
            note(f"{words.reason(held, now_ms=queue.now_ms())} It starts as soon as it can.")

    each(jobs, act)


def clear(
    ctx: typer.Context,
    *,
    done: Annotated[bool, typer.Option("--done", help="Done jobs only; the default.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="Failed jobs.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every ended job.")] = False,
    before: Annotated[
        str | None, typer.Option("--before", metavar="AGE", help="Ended longer ago, as 7d.")
    ] = None,
    lane: LaneName = None,
    yes: Yes = False,
) -> None:
    """Take ended jobs out of the lists. Rows and logs stay; 'undo' brings them back."""
    queue = ground(ctx).queue
    states = [State.FAILED] if failed else []
    states += [State.DONE] if done or not failed else []
    if everything:
        states = [State.DONE, State.FAILED, State.CANCELLED]
    before_ms = None if before is None else ago_ms(before, "--before", now_ms=queue.now_ms())
    if lane is not None:
        queue.lane(lane)
    if State.FAILED in states:
        ask("Clear failed jobs from the lists?", yes=yes)
    cleared = queue.clear(states=states, lane=lane, before_ms=before_ms)
    say(f"{count(cleared, 'job')} cleared from the lists. Rows and logs stay.")


def pause(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    everything: Annotated[bool, typer.Option("--all", help="No new job starts anywhere.")] = False,
    length: Annotated[str | None, typer.Option("--for", metavar="DURATION")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME")] = None,
    reason: Why = "",
    if_state: IfState = None,
    quiet: Quiet = False,
) -> None:
    """Pause waiting jobs, a lane, or everything. What runs goes on."""
    queue = ground(ctx).queue
    if everything or lane is not None:
        from lineclear.cli.lanes import pause_lanes

        pause_lanes(queue, ids, lane, length=length, until=until, reason=reason)
        return
    if length or until:
        raise Ended(USAGE, "--for and --until are for lanes: add --lane LANE or --all.")

    def act(job: Job) -> None:
        after = queue.hold(job.id, if_state=if_state, why=reason)
        said("pause", job, after, quiet=quiet)

    each(pick(queue, ids), act)


def resume(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    everything: Annotated[bool, typer.Option("--all", help="Every lane.")] = False,
    if_state: IfState = None,
    quiet: Quiet = False,
) -> None:
    """Resume paused jobs, a lane, or everything."""
    queue = ground(ctx).queue
    if everything or lane is not None:
        from lineclear.cli.lanes import resume_lanes

        resume_lanes(queue, ids, lane)
        return

    def act(job: Job) -> None:
        after = queue.release(job.id, if_state=if_state)
        said("resume", job, after, quiet=quiet, more=placed(queue, after))

    each(pick(queue, ids), act)
