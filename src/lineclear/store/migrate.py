"""Brings a SQLite file to the newest schema: each step and its record in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from lineclear.errors import StoreRefused

APPLICATION_ID = 0x4C434C52
"""Marks a SQLite file as ours ("LCLR")."""


def migrations() -> list[tuple[int, str]]:
    """(number, script) of every step, in order."""
    folder = files(__package__).joinpath("schema", "sqlite")
    scripts = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), folder.joinpath(name).read_text("utf-8")) for name in scripts]


def newest() -> int:
    """The schema number this program writes."""
    return migrations()[-1][0]


def refuse_strangers(connection: sqlite3.Connection, path: str) -> int:
    """The schema number of a file that is ours or empty.

    Raises:
        StoreRefused: the file belongs to another program, or to a newer Line Clear.
    """
    number = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (owner or tables):
        raise StoreRefused(
            f"{path} is a database of another program. Name another file with --database."
        )
    if number > newest():
        raise StoreRefused(
            f"{path} was written by a newer Line Clear (schema {number}, this one knows "
            f"{newest()}). Install the newer version; nothing was changed."
        )
    return number


def file_id(path: Path) -> tuple[int, int] | None:
    """Which file is there, whatever its name; ``None`` where there is none."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def refuse_another(path: Path, opened: tuple[int, int] | None) -> None:
    """Writing to a deleted file succeeds, and is lost.

    Raises:
        StoreRefused: ``path`` is not the file any more that was ``opened``.
    """
    if opened is not None and file_id(path) != opened:
        raise StoreRefused(
            f"{path} was moved, deleted or replaced while it was in use. Nothing was changed; put "
            "it back, or start again."
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing. The connection is inside ``BEGIN IMMEDIATE``; the caller commits."""
    number = int(connection.execute("PRAGMA user_version").fetchone()[0])
    for step, script in migrations():
        if step > number:
            for statement in statements_of(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def statements_of(script: str) -> Iterator[str]:
    """The statements of a script, cut where SQLite itself says that one is complete."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip() and not all(row.startswith("--") for row in statement.split("\n") if row):
        raise ValueError(f"a migration ends in the middle of a statement: {statement[:80]!r}")
