"""What the library answers with. Frozen data; imports only what sound measured."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Self

from bedside.sound import Span


@dataclass(frozen=True, slots=True)
class BookRow:
    """One book as the library knows it. Totals are ``None`` until its text was read."""

    id: int
    source: str
    file: str | None
    title: str
    author: str
    language: str
    voice: str | None
    chapters_total: int | None
    characters_total: int | None
    warnings: tuple[str, ...]
    added_ms: int
    done_ms: int | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> Self:
        return cls(**{**dict(row), "warnings": tuple(json.loads(row["warnings"]))})


@dataclass(frozen=True, slots=True)
class Added:
    """A book, and whether it came into the library just now."""

    book: BookRow
    new: bool


@dataclass(frozen=True, slots=True)
class ChapterRow:
    """One rendered chapter; ``start_ms`` is from the start of the book."""

    number: int
    title: str
    characters: int
    file: str
    samples: int
    rate: int
    start_ms: int
    duration_ms: int
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, row: sqlite3.Row) -> Self:
        return cls(
            number=row["number"],
            title=row["title"],
            characters=row["characters"],
            file=row["file"],
            samples=row["samples"],
            rate=row["rate"],
            start_ms=row["start_ms"],
            duration_ms=row["duration_ms"],
            warnings=tuple(json.loads(row["warnings"])),
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A chapter whose audio has just been published."""

    book: int
    voice: str
    number: int
    title: str
    characters: int
    digest: str
    file: str
    bytes: int
    samples: int
    rate: int
    spans: tuple[Span, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One sentence and its place on the book's timeline."""

    book: int
    book_title: str
    chapter: int
    chapter_title: str
    text: str
    start_ms: int
    end_ms: int
