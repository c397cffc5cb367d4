"""The verbs that set lanes: ``delay``, ``slots``, and pausing and resuming whole lanes."""

from __future__ import annotations

from typing import Annotated

import typer

from lineclear import words
from lineclear.cli.ground import NO_JOB, USAGE, Ended, LaneName, ground, note, say
from lineclear.errors import BadInput
from lineclear.figures import clock, count, duration
from lineclear.lanes import LaneHandle
from lineclear.queue import Queue
from lineclear.when import duration_ms, moment_ms

Every = Annotated[bool, typer.Option("--all", help="Every lane.")]


def chosen(queue: Queue, lane: str | None, *, everything: bool) -> list[LaneHandle]:
    """The lanes meant: the one named, all, or the only one there is."""
    if lane is not None:
        return [queue.lane(lane)]
    names = [each.name for each in queue.lanes()]
    if not names:
        raise Ended(NO_JOB, "There is no lane yet: the first job of a lane makes it.")
    if len(names) > 1 and not everything:
        raise Ended(USAGE, f"Say which lane, with --lane, or --all. Lanes: {', '.join(names)}.")
    return [queue.lane(name) for name in names]


def pause_lanes(
    queue: Queue,
    ids: list[str] | None,
    lane: str | None,
    *,
    length: str | None,
    until: str | None,
    reason: str,
) -> None:
    """No new job starts in these lanes; what runs goes on, and that is said."""
    if ids or (length and until):
        raise Ended(USAGE, "Say either ids or lanes, and either --for or --until.")
    now_ms = queue.now_ms()
    until_ms = now_ms + duration_ms(length, "--for") if length else None
    if until:
        until_ms = moment_ms(until, "--until", now_ms=now_ms)
    if until_ms is not None and until_ms <= now_ms:
        raise BadInput("--until", "The pause would be over before it begins: say a later time.")
    for handle in chosen(queue, lane, everything=True):
        seen = handle.pause(reason, until_ms=until_ms)
        ends = f" until {clock(until_ms, now_ms=now_ms)}" if until_ms is not None else ""
        runs = f" {seen.running} still running." if seen.running else ""
        say(f"Paused lane {seen.name}{ends}. No new job starts.{runs}")


def resume_lanes(queue: Queue, ids: list[str] | None, lane: str | None) -> None:
    """Clear every pause of these lanes, whoever made it, and say whose it was."""
    if ids:
        raise Ended(USAGE, "Say either ids or lanes, not both.")
    for handle in chosen(queue, lane, everything=True):
        before = handle.get()
        after = handle.resume()
        if not before.pauses:
            note(f"Lane {after.name} was not paused.")
            continue
        whose = " and ".join(words.who(pause.by, queue.by) for pause in before.pauses)
        say(f"Resumed lane {after.name}, paused by {whose}. {count(after.waiting, 'job')} waiting.")


def delay(
    ctx: typer.Context,
    length: Annotated[
        str | None, typer.Argument(metavar="[DURATION]", help="Such as 5min; 0 for none.")
    ] = None,
    *,
    lane: LaneName = None,
    everything: Every = False,
) -> None:
    """Show or set the delay between two jobs of a lane."""
    queue = ground(ctx).queue
    if length is None:
        for each in queue.lanes():
            if lane in (None, each.name):
                say(f"{each.name}: {duration(each.delay_ms, exact=True)}")
        return
    value = duration_ms(length, "The delay")
    for handle in chosen(queue, lane, everything=everything):
        seen = handle.set_delay(value)
        say(f"Delay of lane {seen.name}: {duration(seen.delay_ms, exact=True)}.")


def slots(
    ctx: typer.Context,
    number: Annotated[str | None, typer.Argument(metavar="[N]")] = None,
    *,
    lane: LaneName = None,
    everything: Every = False,
) -> None:
    """Show or set how many jobs of a lane run at once."""
    queue = ground(ctx).queue
    if number is None:
        for each in queue.lanes():
            if lane in (None, each.name):
                say(f"{each.name}: {each.concurrency}, {each.running} running")
        return
    try:
        value = int(number)
    except ValueError:
        raise BadInput("slots", f"The number of slots is a whole number, not {number!r}.") from None
    for handle in chosen(queue, lane, everything=everything):
        seen = handle.set_concurrency(value)
        over = f" {seen.running} run now; none is stopped." if seen.running > value else ""
        say(f"Slots of lane {seen.name}: {seen.concurrency}.{over}")
