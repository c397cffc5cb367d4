"""What the API takes, as exact models: what does not fit is refused, naming the field. Used by the
routers; nothing is turned into what it is not.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lineclear.job import TEXT_LIMIT
from lineclear.store.acts import MOST_SLOTS

MOST_S = 10 * 366 * 86_400
"""Seconds of the longest delay or pause: ten years."""
MOST_IDS = 1_000

Id = Annotated[int, Field(ge=1, lt=2**53)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Text = Annotated[str, Field(max_length=TEXT_LIMIT)]
StateKey = Literal["queued", "running", "done", "failed", "cancelled"]
Ended = Literal["done", "failed", "cancelled"]


class _Given(BaseModel):
    """A request: what is not named here is refused, and nothing is turned into what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Nothing(_Given):
    pass


class Because(_Given):
    why: Text = ""


class Pausing(_Given):
    """``until`` is ISO 8601 (without an offset: the server's own time), ``for_s`` seconds."""

    why: Text = ""
    until: Annotated[str, Field(max_length=64)] | None = None
    for_s: Annotated[float, Field(gt=0, le=MOST_S)] | None = None


class LaneChange(_Given):
    delay_s: Annotated[float, Field(ge=0, le=MOST_S)] | None = None
    slots: Annotated[int, Field(ge=1, le=MOST_SLOTS)] | None = None


class Clearing(_Given):
    """``expect`` is the number the person saw; another number is refused."""

    expect: Annotated[int, Field(ge=0, lt=2**53)]


class Before(_Given):
    before: Id


class After(_Given):
    after: Id


class Moving(_Given):
    to: Literal["top", "bottom", "up", "down"] | Id | Before | After
    why: Text = ""


class Retrying(_Given):
    first: bool = False
    start_over: bool = False
    why: Text = ""


class Ids(_Given):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)]
    why: Text = ""


class RetryingAll(Ids):
    first: bool = False


class Hiding(_Given):
    states: Annotated[list[Ended], Field(min_length=1, max_length=3)] = ["done"]
    lane: Name | None = None
    expect: Annotated[int, Field(ge=0, lt=2**53)] | None = None


class Undoing(_Given):
    """``undo`` is the number an act answered; without it the last act is taken back."""

    undo: Id | None = None


class Adding(_Given):
    task: Name
    args: dict[str, Any] = {}
    lane: Name | None = None
    key: Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)] | None = None
    title: Text | None = None
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    first: bool = False
    paused: bool = False
    not_before: Annotated[str, Field(max_length=64)] | None = None
    dry_run: bool = False
