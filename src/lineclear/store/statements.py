"""Loads ``statements.sql``: named statements, the same text for every engine, with the engine's
fragments filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files

from lineclear.job import Job

COMPUTED = {"beat_age_ms", "moved_age_ms", "worker_alive"}
JOB_COLUMNS = tuple(f.name for f in fields(Job) if f.name not in COMPUTED)

_NAME = re.compile(r"^-- name: (\w+)$")


def load_statements(fragments: Mapping[str, str]) -> dict[str, str]:
    """Every statement by its name, with ``{fragment}`` replaced.

    Raises:
        ValueError: a name stands twice, or a statement names a fragment that does not exist.
    """
    known = {
        "job": ", ".join(JOB_COLUMNS),
        "brief": ", ".join(_brief(c) for c in JOB_COLUMNS),
        "lean": ", ".join(_lean(c) for c in JOB_COLUMNS),
    }
    known |= fragments
    statements: dict[str, str] = {}
    name = ""
    for line in files(__package__).joinpath("statements.sql").read_text("utf-8").splitlines():
        if match := _NAME.match(line):
            name = match.group(1)
            if name in statements:
                raise ValueError(f"statements.sql names {name!r} twice")
            statements[name] = ""
        elif name and not line.startswith("--"):
            statements[name] += line + "\n"
    return {name: _fill(name, text, known) for name, text in statements.items()}


def _brief(column: str) -> str:
    return f"{column}_brief AS {column}" if column in ("args", "result") else column


def _lean(column: str) -> str:
    # A literal: even a substr of nothing would read a large value whole.
    return f"'' AS {column}" if column in ("args", "result") else column


def _fill(name: str, text: str, fragments: Mapping[str, str]) -> str:
    def fragment(match: re.Match[str]) -> str:
        if match.group(1) not in fragments:
            raise ValueError(f"statement {name!r} names an unknown fragment {match.group(0)}")
        return fragments[match.group(1)]

    return re.sub(r"\{(\w+)\}", fragment, text).strip()
