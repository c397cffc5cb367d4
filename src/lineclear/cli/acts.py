"""The verbs that change jobs: one function each, the same words as the buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from lineclear import words
from lineclear.cli.ground import (
    INTERRUPTED,
    NOT_DONE,
    UNREACHABLE,
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
from lineclear.cli.when import ago_ms, duration_ms
from lineclear.figures import count, duration, ordinal, printable
from lineclear.job import Cause, Job, State
from lineclear.looks import look
from lineclear.queue import Queue

EVERYTHING = 100_000


def said(verb: str, before: Job, after: Job, *, quiet: bool, more: str = "") -> None:
    """``Paused 41 The Hobbit.``, or the id alone; says so where nothing had to change."""
    if quiet:
        say(str(after.id))
        return
    same = ", as it was already" if before.version == after.version else ""
    did = "Stopped" if verb in ("stop", "kill") and after.ended else words.ACTED[verb]
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
    removed = queue.remove(*(job.id for job in jobs), why=reason)
    for job, after in zip(jobs, removed, strict=True):
        said("remove", job, after, quiet=quiet)
    note(f"{count(len(removed), 'job')} removed. Back with: lineclear undo")


def undo(ctx: typer.Context, *, quiet: Quiet = False) -> None:
    """Take back the last remove, clear or move of the last seven days."""
    queue = ground(ctx).queue
    done = queue.undo()
    if done is None:
        note("There is nothing to undo.")
        return
    if quiet:
        for job in done.jobs:
            say(str(job.id))
        return
    ago = duration(queue.now_ms() - done.at_ms)
    what = {"moved": "the move", "hidden": "the clearing"}.get(done.kind, "the removal")
    say(f"Undone: {what} of {count(len(done.jobs), 'job')}, {ago} ago.")


def stop(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    everything: All = False,
    now: Annotated[
        bool,
        typer.Option("--now", help="End its processes at once; a lane's jobs go back in line."),
    ] = False,
    grace: Annotated[str, typer.Option("--grace", help="How long to wait for the end.")] = "60s",
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask, and do not wait.")] = False,
    reason: Why = "",
    if_state: IfState = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Ask running jobs to stop at their next safe point, and wait until they have."""
    queue = ground(ctx).queue
    grace_s = duration_ms(grace, "--grace") / 1000
    pool = pool_of(running_of, queue, lane, all_=everything)
    jobs = pick(queue, ids, pool=pool)
    _refuse_ended(queue, jobs)
    live = [job for job in jobs if not job.ended]
    verb = "Stop now" if now else "Stop"
    if live:
        ask(f"{verb} {naming(live)}? {_stakes(queue, live, now=now)}", yes=yes)
    if now and pool is not None:
        _stop_lanes(queue, sorted({job.lane for job in live}), reason)
        return
    asked: list[int] = []

    def act(job: Job) -> None:
        ask_it = queue.kill if now else queue.cancel
        after = ask_it(job.id, if_state=if_state, why=reason)
        said("kill" if now else "stop", job, after, quiet=quiet)
        if after.state is not State.RUNNING:
            return
        if job.worker_alive is False:
            sentence = f"The worker of {job.id} has ended: it is stopped when a worker starts."
            raise Ended(UNREACHABLE, f"{sentence} lineclear worker --lane {job.lane}")
        asked.append(job.id)

    try:
        each(live, act)
    finally:
        if asked and not no_wait:
            _await_end(queue, asked, grace_s, now=now)


def kill(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    reason: Why = "",
    if_state: IfState = None,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """The same as 'stop --now'."""
    stop(ctx, ids, now=True, reason=reason, if_state=if_state, yes=yes, quiet=quiet)


def _refuse_ended(queue: Queue, jobs: list[Job]) -> None:
    """A job that was stopped already is as asked; one that ended by itself was not stopped."""
    code = 0
    for job in jobs:
        if job.ended:
            seen = look(job, now_ms=queue.now_ms())
            told = words.detail(job, seen, (), queue.now_ms(), me=queue.by)
            asked_for = job.cause in (Cause.ASKED, Cause.KILLED, Cause.REMOVED)
            code = code if asked_for else NOT_DONE
            done = (
                "It had ended already" if asked_for else "Nothing was stopped: it ended by itself"
            )
            note(f"{job.id} {job.name}: {done} ({words.state_word(seen)}, {told}).")
    if code:
        raise Ended(code)


def _stakes(queue: Queue, jobs: list[Job], *, now: bool) -> str:
    if len(jobs) > 1 or jobs[0].state is not State.RUNNING:
        return ""
    kept = sum(step.weight for step in queue.steps(jobs[0].id))
    told = words.at_stake(jobs[0], kept=kept, now_ms=queue.now_ms())
    return told if now or kept else ""


def _stop_lanes(queue: Queue, lanes: list[str], reason: str) -> None:
    for name in lanes:
        stopped = queue.lane(name).stop_now(why=reason)
        if stopped:
            say(
                f"Stopping now {naming(stopped)}: back in line. Lane {name} is paused; "
                f"lineclear resume --lane {name}"
            )


def _await_end(queue: Queue, ids: list[int], grace_s: float, *, now: bool) -> None:
    try:
        jobs = queue.wait(*ids, timeout_s=grace_s)
    except TimeoutError:
        left = [str(job_id) for job_id in ids if not queue.get(job_id).ended]
        hint = "" if now else f" At once: lineclear stop --now {' '.join(left)}"
        raise Ended(NOT_DONE, f"Still stopping after {grace_s:g} s.{hint}") from None
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED, "Not waiting any more. The job is still being stopped.") from None
    for job in jobs:
        seen = look(job, now_ms=queue.now_ms())
        note(f"{words.state_word(seen)}: {job.id} {job.name}.")
    if any(job.cause not in (Cause.ASKED, Cause.KILLED) for job in jobs):
        raise Ended(NOT_DONE, "It ended by itself before it was stopped.")


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
