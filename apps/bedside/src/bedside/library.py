"""The library: which books there are, which chapters are rendered, where every sentence stands. One
SQLite file.

The order that makes a crash at any instruction harmless, kept by ``render``:
  1. ``forget_chapter``: a row that no longer fits the text or the voice goes, with its passages;
  2. the audio file is published by one rename;
  3. ``publish_chapter``: row and passages in one transaction;
  4. the engine records the step; the pieces are removed.
Dying before 3 leaves a file that no row names (invisible, replaced by the next run); dying after 3
leaves a chapter that
the next run finds whole. A row never stands beside a file of another render.

Statuses are ``pending``, ``rendering`` and ``done``. Only done is stored: whether a book renders
now is what the queue says when somebody looks, so a dead render never reads as a living one.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Self

from bedside.book import BedsideError, Book
from bedside.rows import Added, BookRow, ChapterRow, Hit, Rendered

VERSION = 1
_BUSY_S = 10.0


class LibraryError(BedsideError):
    """The library cannot be used."""


class NoSuchBook(BedsideError):
    """No book has that number."""


@dataclass(slots=True)
class Library:
    """The books below one home folder. One connection; use it from one thread."""

    home: Path
    connection: sqlite3.Connection

    @classmethod
    def open(cls, home: Path) -> Self:
        """The library in ``home``, made or brought up to date if need be."""
        try:
            home.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(home / "bedside.db", timeout=_BUSY_S, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise LibraryError(
                f"the library in {home} cannot be opened: {error}; check that it may be written"
            ) from error
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA foreign_keys = ON")
            library = cls(home, connection)
            library._migrate()
        except sqlite3.Error as error:
            connection.close()
            raise LibraryError(
                f"{home / 'bedside.db'} cannot be used as a library: {error}"
            ) from error
        except LibraryError:
            connection.close()
            raise
        return library

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def _version(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    def _migrate(self) -> None:
        if self._version() > VERSION:
            raise LibraryError(
                f"the library in {self.home} was made by a newer Bedside; update this one"
            )
        if self._version() == VERSION:
            return
        schema = (resources.files("bedside") / "schema.sql").read_text("utf-8")
        with self._writing():
            # Somebody else may have made it while this one waited for the lock.
            if self._version() < VERSION:
                for statement in _statements(schema):
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA user_version = {VERSION}")

    # Books

    def add(
        self, source: str, title: str, *, file: str | None = None, book: Book | None = None
    ) -> Added:
        """The book of this source, new or already there. ``book`` is what was read in it (B04)."""
        with self._writing():
            there = self.connection.execute(
                "SELECT id FROM book WHERE source = ?", (source,)
            ).fetchone()
            if there is None:
                self.connection.execute(
                    "INSERT INTO book (source, file, title, added_ms) VALUES (?, ?, ?, ?)",
                    (source, file, title, time.time_ns() // 1_000_000),
                )
            row = self.connection.execute(
                "SELECT id FROM book WHERE source = ?", (source,)
            ).fetchone()
            if book is not None:
                self._tell(row["id"], book)
        return Added(self.get(row["id"]), new=there is None)

    def get(self, number: int) -> BookRow:
        row = self.connection.execute(f"{_BOOK} WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise NoSuchBook(f"there is no book {number}; `bedside list` shows the books")
        return BookRow.of(row)

    def books(self) -> list[BookRow]:
        return [BookRow.of(row) for row in self.connection.execute(f"{_BOOK} ORDER BY id")]

    def fetched(self, number: int, file: str) -> None:
        """The book's file is in the home now."""
        with self._writing():
            self.connection.execute("UPDATE book SET file = ? WHERE id = ?", (file, number))

    def parsed(self, number: int, book: Book) -> None:
        """Write what reading the file told, before anything is spoken (B04)."""
        with self._writing():
            self._tell(number, book)

    def _tell(self, number: int, book: Book) -> None:
        self.connection.execute(
            "UPDATE book SET title = ?, author = ?, language = ?, chapters_total = ?, "
            "characters_total = ?, warnings = ? WHERE id = ?",
            (book.title, book.author, book.language, len(book.chapters), book.characters,
             json.dumps(book.warnings), number),
        )  # fmt: skip

    def begin(self, number: int, voice: str) -> None:
        """A render in ``voice`` starts: the book is played in it from now on, and is not done."""
        with self._writing():
            self.connection.execute(
                "UPDATE book SET voice = ?, done_ms = NULL WHERE id = ?", (voice, number)
            )

    def finish(self, number: int) -> None:
        with self._writing():
            now = time.time_ns() // 1_000_000
            self.connection.execute("UPDATE book SET done_ms = ? WHERE id = ?", (now, number))

    # Chapters and passages

    def has_chapter(self, number: int, voice: str, chapter: int, digest: str) -> bool:
        """Whether that chapter is whole: its row says this digest and its file is as long as the
        row says.
        """
        row = self.connection.execute(
            "SELECT file, bytes FROM chapter "
            "WHERE book = ? AND voice = ? AND number = ? AND digest = ?",
            (number, voice, chapter, digest),
        ).fetchone()
        if row is None:
            return False
        try:
            return bool((self.home / row["file"]).stat().st_size == row["bytes"])
        except OSError:
            return False

    def forget_chapter(self, number: int, voice: str, chapter: int) -> None:
        """Remove the row and the passages, before the file is replaced."""
        with self._writing():
            self._forget(number, voice, chapter)

    def _forget(self, number: int, voice: str, chapter: int) -> None:
        # Passages first: a cascade would not fire the trigger that keeps the word index in step.
        at = (number, voice, chapter)
        self.connection.execute(
            "DELETE FROM passage WHERE book = ? AND voice = ? AND chapter = ?", at
        )
        self.connection.execute(
            "DELETE FROM chapter WHERE book = ? AND voice = ? AND number = ?", at
        )

    def publish_chapter(self, made: Rendered) -> None:
        """Write row and passages of a chapter whose audio is published; replaces what was there
        (B05).
        """
        with self._writing():
            self._forget(made.book, made.voice, made.number)
            self.connection.execute(
                "INSERT INTO chapter (book, voice, number, title, characters, digest, file, bytes, "
                "samples, rate, warnings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (made.book, made.voice, made.number, made.title, made.characters, made.digest,
                 made.file, made.bytes, made.samples, made.rate, json.dumps(made.warnings)),
            )  # fmt: skip
            self.connection.executemany(
                "INSERT INTO passage (book, voice, chapter, ordinal, text, start_ms, end_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        made.book,
                        made.voice,
                        made.number,
                        ordinal,
                        span.text,
                        span.start_ms,
                        span.end_ms,
                    )
                    for ordinal, span in enumerate(made.spans)
                ),
            )

    def chapters(self, book: BookRow) -> list[ChapterRow]:
        """The rendered chapters in the book's voice, with their place on the book's timeline."""
        rows = self.connection.execute(
            "SELECT * FROM chapter_timeline WHERE book = ? AND voice = ? ORDER BY number",
            (book.id, book.voice),
        )
        return [ChapterRow.of(row) for row in rows]

    def passages(self, book: BookRow) -> list[Hit]:
        """Every sentence of the book, in milliseconds from the start of the book (B02)."""
        rows = self.connection.execute(
            f"{_HIT} FROM passage {_PLACE} WHERE passage.book = ? AND passage.voice = ? "
            "ORDER BY passage.chapter, passage.ordinal",
            (book.id, book.voice),
        )
        return [Hit(*row) for row in rows]

    def search(self, words: str, *, limit: int = 20) -> list[Hit]:
        """The passages with all these words, best first. Other voices than a book's own are not
        searched.
        """
        wanted = " ".join(f'"{word}"' for word in re.findall(r"[\w’']+", words))
        if not wanted:
            raise BedsideError("say at least one word to search for")
        rows = self.connection.execute(
            f"{_HIT} FROM passage_words JOIN passage ON passage.id = passage_words.rowid {_PLACE} "
            "WHERE passage_words MATCH ? ORDER BY rank LIMIT ?",
            (wanted, limit),
        )
        return [Hit(*row) for row in rows]


_BOOK = "SELECT * FROM book"
_HIT = (
    "SELECT book.id, book.title, passage.chapter, place.title, passage.text, "
    "place.start_ms + passage.start_ms, place.start_ms + passage.end_ms"
)
_PLACE = (
    "JOIN book ON book.id = passage.book AND book.voice = passage.voice "
    "JOIN chapter_timeline AS place ON place.book = passage.book AND place.voice = passage.voice "
    "AND place.number = passage.chapter"
)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger's own semicolons do not end it."""
    so_far = ""
    for line in script.splitlines(keepends=True):
        so_far += line
        if sqlite3.complete_statement(so_far):
            yield so_far
            so_far = ""
