"""The verbs that only look: ``status``, ``show``, ``history``."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated

import typer

from lineclear import terms, view, words
from lineclear.cli import table
from lineclear.cli.ground import (
    FAILED,
    Ended,
    Ground,
    Ids,
    Json,
    LaneName,
    OneId,
    Quiet,
    ground,
    one_job,
    pick,
    say,
)
from lineclear.errors import BadInput
from lineclear.figures import clock, count, printable
from lineclear.job import Event, Job, State
from lineclear.looks import Look
from lineclear.queue import Queue
from lineclear.when import ago_ms

Format = Annotated[
    str | None,
    typer.Option("--format", metavar="TEXT", help="As in '{id}\\t{state}\\t{title}'."),
]
EVENTS = 1_000
"""The last ones of a job that ``show`` reads."""
OneState = Annotated[State | None, typer.Option("--state", help="Only these.")]


def status(
    ctx: typer.Context,
    ids: Ids = None,
    *,
    lane: LaneName = None,
    state: OneState = None,
    everything: Annotated[bool, typer.Option("--all", help="Every waiting job.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 if something failed or does not respond.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    form: Format = None,
) -> None:
    """Say what runs, what waits and what ended last. The same as no verb at all."""
    at = ground(ctx)
    if ids:
        get = view.Gatherer(at.queue)
        rows = [get.row(job) for job in pick(at.queue, ids)]
        show_rows(at.queue, rows, color=at.color, as_json=as_json, quiet=quiet, form=form)
        return
    seen = view.picture(at.queue, lane=lane, waiting=10_000 if everything else 20)
    rows = [row for row in seen.rows if state in (None, row.job.state)]
    if as_json:
        say(view.document(at.queue, rows, queue=view.lanes_document(seen)))
    elif quiet or form or state:
        show_rows(at.queue, rows, color=at.color, quiet=quiet, form=form)
    else:
        print_picture(seen, color=at.color)
    bad = [row for row in [*seen.running, *seen.ended] if terms.WORDS[row.seen][2] == "bad"]
    if check and bad:
        raise Ended(FAILED)


def overview(at: Ground) -> None:
    """``status`` without any option."""
    print_picture(view.picture(at.queue), color=at.color)


def print_picture(seen: view.Picture, *, color: bool) -> None:
    """The sentence, then what runs, what waits, what ended last."""
    say(seen.headline)
    drawn = table.Table(seen.rows, width=table.width_of_terminal(), color=color)
    for heading, rows in table.sections(seen):
        say("\n".join(["", heading, *map(drawn.text, rows)]))


def history(
    ctx: typer.Context,
    *,
    state: OneState = None,
    lane: LaneName = None,
    task: Annotated[str | None, typer.Option("--task", help="Only jobs of this task.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Only names with this in.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Such as 7d.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000)] = 50,
    before: Annotated[int | None, typer.Option("--before", help="Only ids below this.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Cleared jobs too.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    form: Format = None,
) -> None:
    """List jobs, the newest first, a page at a time."""
    at = ground(ctx)
    since_ms = None if since is None else ago_ms(since, "--since", now_ms=at.queue.now_ms())
    jobs = at.queue.jobs(
        state=state, lane=lane, task=task, text=text, since_ms=since_ms,
        before=before, limit=limit, hidden=everything,
    )  # fmt: skip
    get = view.Gatherer(at.queue)
    rows = [get.row(job) for job in jobs]
    show_rows(at.queue, rows, color=at.color, as_json=as_json, quiet=quiet, form=form)
    if not rows and not (as_json or quiet or form):
        say("No job matches." if jobs or any((state, lane, task, text, since)) else "No job yet.")
    if len(rows) == limit and not (as_json or quiet or form):
        say(f"Older: lineclear history --before {rows[-1].job.id}")


def show_rows(
    queue: Queue,
    rows: list[view.Row],
    *,
    color: bool,
    as_json: bool = False,
    quiet: bool = False,
    form: str | None = None,
) -> None:
    """Rows as JSON, as ids, as the format says, or as a table."""
    if as_json:
        say(view.document(queue, rows))
        return
    if quiet:
        form = "{id}"
    if form is None:
        drawn = table.Table(rows, width=table.width_of_terminal(), color=color)
        for row in rows:
            say(drawn.text(row))
        return
    plain = form.replace("\\t", "\t").replace("\\n", "\n")
    for row in rows:
        values = view.fields(row) | {"title": printable(row.job.name)}
        try:
            say(plain.format_map(values))
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            names = ", ".join(values)
            raise BadInput("--format", f"--format: {error} is none of {names}.") from error


def show(ctx: typer.Context, job: OneId, *, as_json: Json = False) -> None:
    """Tell everything about one job."""
    at = ground(ctx)
    found = at.queue.get(one_job(at.queue, job).id)
    get = view.Gatherer(at.queue)
    row = get.row(found)
    if as_json:
        steps = [{"name": step.name, "weight": step.weight} for step in at.queue.steps(found.id)]
        say(view.document(at.queue, [row], steps=steps))
        return
    tone = terms.WORDS[row.seen][2]
    say(f"{printable(found.name)} ({found.id})")
    say(f"{table.coloured(row.word, tone, color=at.color)} · {row.detail}")
    for line in _about(at.queue, row, get):
        say(line)


def _about(queue: Queue, row: view.Row, get: view.Gatherer) -> list[str]:
    job, now_ms = row.job, get.now_ms
    names = {each.id: each.name for each in queue.running(job.lane)} if row.reasons else {}
    lines = [row.progress] if row.progress else []
    lines += [printable(job.note)] if job.note else []
    lines += [words.reason(why, now_ms=now_ms, me=get.me, names=names) for why in row.reasons]
    keyed = f", key {printable(job.key)}" if job.key is not None else ""
    steps = queue.steps(job.id)
    known = [
        ("Task", f"{job.task}, lane {job.lane}{keyed}"),
        ("Input", _json(job.args, "arguments")),
        ("Result", _json(job.result, "result") if job.result is not None else ""),
        ("Error", printable(job.error) if job.error and row.seen in _ERRORS else ""),
        ("Steps", f"{len(steps):,} finished" if steps else ""),
        ("Retries", _retries(job)),
        ("Log", f"lineclear log {job.id}" if job.attempt else ""),
    ]
    lines += ["", *(f"{name:8}{text}" for name, text in known if text), ""]
    for _, alike in groupby(queue.events(job.id, limit=EVENTS), key=_steps_together):
        *before, event = alike
        told = words.happened(event, now_ms=now_ms, me=get.me)
        more = f", after {count(len(before), 'more step')}" if before else ""
        lines.append(f"{clock(event.at_ms, now_ms=now_ms)} {told}{more}")
    return lines


def _steps_together(event: Event) -> int:
    """Steps that were finished one after the other are one line."""
    return 0 if event.kind == "step" else event.seq


_ERRORS = (Look.FAILED, Look.LOST, Look.RETRY_WAIT, Look.WAITING)


def _retries(job: Job) -> str:
    return f"up to {job.options.retries} by itself" if job.options.retries else ""


def _json(text: str, what: str) -> str:
    """Stored JSON as one safe line; what cannot be read is said to be so, with its raw text."""
    value = view.parsed(text)
    told = text
    if isinstance(value, dict) and "cannot be shown" in value:
        told = f"cannot show the {what}: {text}"
    return table.cut(printable(told), 2_000)
