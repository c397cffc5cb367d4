"""Rows into data. One row that cannot be decoded never harms another: what is unreadable becomes
unknown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from lineclear.job import Cause, Event, Job, Options, Pause, State, Step, Wish
from lineclear.store.statements import JOB_COLUMNS

E = TypeVar("E", bound=StrEnum)

_DEFAULTS = {f.name: f.default for f in fields(Options)}


def read_job(row: Mapping[str, Any], **computed: Any) -> Job:
    # In the order of the columns, which is that of the fields: by name it takes four times as long.
    values: list[Any] = list(row)
    values[_STATE] = State(values[_STATE])
    values[_WISH] = _member(Wish, values[_WISH])
    values[_CAUSE] = _member(Cause, values[_CAUSE])
    values[_OPTIONS] = read_options(values[_OPTIONS])
    return Job(*values, **computed)


_STATE, _WISH, _CAUSE, _OPTIONS = map(JOB_COLUMNS.index, ("state", "wish", "cause", "options"))


@lru_cache(maxsize=256)
def read_options(text: str) -> Options:
    data = _object(text)
    return Options(**{name: data[name] for name in data if _fits(name, data[name])})


def read_event(row: Mapping[str, Any]) -> Event:
    values = dict(row)
    values["detail"] = _object(values["detail"])
    return Event(**values)


def read_step(row: Mapping[str, Any]) -> Step:
    return Step(**row)


def read_pause(row: Mapping[str, Any]) -> Pause:
    return Pause(**row)


def clean(text: str) -> str:
    """``text`` with what no database stores faithfully (NUL, lone surrogates) written as
    escapes.
    """
    if "\0" not in text and text.isascii():
        return text
    kept = text.replace("\0", "\\x00")
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")


def _member(kind: type[E], value: Any) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError:
        return None


def _fits(name: str, value: Any) -> bool:
    """Whether there is such an option, and ``value`` is of its kind; numbers may be unset."""
    match _DEFAULTS.get(name, MISSING):
        case bool() | str() as default:
            return isinstance(value, type(default))
        case int() | float():
            return _number(value)
        case None:
            return value is None or _number(value)
        case _:
            return False


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
