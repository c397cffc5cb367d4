"""Every word a person reads of a job, on the page and on the command line. English; pure.

Words are chosen here and nowhere else, so that both faces say the same. What comes out of a job
(titles, notes, errors, names) passes ``printable`` first: nothing a job says may steer a terminal
or a page. It must never read a clock or the store; callers hand in what they read and ``now_ms``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from lineclear.estimate import TOO_EARLY, Forecast, Left, Span, Spread, Stats, Usual
from lineclear.figures import (
    HOUR_MS,
    MINUTE_MS,
    about,
    clock,
    count,
    duration,
    name_mark,
    number,
    ordinal,
    printable,
    span,
)
from lineclear.job import Event, Job, Lane, State, Wish
from lineclear.looks import Look, Reason
from lineclear.terms import ASKED, HAPPENED, WORDS

EMPTY: Final = "Nothing is running and nothing waits."

TROUBLE: Final = (Look.SILENT, Look.WORKER_GONE, Look.STOPPING_NO_ANSWER)


def who(by: str | None, me: str = "") -> str:
    """``you`` for the reader, else the name."""
    if not by:
        return "somebody"
    return name_mark(by) or ("you" if by == me else printable(by))


def plain(text: str | None) -> str:
    """Another one's sentence inside ours: one line, without its full stop."""
    return printable((text or "").strip()).removesuffix(".")


def units(job: Job, amount: float) -> str:
    """``412 pages``; ``1 page``; ``412 done`` where the job names no unit."""
    unit = printable(job.unit)
    if amount == 1:
        unit = unit.removesuffix("s")
    return f"{number(amount)} {unit or 'done'}"


def share(job: Job) -> float | None:
    """How far it is, 0 to 1, or ``None`` where the job gave no total. 1 only when it is done."""
    done, total = job.done, job.total
    if not total or total < 0 or not math.isfinite(total):
        return None
    if job.state is State.DONE:
        return 1.0
    if done is None or not math.isfinite(done):
        return None
    return min(0.99, max(0.0, done / total))


def percent(job: Job) -> str:
    """``42 %``, floored; 100 % only when done; ``about`` where the job went past its own total."""
    part = share(job)
    if part is None:
        return ""
    done, total = job.done or 0.0, job.total or 1.0
    # Multiplied first: 57 / 100 * 100 is a little under 57.
    floored = int(done * 100 / total) if 0 < part < 0.99 else int(part * 100)
    past = "about " if part < 1 and done > total else ""
    return f"{past}{floored} %"


def amount(job: Job) -> str:
    """``412 of 980 pages · 42 %`` or ``412 pages so far``; empty where it reported nothing."""
    if job.done is None or not math.isfinite(job.done) or job.done < 0:
        return ""
    if share(job) is None:
        return f"{units(job, job.done)} so far".replace(" done so", " so") if job.done else ""
    of = f"{number(job.done)} of {number(job.total or 0)} {printable(job.unit)}".rstrip()
    return f"{of} · {percent(job)}"


def progress(job: Job, seen: Look, *, left: Left, usual: Usual | None, now_ms: int) -> str:
    """Amount, percent and time left of a running job; else how long such a job usually takes."""
    told = amount(job)
    if not told:
        ran = f"Running for {duration(now_ms - (job.started_ms or now_ms))}"
        return f"{ran} · {usually(usual)}" if usual else ran
    if share(job) is None:
        return told
    if seen is not Look.RUNNING or left is None:
        return f"{told} · time left unknown"
    return f"{told} · {'too early to say' if left == TOO_EARLY else span(left) + ' left'}"


def usually(usual: Usual) -> str:
    """``usually 35–50 min (8 earlier runs)``."""
    return f"usually {span(usual.span)} ({count(usual.runs, 'earlier run')})"


def state_word(seen: Look, job: Job | None = None) -> str:
    """The word for a state; with the job, a quiet one says for how long."""
    if seen is Look.QUIET and job is not None and job.moved_age_ms is not None:
        return f"Quiet for {duration(job.moved_age_ms)}"
    return WORDS[seen][0]


def detail(
    job: Job,
    seen: Look,
    reasons: Sequence[Reason],
    now_ms: int,
    *,
    me: str = "",
    names: Mapping[int, str] | None = None,
    starts: Span | None = None,
    kept: float = 0.0,
) -> str:
    """What stands after the word. ``names`` are titles of jobs a reason may speak of; ``kept`` is
    the weight of the finished steps.
    """
    if job.state is State.RUNNING:
        return _detail_running(job, seen, now_ms)
    if job.ended:
        return _detail_ended(job, seen, now_ms=now_ms, me=me, kept=kept)
    place = next((ordinal(each.place) for each in reasons if each.place), "")
    if seen is Look.HELD:
        since = f" {clock(job.held_ms, now_ms=now_ms)}" if job.held_ms is not None else ""
        return f"{place} when resumed, by {who(job.held_by, me)}{since}".lstrip()
    at = clock(job.run_at_ms, now_ms=now_ms) if job.run_at_ms is not None else ""
    if seen is Look.RETRY_WAIT:
        tries = f"try {job.failures + 1} of {job.options.retries + 1} at {at}"
        return f"{tries}: {plain(job.error)}" if job.error else tries
    why = next((each for each in reasons if each.kind not in ("behind", "next")), None)
    told = ""
    if why is not None and (why.kind != "slots" or (starts is None and place in ("", "1st"))):
        told = _short(why, now_ms, me=me, names=names or {})
    elif starts is not None and not any(each.kind == "next" for each in reasons):
        told = f"starts in {about(span(starts))}"
    return ", ".join(filter(None, (place, told))) or "next"


def _detail_running(job: Job, seen: Look, now_ms: int) -> str:  # noqa: PLR0911 (a table)
    ran = duration(now_ms - (job.started_ms or now_ms))
    asked = f"{duration(now_ms - (job.wish_ms or now_ms))} ago"
    match seen:
        case Look.QUIET:
            return f"running {ran}"
        case Look.SILENT:
            return f"last sign of life {duration(job.beat_age_ms or 0)} ago"
        case Look.WORKER_GONE:
            return "its worker ended; goes on when a worker starts"
        case Look.STOPPING:
            return (
                f"asked {asked}, finishing this {printable(job.unit).removesuffix('s') or 'step'}"
            )
        case Look.STOPPING_NO_ANSWER:
            return f"asked {asked}"
        case Look.STOPPING_NOW:
            back = ", goes back in line" if job.wish is Wish.REQUEUE else ""
            return f"sent kill {asked}{back}"
        case _:
            return f"{ran}, try {job.attempt}"


def _short(why: Reason, now_ms: int, *, me: str, names: Mapping[int, str]) -> str:
    """A reason in few words, for a row."""
    at = clock(why.at_ms, now_ms=now_ms) if why.at_ms is not None else ""
    match why.kind:
        case "due":
            return f"not before {at}"
        case "no worker":
            return "no worker serves its lane"
        case "paused":
            return f"lane is paused by {who(why.by, me)}{' until ' + at if at else ''}"
        case "delay":
            return f"delay, {_remaining(why, now_ms)} left"
        case "slots" if len(why.jobs) == 1:
            return f"after {printable(names.get(why.jobs[0], f'job {why.jobs[0]}'))}"
        case _:
            return "all slots are taken"


def _remaining(why: Reason, now_ms: int) -> str:
    return duration((why.at_ms or now_ms) - now_ms + 999, exact=True)


def _detail_ended(job: Job, seen: Look, *, now_ms: int, me: str, kept: float) -> str:
    at = clock(job.ended_ms or 0, now_ms=now_ms)
    here = f" at {percent(job)}" if percent(job) else ""
    match seen:
        case Look.DONE:
            return f"{at}, took {duration(job.worked_ms)}"
        case Look.LOST:
            return f"{at}: {plain(job.error) or 'how it ended is unknown'}"
        case Look.FAILED:
            tries = f", try {job.failures} of {job.options.retries + 1}"
            tries = tries if job.options.retries else ""
            error = plain(job.error) or "it failed"
            return f"{at} after {duration(job.worked_ms)}{tries}: {error}"
        case Look.KILLED:
            return f"by {who(job.ended_by, me)} {at}{here}"
        case Look.STOPPED if job.attempt:
            # Not ``done``: what was begun after the last finished step is gone.
            keeps = f", kept {units(job, kept)}" if kept else ""
            return f"by {who(job.ended_by, me)} {at}{here}{keeps}"
        case _:
            ran = f", after {count(job.attempt, 'try', 'tries')}"
            return f"by {who(job.ended_by, me)} {at}{ran if job.attempt else ', never started'}"


def reason(
    why: Reason, *, now_ms: int, me: str = "", names: Mapping[int, str] | None = None
) -> str:
    """One reason why a job waits, as a sentence."""
    at = clock(why.at_ms, now_ms=now_ms) if why.at_ms is not None else ""
    by, until = who(why.by, me), f" until {at}" if at else ""
    because = f" ({plain(why.why)})" if why.why else ""
    last = f"Last seen {at}" if at else "No worker ever has"
    told = {
        "held": f"It is paused by {by}{' since ' + at if at else ''}.",
        "due": f"It is not to start before {at}.",
        "retry": f"It failed{because} and is tried again at {at}.",
        "no worker": f"Nobody serves its lane. {last}.",
        "paused": f"Its lane is paused by {by}{because}{until}.",
        "delay": f"The delay between jobs has {_remaining(why, now_ms)} left.",
        "behind": f"It is {ordinal(why.place or 1)} in line.",
        "next": "It is next: a worker is about to take it.",
    }
    if why.kind == "slots":
        held = [printable((names or {}).get(job, f"Job {job}")) for job in why.jobs]
        few = " and ".join(held) if len(held) <= 3 else count(len(held), "running job")
        return f"{few} {'takes its slot' if len(held) == 1 else 'take every slot'}."
    return told[why.kind]


def at_stake(job: Job, *, kept: float, now_ms: int) -> str:
    """What stopping now keeps (``kept``: the weight of its finished steps) or loses, and whom it
    may touch besides.
    """
    lost = duration(now_ms - (job.started_ms or now_ms))
    own = f"Keeps {units(job, kept)}." if kept else f"Loses {lost} of work."
    return f"{own}{SHARED[job.options.runs_in]}"


SHARED = {
    "own": "",
    "thread": " Ended at once, it sends what shares its process back in line.",
    "coroutine": " If it has to be ended, what shares its process goes back in line.",
}


def headline(
    lanes: Sequence[Lane],
    running: Sequence[Look],
    *,
    now_ms: int,
    forecast: Forecast | None = None,
    me: str = "",
) -> str:
    """The sentence that stands first: what is wrong, what is paused, what happens, until when."""
    waiting = sum(lane.waiting for lane in lanes)
    silent = sum(each in TROUBLE for each in running)
    told = [f"{silent} not responding."] if silent else []
    alone = [lane for lane in lanes if lane.waiting and not lane.workers]
    told += [unserved(*alone, now_ms=now_ms)] if alone else []
    told += paused(lanes, now_ms=now_ms, me=me)
    if not running and not waiting:
        return " ".join([*told, EMPTY])
    parts = [f"{len(running)} running"] if running else []
    parts += [f"{waiting:,} waiting"] if waiting else []
    if forecast is not None and not told:
        parts += [_through(forecast, now_ms)] if forecast.span is not None else []
    text = ", ".join(parts)
    return f"{' '.join(told)} {text}." if told else text


def headline_tone(lanes: Sequence[Lane], running: Sequence[Look]) -> str:
    """The tone of that sentence: ``bad``, ``warn``, ``muted``, or none."""
    if any(each in TROUBLE for each in running):
        return "bad"
    if any(lane.waiting and not lane.workers for lane in lanes):
        return "bad"
    if any(lane.pauses for lane in lanes):
        return "warn"
    return "" if running or any(lane.waiting for lane in lanes) else "muted"


def _through(forecast: Forecast, now_ms: int) -> str:
    through = forecast.span
    assert through is not None, "nothing is known of it"
    if forecast.unknown:
        of = forecast.known + forecast.unknown
        return f"{about(span(through))} for {forecast.known} of {of}, {forecast.unknown} unknown"
    if through.high_ms is None:
        return f"done in {span(through)}"
    step = 5 * MINUTE_MS if through.high_ms < 2 * HOUR_MS else 15 * MINUTE_MS
    low = max(now_ms, (now_ms + through.low_ms) // step * step)
    high = -(-(now_ms + through.high_ms) // step) * step
    return f"done {clock(low, now_ms=now_ms)}–{clock(high, now_ms=now_ms)}"


def unserved(*lanes: Lane, now_ms: int) -> str:
    """``Nobody serves lane render. Last seen 03:10.``"""
    last_ms = max((lane.last_served_ms or 0 for lane in lanes), default=0)
    seen = f"Last seen {clock(last_ms, now_ms=now_ms)}." if last_ms else "No worker ever has."
    names = " and ".join(printable(lane.name) for lane in lanes)
    return f"Nobody serves lane{'s' if len(lanes) > 1 else ''} {names}. {seen}"


def paused(lanes: Sequence[Lane], *, now_ms: int, me: str = "") -> list[str]:
    """Who paused what, when, why and until when: one sentence for each pause."""
    where: dict[str, list[str]] = {}
    for lane in lanes:
        for pause in lane.pauses:
            ends = pause.until_ms
            if ends is not None and ends <= now_ms:
                continue
            told = f"by {who(pause.by, me)} at {clock(pause.since_ms, now_ms=now_ms)}"
            told += f" ({plain(pause.why)})" if pause.why else ""
            told += f", until {clock(ends, now_ms=now_ms)}" if ends is not None else ""
            where.setdefault(told, []).append(printable(lane.name))
    return [f"{_all_or(names, len(lanes))} {told}." for told, names in where.items()]


def _all_or(names: Sequence[str], lanes: int) -> str:
    if len(names) >= lanes:
        return "Paused"
    many = len(names) > 1
    return f"Lane{'s' if many else ''} {' and '.join(names)} {'are' if many else 'is'} paused"


def stats_lines(seen: Stats, *, oldest: str = "") -> list[str]:
    """Statistics in sentences; ``oldest`` is the name of the job that waits longest."""
    done, failed = (sum(each[at] for each in seen.throughput) for at in (1, 2))
    told = [f"Since {clock(seen.since_ms, now_ms=seen.now_ms)}: {done:,} done, {failed:,} failed."]
    for task in seen.tasks:
        parts = [f"{task.done:,} done, {task.failed:,} failed"]
        parts += [f"took {_spread(task.ran)}"] if task.ran else []
        parts += [f"waited {_spread(task.waited)}"] if task.waited else []
        told.append(f"{printable(task.task)}: {'; '.join(parts)}.")
    if seen.oldest is not None:
        waited = duration(seen.now_ms - seen.oldest[1])
        told.append(f"{printable(oldest) or f'Job {seen.oldest[0]}'} waits longest: {waited}.")
    told.append(range_rate(seen))
    return told


def range_rate(seen: Stats) -> str:
    """How often the ranges for time left were right."""
    if not seen.ranges:
        return "No range for time left can be judged yet: that needs a done run of 4 min or more."
    share = f"{seen.inside * 100 // seen.ranges} %"
    return f"Ranges for time left held the truth in {seen.inside} of {seen.ranges} runs ({share})."


def _spread(of: Spread) -> str:
    middle = f"{duration(of.low_ms)} to {duration(of.high_ms)}"
    return f"{duration(of.median_ms)} (half of {count(of.jobs, 'job')}: {middle})"


def happened(event: Event, *, now_ms: int, me: str = "") -> str:
    """One line of a job's journal, without its time."""
    by, detail = who(event.by, me), event.detail
    match event.kind:
        case "asked":
            told = f"asked to {ASKED.get(str(detail.get('wish')), 'stop')} by {by}"
        case "ended":
            state = str(detail.get("state"))
            if state == State.CANCELLED:
                return f"stopped by {by}"
            told = printable(state)
        case "step":
            told = f"finished {plain(str(detail.get('name')))}"
        case kind:
            told = printable(kind)
            if kind in HAPPENED:
                told = HAPPENED[kind].format(by=by, attempt=event.attempt)
    if isinstance(again_ms := detail.get("again_ms"), int):
        told += f" at {clock(again_ms, now_ms=now_ms)}"
    because = plain(str(detail.get("why") or detail.get("error") or ""))
    return f"{told} ({because})" if because else told
