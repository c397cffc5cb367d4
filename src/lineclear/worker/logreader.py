"""A run's log, the reading side: for the command line and the page, also while it is written.

One record a line: ``<epoch ms> <letter> <text>``, UTF-8. The letter is ``o`` (standard output),
``e`` (standard error) or ``l`` (Line Clear's own notes); in upper case the text goes on where that
stream's record before it was cut. ``<path>.1`` holds the older half.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

Stream = Literal["o", "e", "l"]
STREAMS: tuple[Stream, ...] = ("o", "e", "l")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One record. ``continued``: its text goes on where that stream's line before was cut."""

    at_ms: int
    stream: Stream
    text: str
    continued: bool = False


def older_half(path: Path) -> Path:
    return path.with_name(path.name + ".1")


class LogReader:
    """Reads a log while it is written, over both halves and past each change of halves.

    It begins with the last ``last`` lines, at a ``position``, or with all there are. What was
    dropped before it could be read is missing (the next half's first line says so); nothing comes
    twice. ``dropped``: the position's half is gone, so it begins with the oldest line kept.
    """

    def __init__(
        self,
        path: Path,
        *,
        last: int | None = None,
        at: str | None = None,
        most_bytes: int = 1024 * 1024,
    ) -> None:
        self._path, self._most = path, most_bytes
        self._descriptor, self._offset = -1, 0
        self.dropped = False
        if at is not None:
            self.dropped = not self._go_to(at)
        elif last is not None:
            self._begin(last)

    @property
    def position(self) -> str:
        """Where the next record begins: opaque, for ``at``; empty while there is no log."""
        return "" if self._descriptor < 0 else f"{_half(self._descriptor)}-{self._offset}"

    @property
    def earlier(self) -> str | None:
        """The position, where lines are kept before it."""
        older = _identity(older_half(self._path))
        first = self._descriptor < 0 or older in (None, _identity(self._descriptor))
        return None if first and not self._offset else self.position

    def read_new(self, most: int | None = None) -> list[LogLine]:
        """Whole records not read before, ``most_bytes`` at most; none when there is nothing new."""
        lines = self._read(most)
        if not lines and (path := self._next()) is not None:
            lines = self._read(most)  # what was written just before the halves changed
            if not lines and self._hold(path):
                lines = self._read(most)
        return lines

    def read_back(self, most: int) -> list[LogLine]:
        """The records before the position, to whose beginning it goes back."""
        if self._descriptor < 0:
            return []
        lines = self._step_back(most)
        older = older_half(self._path)
        held = _identity(self._descriptor)
        if len(lines) < most and _identity(older) not in (None, held) and self._hold(older):
            self._offset = os.fstat(self._descriptor).st_size
            lines = self._step_back(most - len(lines)) + lines
        return lines

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, most: int | None) -> list[LogLine]:
        if self._descriptor < 0:
            return []
        block = os.pread(self._descriptor, self._most, self._offset)
        end = block.rfind(b"\n") + 1
        if not end and len(block) == self._most:
            end = len(block)  # no record is that long: this was not written by us
        if most is not None and len(lines := block[:end].split(b"\n", most)) > most:
            end -= len(lines[most])
        self._offset += end
        return _records(block[:end])

    def _step_back(self, most: int) -> list[LogLine]:
        end = self._offset
        self._offset, _ = _back(self._descriptor, most, end)
        return _records(os.pread(self._descriptor, end - self._offset, self._offset))

    def _go_to(self, position: str) -> bool:
        """Hold the half that a position names. Nothing to hold is no loss."""
        half, _, offset = position.rpartition("-")
        if not offset.isdecimal():
            return True
        for path in (self._path, older_half(self._path)):
            if self._hold(path) and half in (_half(self._descriptor), _half(self._descriptor, 0)):
                self._offset = min(int(offset), os.fstat(self._descriptor).st_size)
                return True
            self.close()
        return False

    def _next(self) -> Path | None:
        """The half after the one held, ``None`` while that is the newest."""
        held = _identity(self._descriptor) if self._descriptor >= 0 else None
        newest, older = _identity(self._path), _identity(older_half(self._path))
        if held is not None and newest in (None, held):
            return None
        return self._path if older in (None, held) else older_half(self._path)

    def _hold(self, path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        self.close()
        self._descriptor, self._offset = descriptor, 0
        return True

    def _begin(self, last: int) -> None:
        if not self._hold(self._path):
            return
        self._offset, found = _back(self._descriptor, last)
        newest = _identity(self._descriptor)
        older = older_half(self._path)
        if found < last and _identity(older) not in (None, newest) and self._hold(older):
            self._offset, _ = _back(self._descriptor, last - found)


def read_lines(path: Path, *, last: int | None = None) -> Iterator[LogLine]:
    """The log as it is now, or its last lines. Nothing where there is no log."""
    halves = [half for half in (older_half(path), path) if half.exists()]
    with LogReader(path, last=last) as reader:
        # A task may print faster than one reads: not longer than what was there, and a little.
        for _ in range(sum(half.stat().st_size for half in halves) // 65536 + 3):
            lines = reader.read_new()
            if not lines:
                return
            yield from lines


def _identity(where: Path | int) -> tuple[int, int] | None:
    try:
        seen = os.fstat(where) if isinstance(where, int) else where.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _half(descriptor: int, first_bytes: int = 200) -> str:
    """Names a half: by its first record too, since a file system gives a number again at once. An
    empty one has been just made, and has none.
    """
    first = os.pread(descriptor, first_bytes, 0).partition(b"\n")[0]
    return f"{os.fstat(descriptor).st_ino:x}-{zlib.crc32(first):x}"


def _back(descriptor: int, lines: int, end: int | None = None) -> tuple[int, int]:
    """Where the last ``lines`` records before ``end`` begin, and how many there are."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size if end is None else end, 0)
    at = data.rfind(b"\n")
    for found in range(lines):
        if at < 0:
            return 0, found
        at = data.rfind(b"\n", 0, at)
    return at + 1, lines


def _records(block: bytes) -> list[LogLine]:
    return [_parse(line) for line in block.decode(errors="replace").split("\n") if line]


def _parse(line: str) -> LogLine:
    at, _, rest = line.partition(" ")
    letter, _, text = rest.partition(" ")
    for stream in STREAMS:
        if at.isdecimal() and letter.lower() == stream:
            return LogLine(int(at), stream, text, continued=letter.isupper())
    return LogLine(0, "l", line)
