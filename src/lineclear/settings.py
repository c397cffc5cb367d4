"""What can be set for a worker, each with its reason. From the environment; the command line may
override.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lineclear.errors import BadInput

DATABASE = "LINECLEAR_DATABASE"
DEFAULT_DATABASE = "lineclear.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """A worker's times. ``LINECLEAR_BEAT_S`` and so on set them, in seconds."""

    beat_s: float = 10.0
    """How often leases are renewed."""
    lease_s: float = 60.0
    """How long a worker that still holds its lock may be without a beat before its runs are taken
    over.
    """
    grace_s: float = 60.0
    """How long jobs have to reach a safe point when the worker stops."""
    kill_s: float = 10.0
    """How long a process has to go after it said its end, or after TERM, before KILL."""
    host_jobs: int = 10_000
    """After how many jobs a host process is replaced."""
    host_mb: int = 1024
    """Above how many megabytes of memory it is, once a job of it has ended."""

    def __post_init__(self) -> None:
        for name, value in (("beat_s", self.beat_s), ("lease_s", self.lease_s)):
            if not value > 0:
                raise BadInput(name, f"{name} must be more than 0 seconds, not {value:g}.")
        for name, value in (("grace_s", self.grace_s), ("kill_s", self.kill_s)):
            if not value >= 0:
                raise BadInput(name, f"{name} cannot be negative ({value:g} s).")
        for name, count in (("host_jobs", self.host_jobs), ("host_mb", self.host_mb)):
            if count < 1:
                raise BadInput(name, f"{name} must be 1 or more, not {count}.")
        if self.lease_s < 3 * self.beat_s:
            raise BadInput(
                "lease_s",
                f"A lease of {self.lease_s:g} s is under three beats of {self.beat_s:g} s.",
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Raises ``BadInput`` naming the variable that is no number."""
        given = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for field in fields(cls):
            variable = f"LINECLEAR_{field.name.upper()}"
            if variable in given:
                values[field.name] = _number(variable, given[variable], whole=field.type == "int")
        return cls(**values)


def _number(variable: str, text: str, *, whole: bool) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        what = "whole number" if whole else "number of seconds"
        raise BadInput(variable, f"{variable} must be a {what}, not {text!r}.") from None


def database_path(named: str | Path | None = None) -> Path:
    """The database: as named, else ``LINECLEAR_DATABASE``, else ``./lineclear.db``."""
    return Path(named or os.environ.get(DATABASE) or DEFAULT_DATABASE).resolve()
