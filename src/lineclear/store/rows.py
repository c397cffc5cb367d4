"""Rows into data. One row that cannot be decoded never harms another: what is unreadable becomes
unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, TypeVar

from lineclear.job import Cause, Event, Job, Options, Pause, State, Step, Wish
from lineclear.store.statements import JOB_COLUMNS

E = TypeVar("E", bound=StrEnum)

_DEFAULTS = {f.name: f.default for f in fields(Options)}


def read_job(row: Mapping[str, Any]) -> Job:
    values = {name: row[name] for name in JOB_COLUMNS}
    values["state"] = State(values["state"])
    values["wish"] = _member(Wish, values["wish"])
    values["cause"] = _member(Cause, values["cause"])
    values["options"] = read_options(values["options"])
    return Job(**values)


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
            return isinstance(value, int | float)
        case None:
            return value is None or isinstance(value, int | float)
        case _:
            return False


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
