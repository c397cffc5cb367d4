"""What can be set for a worker, each with its reason. From the environment; the command line may
override.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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

    def __post_init__(self) -> None:
        for name, value in (("beat_s", self.beat_s), ("lease_s", self.lease_s)):
            if not value > 0:
                raise BadInput(name, f"{name} must be more than 0 seconds, not {value:g}.")
        for name, value in (("grace_s", self.grace_s), ("kill_s", self.kill_s)):
            if not value >= 0:
                raise BadInput(name, f"{name} cannot be negative ({value:g} s).")
        if self.lease_s < 3 * self.beat_s:
            raise BadInput(
                "lease_s",
                f"A lease of {self.lease_s:g} s is under three beats of {self.beat_s:g} s.",
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Raises ``BadInput`` naming the variable that is no number."""
        values = {}
        for name in ("beat_s", "lease_s", "grace_s", "kill_s"):
            variable = f"LINECLEAR_{name.upper()}"
            text = (os.environ if environment is None else environment).get(variable)
            if text is not None:
                values[name] = _number(variable, text)
        return cls(**values)


def _number(variable: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(variable, f"{variable} must be a number of seconds, not {text!r}.") from None


def database_path(named: str | Path | None = None) -> Path:
    """The database: as named, else ``LINECLEAR_DATABASE``, else ``./lineclear.db``."""
    return Path(named or os.environ.get(DATABASE) or DEFAULT_DATABASE).resolve()
