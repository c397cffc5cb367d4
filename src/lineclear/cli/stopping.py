"""The verbs that end what runs: ``stop``, ``stop --now`` and ``kill``. They ask first, and never
escalate by themselves.
"""

from __future__ import annotations

from typing import Annotated

import typer

from lineclear import words
from lineclear.cli.acts import pool_of, running_of, said
from lineclear.cli.ground import (
    INTERRUPTED,
    NOT_DONE,
    UNREACHABLE,
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
    pick,
    say,
)
from lineclear.job import Cause, Job, State
from lineclear.looks import look
from lineclear.queue import Queue
from lineclear.when import duration_ms


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
        ask(f"{verb} {naming(live)}? {_stakes(queue, live, now=now)}".rstrip(), yes=yes)
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
            kept = job.kept
            told = words.detail(job, seen, (), queue.now_ms(), me=queue.by, kept=kept)
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
    kept = jobs[0].kept
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
