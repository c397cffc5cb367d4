"""Rows as aligned lines: in colour and cut to width on a terminal, whole and plain elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from lineclear.figures import printable
from lineclear.terms import WORDS
from lineclear.view import Picture, Row

COLOURS = {"muted": "2", "accent": "36", "ok": "32", "warn": "33", "bad": "31"}
NARROW = 60


def cells(text: str) -> int:
    """Columns a terminal needs for it."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def cut(text: str, width: int) -> str:
    """In at most ``width`` columns, with … where something is missing."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text}…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def width_of_terminal() -> int | None:
    """Columns, or ``None`` where the output is no terminal: then nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wants_colour(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not dumb


def coloured(text: str, tone: str, *, color: bool) -> str:
    return f"\x1b[{COLOURS[tone]}m{text}\x1b[0m" if color else text


def sections(seen: Picture) -> list[tuple[str, list[Row]]]:
    """The lists that have something in them, with their headings."""
    waiting = sum(lane.waiting for lane in seen.lanes)
    more = waiting - len(seen.waiting)
    heading = f"Waiting, the next {len(seen.waiting)} of {waiting:,}" if more > 0 else "Waiting"
    lists = [("Running", seen.running), (heading, seen.waiting), ("Last ended", seen.ended)]
    return [(name, rows) for name, rows in lists if rows]


class Table:
    """Columns wide enough for these rows: id, title, lane where there are several, the rest."""

    def __init__(self, rows: Sequence[Row], *, width: int | None, color: bool) -> None:
        self.width, self.color = width, color
        self.ids = max((len(str(row.job.id)) for row in rows), default=1)
        lanes = {row.job.lane for row in rows}
        narrow = width is not None and width < NARROW
        self.lanes = max(map(len, lanes)) if len(lanes) > 1 and not narrow else 0
        titles = max((cells(printable(row.job.name)) for row in rows), default=1)
        self.titles = titles if width is None else min(titles, max(12, width // 3))

    def line(self, row: Row, *, progress: bool = True) -> tuple[str, str, str]:
        """What stands before the state's word, the word, and what stands after it; without the
        progress where that has a line of its own.
        """
        title = pad(cut(printable(row.job.name), self.titles), self.titles)
        head = f"{WORDS[row.seen][1]} {row.job.id:>{self.ids}}  {title}  "
        if self.lanes:
            head += f"{pad(row.job.lane, self.lanes)}  "
        tail = f" · {row.detail}" if row.detail else ""
        if progress and row.progress and not row.job.ended and row.job.started_ms is not None:
            tail += f" · {row.progress}"
        if progress and row.job.note and not row.job.ended and (self.width or 200) > 110:
            tail += f" · {printable(row.job.note)}"
        if self.width is not None:
            tail = cut(tail, max(0, self.width - cells(head) - cells(row.word)))
        return head, row.word, tail

    def text(self, row: Row) -> str:
        head, word, tail = self.line(row)
        return f"{head}{coloured(word, WORDS[row.seen][2], color=self.color)}{tail}"
