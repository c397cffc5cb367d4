"""The verbs that bring work: ``add``, and ``worker`` and ``run``, which do it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from lineclear import view
from lineclear.cli.follow import outcome_of, wait_for
from lineclear.cli.ground import (
    FAILED,
    Ended,
    Json,
    LaneName,
    OneId,
    Quiet,
    ground,
    note,
    one_job,
    say,
)
from lineclear.errors import BadInput
from lineclear.figures import ordinal
from lineclear.job import State
from lineclear.queue import Queue
from lineclear.settings import Settings
from lineclear.when import duration_ms, moment_ms


def add(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK")],
    given: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]...")] = None,
    *,
    lane: LaneName = None,
    first: Annotated[bool, typer.Option("--first", help="At the top of the line.")] = False,
    not_before: Annotated[
        str | None, typer.Option("--not-before", metavar="TIME", help="07:00, 2h, ISO 8601.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="One live job per key.")] = None,
    title: Annotated[str | None, typer.Option("--title", "--name")] = None,
    priority: Annotated[int, typer.Option("--priority", min=-(2**31), max=2**31)] = 0,
    paused: Annotated[bool, typer.Option("--paused", help="It waits until resumed.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until it has ended.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add a job: the task's name, then its arguments as name=value."""
    at = ground(ctx)
    queue = at.loaded
    run_at_ms = None
    if not_before is not None:
        run_at_ms = moment_ms(not_before, "--not-before", now_ms=queue.now_ms())
    args = arguments(given or (), _texts(queue, task))
    added = queue.add(
        task, args, lane=lane, key=key, title=title, priority=priority,
        first=first, run_at_ms=run_at_ms, held=paused,
    )  # fmt: skip
    job = added.job
    if quiet:
        say(str(job.id))
    elif as_json:
        say(view.document(queue, [view.Gatherer(queue).row(queue.get(job.id))], new=added.new))
    else:
        place = f", {ordinal(added.place)}" if added.place is not None else ""
        say(f"{'Added' if added.new else 'Already there:'} {job.id}{place}")
    if wait:
        code = outcome_of(queue, wait_for(queue, [job.id], until="ended", timeout_s=None))
        if code:
            raise Ended(code)


def _texts(queue: Queue, task: str) -> set[str]:
    """The arguments that are text, so that ``title=1984`` is no number."""
    known = queue.tasks.get(task)
    if known is None:
        return set()
    return {name for name, kind in known.arguments.annotations.items() if kind in (str, str | None)}


def arguments(given: Sequence[str], texts: Collection[str]) -> dict[str, Any]:
    """``name=value`` pairs; what reads as JSON is that, anything else and ``texts`` are text."""
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            raise BadInput(text, f"{text!r} is no argument: write name=value.")
        if name in found:
            raise BadInput(name, f"{name}: this argument is given twice.")
        found[name] = value if name in texts else _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return text


def _not_json(name: str) -> None:
    """``NaN`` and ``Infinity`` are no JSON, so they are text."""
    raise ValueError(name)


Grace = Annotated[
    str | None, typer.Option("--grace", help="How long jobs have to stop when the worker stops.")
]


def worker(
    ctx: typer.Context,
    *,
    lane: Annotated[
        list[str] | None, typer.Option("--lane", metavar="LANE", help="Only this; may be repeated.")
    ] = None,
    grace: Grace = None,
) -> None:
    """Work off the line, until stopped with Ctrl-C or SIGTERM."""
    queue = ground(ctx).new_queue
    settings = _settings(grace)
    queue.check_store()
    # The same process goes on as the bare worker, without what the command line has loaded.
    os.environ["LINECLEAR_GRACE_S"] = f"{settings.grace_s:g}"
    command = [sys.executable, "-m", "lineclear.worker", str(queue.database), *(lane or ())]
    os.execv(sys.executable, command)  # noqa: S606  a fixed list


def run(ctx: typer.Context, job: OneId, *, grace: Grace = None) -> None:
    """Run one waiting job here, by the same claim as any worker's, and end with it."""
    queue = ground(ctx).queue
    found = one_job(queue, job)
    if found.state is not State.QUEUED:
        raise Ended(5, f"Job {found.id} is {found.state}, so it cannot be started.")
    from lineclear.worker.supervisor import run_worker

    code = run_worker(
        queue.database, lanes=(found.lane,), only_job=found.id, settings=_settings(grace)
    )
    after = queue.get(found.id)
    if not after.ended:
        note(f"Job {after.id} is {after.state}.")
        raise Ended(code or FAILED)
    raise Ended(code or outcome_of(queue, [after]))


def _settings(grace: str | None) -> Settings:
    settings = Settings.from_environment()
    if grace is None:
        return settings
    return replace(settings, grace_s=duration_ms(grace, "--grace") / 1000)
