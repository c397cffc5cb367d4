"""Ranges: never negative, never upside down, never surer than what was measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineclear.estimate import (
    MINUTE_MS,
    TOO_EARLY,
    Forecast,
    Span,
    line_left,
    time_left,
    together,
    usual,
)

START = 1_000 * MINUTE_MS


def paces(*values: float) -> list[tuple[int, float]]:
    """One value a minute, the first a minute after the start."""
    return [(START + at * MINUTE_MS, value) for at, value in enumerate(values, start=1)]


def left(values: list[float], *, total: float = 100, reports: int = 10) -> object:
    """Of a run that began with the first of these values."""
    return time_left(
        paces(*values[1:]),
        done=values[-1],
        total=total,
        started_ms=START,
        start_done=values[0],
        reports=reports,
    )


def test_a_steady_pace_gives_a_narrow_range() -> None:
    assert left([0, 10, 20, 30, 40]) == Span(6 * MINUTE_MS, 6 * MINUTE_MS)


def test_an_uneven_pace_gives_a_range() -> None:
    seen = left([0, 10, 20, 40, 60], total=260)
    assert seen == Span(10 * MINUTE_MS, 20 * MINUTE_MS)


def test_a_wide_spread_says_only_more_than() -> None:
    assert left([0, 1, 2, 52, 102], total=1000) == Span(15 * MINUTE_MS, None)


@pytest.mark.parametrize(
    ("values", "over"),
    [
        ([0, 10, 20, 30], {"reports": 4}),
        ([0, 50], {}),
        ([0, 1, 1, 1.5], {}),
        ([10, 5, 4, 3], {}),
        ([0], {}),
    ],
    ids=["few reports", "a minute", "under two percent", "going back", "nothing yet"],
)
def test_e24_too_little_is_too_early(values: list[float], over: dict[str, Any]) -> None:
    assert left(values, **over) == TOO_EARLY


@pytest.mark.parametrize(
    ("done", "total"),
    [(None, 10.0), (5.0, None), (5.0, 0.0), (math.nan, 10.0), (5.0, math.inf), (5.0, -1.0)],
)
def test_e24_no_total_no_range(done: float | None, total: float | None) -> None:
    seen = time_left(
        paces(0, 1, 2, 3),
        done=done,
        total=total,
        started_ms=START,
        start_done=None,
        reports=9,
    )
    assert seen is None


def test_case_d7_a_resumed_run_is_judged_by_its_own_work() -> None:
    """60 % was there at the start of this attempt; four minutes made 4 % more."""
    assert left([60, 61, 62, 63, 64]) == Span(35 * MINUTE_MS, 40 * MINUTE_MS)


def test_a_run_that_lost_a_little_with_its_worker_is_judged_from_where_it_went_on() -> None:
    """60 was told, 55 was kept."""
    assert left([60, 56, 57, 58, 59]) == Span(40 * MINUTE_MS, 55 * MINUTE_MS)


def test_what_was_measured_before_the_start_does_not_count() -> None:
    """The minute in which it started began earlier; a value just after it is no pace either."""
    early = [(START - 40_000, 7.0), (START + 1_000, 9.0), *paces(10, 20, 30, 40)]
    seen = time_left(early, done=40, total=100, started_ms=START, start_done=None, reports=9)
    assert seen == Span(6 * MINUTE_MS, 6 * MINUTE_MS)


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1e6)


@given(
    values=st.lists(numbers, min_size=1, max_size=30),
    total=numbers | st.none(),
    done=numbers | st.none(),
    reports=st.integers(0, 20),
)
def test_case_d6_no_report_makes_a_range_negative_or_upside_down(
    values: list[float], total: float | None, done: float | None, reports: int
) -> None:
    seen = time_left(
        paces(*values),
        done=done,
        total=total,
        started_ms=START,
        start_done=values[0],
        reports=reports,
    )
    if isinstance(seen, Span):
        assert seen.low_ms >= 0
        assert seen.high_ms is None or seen.high_ms >= seen.low_ms


spans = st.builds(
    lambda low, more: Span(low * MINUTE_MS, None if more is None else (low + more) * MINUTE_MS),
    st.integers(0, 5_000),
    st.none() | st.integers(0, 5_000),
)


@given(st.lists(spans | st.none(), max_size=20), st.integers(1, 5), st.integers(0, 900_000))
def test_a_line_counts_what_it_does_not_know(
    jobs: list[Span | None], slots: int, delay_ms: int
) -> None:
    seen = line_left(jobs, slots=slots, delay_ms=delay_ms)
    assert seen.known + seen.unknown == len(jobs)
    assert (seen.span is None) == (seen.known == 0)
    if seen.span is not None:
        assert seen.span.low_ms >= 0
        assert seen.span.high_ms is None or seen.span.high_ms >= seen.span.low_ms


def test_a_line_is_shared_by_its_slots_and_holds_its_delays() -> None:
    hour = Span(60 * MINUTE_MS, 60 * MINUTE_MS)
    assert line_left([hour] * 4, slots=2).span == Span(120 * MINUTE_MS, 120 * MINUTE_MS)
    assert line_left([hour], slots=3).span == hour
    assert line_left([hour, hour, None], slots=1, delay_ms=15 * MINUTE_MS) == Forecast(
        Span(135 * MINUTE_MS, 135 * MINUTE_MS), 2, 1
    )


def test_lanes_side_by_side_are_through_with_the_slowest() -> None:
    short = Forecast(Span(MINUTE_MS, 2 * MINUTE_MS), 1, 0)
    long = Forecast(Span(60 * MINUTE_MS, 90 * MINUTE_MS), 2, 1)
    assert together([short, long]) == Forecast(Span(60 * MINUTE_MS, 90 * MINUTE_MS), 3, 1)
    assert together([]) == Forecast(None, 0, 0)


def test_usual_needs_two_runs_and_gives_the_middle_half() -> None:
    assert usual([MINUTE_MS]) is None
    seen = usual([10 * MINUTE_MS, 20 * MINUTE_MS, 30 * MINUTE_MS, 40 * MINUTE_MS, 50 * MINUTE_MS])
    assert seen is not None
    assert (seen.span, seen.runs) == (Span(20 * MINUTE_MS, 40 * MINUTE_MS), 5)
