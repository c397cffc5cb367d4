"""The two-press rule: what ends a job is pressed twice, neither too fast nor too late. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EARLIEST_S, LATEST_S = 0.6, 6.0


@dataclass(frozen=True, slots=True)
class Armed:
    """What was pressed once, on which job, as it was then."""

    verb: str
    job_id: int
    state: str
    at_s: float


def press(
    armed: Armed | None, verb: str, *, job_id: int, state: str, now_s: float
) -> tuple[Literal["armed", "too soon", "go"], Armed | None]:
    """A press: the first arms; one from 0.6 s to 6 s later counts; sooner is a double tap."""
    fresh = Armed(verb, job_id, state, now_s)
    if armed is None or (armed.verb, armed.job_id, armed.state) != (verb, job_id, state):
        return "armed", fresh
    waited = now_s - armed.at_s
    if waited < EARLIEST_S:
        return "too soon", armed
    return ("go", None) if waited <= LATEST_S else ("armed", fresh)


def still(armed: Armed | None, states: dict[int, str], *, now_s: float) -> Armed | None:
    """Disarmed by time, and by any change of the job's state."""
    if armed is None or now_s - armed.at_s > LATEST_S or states.get(armed.job_id) != armed.state:
        return None
    return armed
