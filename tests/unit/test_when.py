"""Durations and times as people type them, and the two-press rule."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from lineclear.cli.armed import press, still
from lineclear.errors import BadInput
from lineclear.when import ago_ms, duration_ms, moment_ms


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)


NOW = at("2026-12-01T03:12+01:00")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0s", 0),
        ("90s", 90_000),
        ("300ms", 300),
        ("15min", 900_000),
        ("15 m", 900_000),
        ("1h30m", 5_400_000),
        ("1.5H", 5_400_000),
        ("7d", 604_800_000),
    ],
)
def test_durations(text: str, value: int) -> None:
    assert duration_ms(text, "--for") == value


@pytest.mark.parametrize(
    "text", ["", "5", "-5s", "5 parsecs", "s", "1h-5m", "99999w", "inf", "1e9s"]
)
def test_no_duration_is_a_sentence_naming_the_field(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--for ") as refused:
        duration_ms(text, "--for")
    assert refused.value.field == "--for"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("07:00", "2026-12-01T07:00"),
        ("03:12", "2026-12-02T03:12"),
        ("02:00", "2026-12-02T02:00"),
        ("today 02:00", "2026-12-01T02:00"),
        ("tomorrow 06:30", "2026-12-02T06:30"),
        ("2h", "2026-12-01T05:12"),
        ("2026-12-24T18:00", "2026-12-24T18:00"),
        ("2026-12-24 18:00+00:00", "2026-12-24T19:00"),
    ],
)
def test_moments(text: str, when: str) -> None:
    assert moment_ms(text, "--until", now_ms=NOW) == at(when)


def test_a_clock_time_across_the_change_of_summer_time() -> None:
    evening = at("2026-03-28T23:00")
    assert moment_ms("07:00", "--until", now_ms=evening) == at("2026-03-29T07:00+02:00")


@pytest.mark.parametrize("text", ["", "soon", "25:00", "07:61", "2026-13-01", "yesterday", "-1h"])
def test_no_moment_is_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--until is a time such as 07:00"):
        moment_ms(text, "--until", now_ms=NOW)


def test_ages() -> None:
    assert ago_ms("7d", "--before", now_ms=NOW) == NOW - 7 * 86_400_000
    assert ago_ms("2026-11-30", "--since", now_ms=NOW) == at("2026-11-30T00:00")


def test_the_second_press_counts_only_between_600_ms_and_6_s() -> None:
    first: Any = {"job_id": 41, "state": "running"}
    said, armed = press(None, "stop", now_s=0.0, **first)
    assert said == "armed"
    assert press(armed, "stop", now_s=0.59, **first) == ("too soon", armed)
    assert press(armed, "stop", now_s=0.6, **first) == ("go", None)
    assert press(armed, "stop", now_s=6.0, **first) == ("go", None)
    said, later = press(armed, "stop", now_s=6.01, **first)
    assert said == "armed" and later is not None and later.at_s == 6.01


def test_another_job_or_state_arms_anew() -> None:
    _, armed = press(None, "stop", job_id=41, state="running", now_s=100.0)
    assert press(armed, "stop", job_id=42, state="running", now_s=101.0)[0] == "armed"
    assert press(armed, "stop", job_id=41, state="queued", now_s=101.0)[0] == "armed"


def test_time_and_a_change_of_state_disarm() -> None:
    _, armed = press(None, "stop", job_id=41, state="running", now_s=100.0)
    assert still(armed, {41: "running"}, now_s=105.0) == armed
    assert still(armed, {41: "running"}, now_s=106.1) is None
    assert still(armed, {41: "done"}, now_s=101.0) is None
    assert still(armed, {}, now_s=101.0) is None
