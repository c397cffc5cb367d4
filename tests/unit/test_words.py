"""The words: whole sentences, as a person reads them at three in the morning."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineclear import figures, terms, words
from lineclear.estimate import MINUTE_MS, TOO_EARLY, Forecast, Span, Usual
from lineclear.job import Cause, Job, Lane, Options, Pause, State, Wish
from lineclear.looks import Look, Reason, look

HOUR_MS = 60 * MINUTE_MS


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


NOW = at("2026-12-01T03:12")


def job(**given_: Any) -> Job:
    empty: dict[str, Any] = {each.name: None for each in fields(Job)}
    known = {
        "id": 41, "lane": "render", "task": "render", "args": "{}", "app": "",
        "title": "The Hobbit", "state": State.RUNNING, "priority": 0, "position": 1,
        "revision": 1, "run_revision": 1, "attempt": 1, "failures": 0, "interruptions": 0,
        "moves": 0, "unit": "pages", "note": "", "submitted_ms": NOW,
        "submitted_by": "ann", "worked_ms": 0, "version": 1, "options": Options(),
        "started_ms": NOW - 38 * MINUTE_MS,
    }  # fmt: skip
    return Job(**(empty | known | given_))


def told(one: Job, *reasons: Reason, **more: Any) -> str:
    seen = look(one, now_ms=NOW)
    after = words.detail(one, seen, reasons, NOW, me="ann", **more)
    return f"{words.state_word(seen, one)} · {after}"


ENDED = {"ended_ms": NOW - 2 * HOUR_MS, "ended_by": "ann", "worked_ms": 48 * MINUTE_MS}
QUEUED = {"state": State.QUEUED, "attempt": 0, "started_ms": None}


def test_a_stop_keeps_what_its_finished_steps_weigh_and_not_all_that_was_done() -> None:
    one = job(state=State.CANCELLED, cause=Cause.ASKED, done=412.0, total=980.0, **ENDED)
    assert told(one, kept=400.0) == "Stopped · by you 01:12 at 42 %, kept 400 pages"


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (job(), "Running · 38 min, try 1"),
        (
            job(moved_age_ms=4 * MINUTE_MS, started_ms=NOW - 72 * MINUTE_MS),
            "Quiet for 4 min · running 1 h 12 min",
        ),
        (job(beat_age_ms=6 * MINUTE_MS), "Not responding · last sign of life 6 min ago"),
        (
            job(worker_alive=False),
            "Worker gone · its worker ended; goes on when a worker starts",
        ),
        (
            job(wish=Wish.CANCEL, wish_ms=NOW - 12_000),
            "Stopping · asked 12 s ago, finishing this page",
        ),
        (
            job(wish=Wish.CANCEL, wish_ms=NOW - 2 * MINUTE_MS),
            "Stopping, no answer · asked 2 min ago",
        ),
        (job(wish=Wish.KILL, wish_ms=NOW - 1_000), "Stopping now · sent kill 1 s ago"),
        (
            job(wish=Wish.REQUEUE, wish_ms=NOW - 1_000),
            "Stopping now · sent kill 1 s ago, goes back in line",
        ),
        (job(state=State.DONE, **ENDED), "Done · 01:12, took 48 min"),
        (
            job(state=State.FAILED, error="voice file missing.", **ENDED),
            "Failed · 01:12 after 48 min: voice file missing",
        ),
        (
            job(state=State.FAILED, failures=2, options=Options(retries=1), error="no", **ENDED),
            "Failed · 01:12 after 48 min, try 2 of 2: no",
        ),
        (
            job(state=State.CANCELLED, cause=Cause.ASKED, done=412.0, total=980.0, **ENDED),
            "Stopped · by you 01:12 at 42 %",
        ),
        (
            job(state=State.CANCELLED, cause=Cause.KILLED, done=412.0, total=980.0, **ENDED),
            "Killed · by you 01:12 at 42 %",
        ),
        (
            job(state=State.CANCELLED, cause=Cause.REMOVED, attempt=0, **ENDED),
            "Removed · by you 01:12, never started",
        ),
        (
            job(state=State.FAILED, cause=Cause.WORKER_LOST, error="It lost it 3 times.", **ENDED),
            "Lost · 01:12: It lost it 3 times",
        ),
    ],
)
def test_each_state_is_said_in_a_word_and_a_sentence(one: Job, sentence: str) -> None:
    assert told(one) == sentence


@pytest.mark.parametrize(
    ("one", "reasons", "sentence"),
    [
        (job(**QUEUED), [Reason("next", place=1)], "Waiting · 1st"),
        (
            job(**QUEUED),
            [Reason("slots", jobs=(7,)), Reason("behind", place=3)],
            "Waiting · 3rd, starts in about 1–1½ h",
        ),
        (
            job(run_at_ms=at("2026-12-02T02:30"), **QUEUED),
            [Reason("due", at_ms=at("2026-12-02T02:30"))],
            "Waiting · not before tomorrow 02:30",
        ),
        (
            job(held_ms=NOW - HOUR_MS, held_by="ann", **QUEUED),
            [Reason("held"), Reason("behind", place=3)],
            "Paused · 3rd when resumed, by you 02:12",
        ),
        (
            job(
                **QUEUED,
                run_at_ms=at("2026-12-01T03:40"),
                failures=1,
                options=Options(retries=2),
                error="connection refused.",
            ),
            [Reason("retry", at_ms=at("2026-12-01T03:40"))],
            "Waiting to retry · try 2 of 3 at 03:40: connection refused",
        ),
        (
            job(**QUEUED),
            [Reason("paused", by="scan", at_ms=at("2026-12-01T07:00")), Reason("behind", place=2)],
            "Waiting · 2nd, lane is paused by scan until 07:00",
        ),
        (
            job(**QUEUED),
            [Reason("delay", at_ms=NOW + 4 * MINUTE_MS)],
            "Waiting · delay, 4 min left",
        ),
        (job(**QUEUED), [Reason("no worker")], "Waiting · no worker serves its lane"),
    ],
)
def test_a_waiting_job_says_where_and_why(one: Job, reasons: list[Reason], sentence: str) -> None:
    starts = Span(60 * MINUTE_MS, 90 * MINUTE_MS)
    assert told(one, *reasons, starts=starts) == sentence


def test_the_first_in_line_waits_for_a_job_by_its_name() -> None:
    assert told(job(**QUEUED), Reason("slots", jobs=(7,)), names={7: "Dune"}) == (
        "Waiting · after Dune"
    )


@pytest.mark.parametrize(
    ("why", "sentence"),
    [
        (Reason("held", by="ann", at_ms=NOW), "It is paused by you since 03:12."),
        (Reason("no worker", at_ms=NOW), "Nobody serves its lane. Last seen 03:12."),
        (Reason("no worker"), "Nobody serves its lane. No worker ever has."),
        (
            Reason("paused", by="scan", why="reading", at_ms=NOW),
            "Its lane is paused by scan (reading) until 03:12.",
        ),
        (
            Reason("delay", at_ms=NOW + 90_000),
            "The delay between jobs has 1 min 30 s left.",
        ),
        (Reason("slots", jobs=(7, 8)), "Dune and Job 8 take every slot."),
        (Reason("slots", jobs=(7,)), "Dune takes its slot."),
        (
            Reason("retry", why="no route.", at_ms=NOW),
            "It failed (no route) and is tried again at 03:12.",
        ),
        (Reason("due", at_ms=NOW), "It is not to start before 03:12."),
        (Reason("behind", place=2), "It is 2nd in line."),
        (Reason("next"), "It is next: a worker is about to take it."),
    ],
)
def test_each_reason_is_a_sentence(why: Reason, sentence: str) -> None:
    assert words.reason(why, now_ms=NOW, me="ann", names={7: "Dune"}) == sentence


def lane(name: str = "render", **given_: Any) -> Lane:
    return Lane(**{"name": name, "concurrency": 1, "delay_ms": 0, "last_end_ms": None, **given_})


def test_the_headline_counts_and_says_until_when() -> None:
    forecast = Forecast(Span(200 * MINUTE_MS, 250 * MINUTE_MS), 7, 0)
    seen = words.headline(
        [lane(running=1, waiting=6, workers=1)], [Look.RUNNING], now_ms=NOW, forecast=forecast
    )
    assert seen == "1 running, 6 waiting, done 06:30–07:30"


def test_the_headline_counts_what_it_cannot_know() -> None:
    forecast = Forecast(Span(180 * MINUTE_MS, 300 * MINUTE_MS), 4, 2)
    seen = words.headline([lane(waiting=6, workers=1)], [], now_ms=NOW, forecast=forecast)
    assert seen == "6 waiting, about 3–5 h for 4 of 6, 2 unknown"


def test_e25_nobody_serves_a_lane() -> None:
    seen = words.headline([lane(waiting=6, last_served_ms=at("2026-12-01T03:10"))], [], now_ms=NOW)
    assert seen == "Nobody serves lane render. Last seen 03:10. 6 waiting."


def test_the_headline_puts_trouble_first() -> None:
    seen = words.headline([lane(running=2, workers=1)], [Look.SILENT, Look.RUNNING], now_ms=NOW)
    assert seen == "1 not responding. 2 running."


def test_case_c9_a_pause_says_who_when_why_and_until_when() -> None:
    pause = Pause("scan", "photo reader", "reading", NOW - HOUR_MS, at("2026-12-01T07:00"))
    seen = words.headline([lane(pauses=(pause,), waiting=6, workers=1)], [], now_ms=NOW, me="ann")
    assert seen == "Paused by photo reader at 02:12 (reading), until 07:00. 6 waiting."
    mine = Pause("person", "ann", "", NOW - HOUR_MS, None)
    assert words.paused([lane(pauses=(mine,))], now_ms=NOW, me="ann") == ["Paused by you at 02:12."]
    assert words.paused([lane(pauses=(pause,)), lane("b")], now_ms=NOW) == [
        "Lane render is paused by photo reader at 02:12 (reading), until 07:00."
    ]
    over = Pause("scan", "x", "", NOW - HOUR_MS, NOW)
    assert words.paused([lane(pauses=(over,))], now_ms=NOW) == []


def test_nothing_at_all() -> None:
    assert words.headline([], [], now_ms=NOW) == words.EMPTY


@pytest.mark.parametrize(
    ("given_", "line"),
    [
        ({"done": 412.0, "total": 980.0}, "412 of 980 pages · 42 %"),
        ({"done": 979.9, "total": 980.0}, "979.9 of 980 pages · 99 %"),
        ({"done": 980.0, "total": 980.0}, "980 of 980 pages · 99 %"),
        ({"done": 980.0, "total": 980.0, "state": State.DONE}, "980 of 980 pages · 100 %"),
        ({"done": 412.0}, "412 pages so far"),
        ({"done": 412.0, "unit": ""}, "412 so far"),
        ({}, ""),
        ({"done": 57.0, "total": 100.0}, "57 of 100 pages · 57 %"),
    ],
)
def test_case_d6_amounts(given_: dict[str, Any], line: str) -> None:
    assert words.amount(job(**given_)) == line


def test_case_d6_twelve_of_seven_and_worse() -> None:
    assert words.amount(job(done=12.0, total=7.0)) == "12 of 7 pages · about 99 %"
    for done in (math.nan, math.inf, -math.inf, -1.0, 1e300, 0.0, None):
        for total in (math.nan, math.inf, -1.0, 0.0, 40.0, None):
            one = job(done=done, total=total)
            part = words.share(one)
            assert part is None or 0 <= part < 1
            assert "-" not in words.amount(one) and "100 %" not in words.amount(one)


def test_progress_says_what_is_known_and_nothing_more() -> None:
    one = job(done=412.0, total=980.0)
    say = words.progress
    wide = Span(45 * MINUTE_MS, 70 * MINUTE_MS)
    known: Any = {"usual": None, "now_ms": NOW}
    assert say(one, Look.RUNNING, left=wide, **known) == (
        "412 of 980 pages · 42 % · 45–70 min left"
    )
    assert say(one, Look.RUNNING, left=TOO_EARLY, **known).endswith(" · too early to say")
    assert say(one, Look.QUIET, left=wide, **known).endswith(" · time left unknown")
    earlier = Usual(Span(35 * MINUTE_MS, 50 * MINUTE_MS), 8)
    assert say(job(), Look.RUNNING, left=None, usual=earlier, now_ms=NOW) == (
        "Running for 38 min · usually 35–50 min (8 earlier runs)"
    )


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (45, 70, "45–70 min"),
        (60, 90, "1–1½ h"),
        (105, 150, "1¾–2½ h"),
        (110, 150, "1¾–2½ h"),
        (50, 150, "50 min–2½ h"),
        (40, None, "more than 40 min"),
        (5, 5, "about 5 min"),
        (120, 120, "about 2 h"),
        (0, 1, "under 1 min"),
        (0, 0, "under 1 min"),
        (1440, 2880, "24–48 h"),
    ],
)
def test_ranges(low: int, high: int | None, text: str) -> None:
    assert figures.span(Span(low * MINUTE_MS, None if high is None else high * MINUTE_MS)) == text


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (12_900, "12 s"),
        (90_000, "1 min"),
        (72 * MINUTE_MS, "1 h 12 min"),
        (60 * MINUTE_MS, "1 h"),
        (26 * HOUR_MS, "1 d 2 h"),
    ],
)
def test_durations_have_at_most_two_units(value_ms: int, text: str) -> None:
    assert figures.duration(value_ms) == text


def test_an_exact_duration_keeps_its_seconds() -> None:
    assert figures.duration(90_000, exact=True) == "1 min 30 s"
    assert figures.duration(0, exact=True) == "0 s"


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ("2026-12-01T03:12", "03:12"),
        ("2026-11-30T23:10", "yesterday 23:10"),
        ("2026-12-02T02:30", "tomorrow 02:30"),
        ("2026-11-28T23:10", "28 Nov 23:10"),
        ("2025-11-28T23:10", "2025-11-28 23:10"),
    ],
)
def test_times_are_local_and_name_the_day(when: str, text: str) -> None:
    assert figures.clock(at(when), now_ms=NOW) == text


def test_a_time_beyond_the_calendar_does_not_break_a_list() -> None:
    assert figures.clock(10**18, now_ms=NOW) == "an unknown time"
    assert figures.iso(10**18) is None and figures.iso(None) is None


def test_plurals_ordinals_sizes() -> None:
    assert [figures.count(n, "job") for n in (0, 1, 2, 1204)] == [
        "0 jobs", "1 job", "2 jobs", "1,204 jobs"
    ]  # fmt: skip
    assert figures.count(2, "try", "tries") == "2 tries"
    places = [figures.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111, 1003)]
    assert places == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "13th",
        "21st",
        "111th",
        "1,003rd",
    ]
    sizes = [figures.size(n) for n in (12, 1_200_000_000, 999_000, 2e13)]
    assert sizes == ["12 bytes", "1.2 GB", "999 kB", "20.0 TB"]


@given(st.text(alphabet=st.characters(), max_size=50))
def test_case_d1_nothing_a_job_says_steers_a_terminal(text: str) -> None:
    safe = figures.printable(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in safe)
    safe.encode()


def test_case_d1_an_escape_sequence_is_shown_not_obeyed() -> None:
    title = "\x1b[2J\x1b]0;pwned\x07\u202eevil\ud800"
    assert figures.printable(title) == "\\x1b[2J\\x1b]0;pwned\\x07\\u202eevil\\ud800"
    one = job(state=State.FAILED, error="a\x1b[31mb\nc", **ENDED)
    assert told(one) == "Failed · 01:12 after 48 min: a\\x1b[31mb c"


def test_what_stopping_keeps_or_loses() -> None:
    assert words.at_stake(job(), kept=0, now_ms=NOW) == "Loses 38 min of work."
    assert words.at_stake(job(), kept=412, now_ms=NOW) == "Keeps 412 pages."
    thread = job(options=Options(runs_in="thread"))
    told = "Loses 38 min of work. Ended at once, it sends what shares its process back in line."
    assert words.at_stake(thread, kept=0, now_ms=NOW) == told


def test_every_look_has_a_word() -> None:
    assert set(terms.WORDS) == set(Look)
