"""How long it still takes, as a range from what was measured, or nothing. Pure.

The page and the command line call it when somebody looks; nothing here is stored. It never guesses:
too little data answers "too early", a wide spread only "more than", and what is not known is
counted instead of invented. It must never read a clock: the same data give the same answer, so
nothing is counted down between two reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeGuard

MINUTE_MS = 60_000
REPORTS_NEEDED = 5
TIME_NEEDED_MS = 2 * MINUTE_MS
SHARE_NEEDED = 0.02
WINDOW_MS = 10 * MINUTE_MS
TOO_WIDE = 3
RUNS_NEEDED = 2

TOO_EARLY: Final = "too early"


@dataclass(frozen=True, slots=True)
class Span:
    """From ``low_ms`` to ``high_ms``; ``None`` above where only "more than" is honest."""

    low_ms: int
    high_ms: int | None


Left = Span | Literal["too early"] | None


@dataclass(frozen=True, slots=True)
class Usual:
    """How long earlier runs of the same task took: the middle half of ``runs`` of them."""

    span: Span
    runs: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a line is through: ``span`` is for the ``known`` jobs, the others are not guessed."""

    span: Span | None
    known: int
    unknown: int


def time_left(
    pace: Sequence[tuple[int, float]],
    *,
    done: float | None,
    total: float | None,
    started_ms: int | None,
    start_done: float | None,
    reports: int,
) -> Left:
    """What remains of a run. ``None`` where it cannot be said: no total, or nothing advances.

    ``pace`` is this attempt's progress, one (time, value) a minute; ``start_done`` what it began
    with. Only this attempt counts: a resumed run is judged by what it does now. The caller asks
    only while the work moves.
    """
    if not _number(done) or not _number(total) or total <= 0 or started_ms is None:
        return None
    remaining = max(0.0, total - max(0.0, done))
    # A value taken just after the start tells more of the starting than of the pace.
    first_ms = started_ms + MINUTE_MS // 2
    later = [(at_ms, value) for at_ms, value in pace if at_ms >= first_ms and _number(value)]
    if not later:
        return TOO_EARLY
    # A run whose worker was lost begins again a little before the progress last told.
    start = min(start_done if _number(start_done) else 0.0, later[0][1])
    advanced = done - start
    points = [(started_ms, start), *later]
    elapsed_ms = points[-1][0] - started_ms
    enough = advanced >= min(SHARE_NEEDED * total, remaining) and advanced > 0
    if reports < REPORTS_NEEDED or elapsed_ms < TIME_NEEDED_MS or not enough:
        return TOO_EARLY
    paces = _paces(points, since_ms=points[-1][0] - max(WINDOW_MS, elapsed_ms // 10))
    slow, fast = _quartiles(paces)
    if fast <= 0:
        return None
    low_ms = remaining / fast
    return _span(low_ms, remaining / slow if slow > 0 else math.inf)


def usual(worked_ms: Sequence[int]) -> Usual | None:
    """The usual duration of a task, from earlier runs that ended well."""
    if len(worked_ms) < RUNS_NEEDED:
        return None
    low, high = _quartiles([float(max(0, each)) for each in worked_ms])
    return Usual(_span(low, high), len(worked_ms))


class Ahead:
    """What a lane has before it, job by job: what each takes, shared by its slots, with the delays
    between.
    """

    def __init__(self, *, slots: int, delay_ms: int = 0) -> None:
        self.slots, self.delay_ms = max(1, slots), max(0, delay_ms)
        self.known = self.unknown = 0
        self._low = self._longest = 0
        self._high = self._alone = 0.0

    def add(self, span: Span | None) -> None:
        if span is None:
            self.unknown += 1
            return
        high = math.inf if span.high_ms is None else span.high_ms
        self.known += 1
        self._low += span.low_ms
        self._high += high
        self._longest, self._alone = max(self._longest, span.low_ms), max(self._alone, high)

    def left(self) -> Forecast:
        if not self.known:
            return Forecast(None, 0, self.unknown)
        pauses = (self.known - 1) * self.delay_ms
        # Jobs do not split: where slots outnumber jobs, the longest of them decides.
        low = max(self._low / self.slots + pauses, self._longest)
        high = max(self._high / self.slots, self._alone) + pauses
        return Forecast(_span(low, high), self.known, self.unknown)


def line_left(jobs: Sequence[Span | None], *, slots: int, delay_ms: int = 0) -> Forecast:
    """A whole lane at once."""
    ahead = Ahead(slots=slots, delay_ms=delay_ms)
    for span in jobs:
        ahead.add(span)
    return ahead.left()


def together(forecasts: Sequence[Forecast]) -> Forecast:
    """Several lanes side by side: through when the slowest is."""
    spans = [each.span for each in forecasts if each.span is not None]
    known = sum(each.known for each in forecasts)
    unknown = sum(each.unknown for each in forecasts)
    if not spans:
        return Forecast(None, known, unknown)
    high = max(math.inf if span.high_ms is None else span.high_ms for span in spans)
    return Forecast(_span(max(span.low_ms for span in spans), high), known, unknown)


@dataclass(frozen=True, slots=True)
class Ended:
    """One job that ended, as the statistics need it."""

    id: int
    task: str
    state: str
    submitted_ms: int
    started_ms: int | None
    ended_ms: int
    worked_ms: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Half of ``jobs`` took less than the median, half of them between low and high."""

    median_ms: int
    low_ms: int
    high_ms: int
    jobs: int


@dataclass(frozen=True, slots=True)
class TaskStats:
    """One kind of job: how many ended how, how long they ran (done ones) and had waited (those
    that needed one try: of the others only the last start is known).
    """

    task: str
    done: int
    failed: int
    ran: Spread | None
    waited: Spread | None


@dataclass(frozen=True, slots=True)
class Stats:
    """What was done since ``since_ms``. ``done`` and ``failed`` are counted for each stretch of
    ``every_ms`` that begins at ``at_ms``; of the ``ranges`` that would have been shown half-way of
    the last done runs, ``inside`` held the truth. ``oldest`` waits longest: its id, since when.
    """

    since_ms: int
    now_ms: int
    every_ms: int
    throughput: tuple[tuple[int, int, int], ...]
    tasks: tuple[TaskStats, ...]
    ranges: int
    inside: int
    oldest: tuple[int, int] | None
    capped: bool


def stretches(
    runs: Sequence[Ended], *, since_ms: int, now_ms: int
) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    """How long each stretch is (an hour, a day or a week), and (begin, done, failed) of each."""
    length_ms = now_ms - since_ms
    every_ms = next((e for e in (HOUR_MS, DAY_MS) if length_ms <= MOST_STRETCHES * e), 7 * DAY_MS)
    number = min(MOST_STRETCHES, max(1, -(-length_ms // every_ms)))
    first_ms = now_ms - number * every_ms
    done, failed = [0] * number, [0] * number
    for run in runs:
        at = min(number - 1, (run.ended_ms - first_ms) // every_ms)
        if at >= 0:
            done[at] += run.state == "done"
            failed[at] += run.state == "failed"
    begins = [first_ms + at * every_ms for at in range(number)]
    return every_ms, tuple(zip(begins, done, failed, strict=True))


HOUR_MS, DAY_MS = 60 * MINUTE_MS, 24 * 60 * MINUTE_MS
MOST_STRETCHES = 100


def by_task(runs: Sequence[Ended]) -> tuple[TaskStats, ...]:
    """Each kind on its own, the busiest first."""
    kinds: dict[str, list[Ended]] = {}
    for run in runs:
        kinds.setdefault(run.task, []).append(run)
    found = [
        TaskStats(
            task,
            done=sum(run.state == "done" for run in ended),
            failed=sum(run.state == "failed" for run in ended),
            ran=spread([run.worked_ms for run in ended if run.state == "done"]),
            waited=spread(
                [
                    run.started_ms - run.submitted_ms
                    for run in ended
                    if run.attempt == 1 and run.started_ms is not None
                ]
            ),
        )
        for task, ended in kinds.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.done - each.failed, each.task)))


def spread(values_ms: Sequence[int]) -> Spread | None:
    """The median and the middle half; ``None`` of fewer than two."""
    if len(values_ms) < RUNS_NEEDED:
        return None
    values = sorted(float(max(0, each)) for each in values_ms)
    low, high = _quartiles(values)
    half = len(values) // 2
    median = values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
    return Spread(int(median), int(low), int(high), len(values))


def was_right(
    pace: Sequence[tuple[int, float]],
    *,
    total: float | None,
    started_ms: int,
    start_done: float | None,
    ended_ms: int,
    reports: int,
) -> bool | None:
    """Whether the range shown half-way of a run that is done held how long it then took; ``None``
    where none would have been shown.
    """
    middle_ms = started_ms + (ended_ms - started_ms) // 2
    seen = [point for point in pace if point[0] <= middle_ms]
    if not seen:
        return None
    at_ms, done = seen[-1]
    told = time_left(
        seen, done=done, total=total, started_ms=started_ms, start_done=start_done,
        reports=reports // 2,
    )  # fmt: skip
    if not isinstance(told, Span):
        return None
    truth_ms = ended_ms - at_ms
    return told.low_ms <= truth_ms and (told.high_ms is None or truth_ms <= told.high_ms)


def _span(low_ms: float, high_ms: float) -> Span:
    """Rounded outwards, so that rounding never makes the range look surer than it is."""
    high_ms = max(low_ms, high_ms)
    low = _rounded(low_ms, up=False)
    if high_ms > TOO_WIDE * max(low_ms, MINUTE_MS):
        return Span(low, None)
    return Span(low, _rounded(high_ms, up=True))


def _rounded(value_ms: float, *, up: bool) -> int:
    """To 1 min under 10 min, 5 min under 2 h, 15 min above."""
    minutes = value_ms / MINUTE_MS
    step = 1 if minutes < 10 else 5 if minutes < 120 else 15
    whole = math.ceil(minutes / step) if up else math.floor(minutes / step)
    return whole * step * MINUTE_MS


def _paces(points: Sequence[tuple[int, float]], *, since_ms: int) -> list[float]:
    """Work per millisecond, one value a minute; silent minutes share the next report's work."""
    paces: list[float] = []
    for (start_ms, before), (end_ms, after) in pairwise(points):
        if end_ms > since_ms:
            minutes = max(1, round((end_ms - max(start_ms, since_ms)) / MINUTE_MS))
            paces += [max(0.0, after - before) / (end_ms - start_ms)] * minutes
    return paces


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The 25th and 75th percentile, between neighbours in proportion."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

    return at(0.25), at(0.75)


def _number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
