"""A run's log, the writing side: what its processes print, put down by the supervisor.

The form is logreader.py's. Undecodable bytes are replaced, control characters but the tab are
written ``\\xNN``, of a line that overwrites itself with ``\\r`` only the last state is kept, and a
line is cut every 4,096 characters.

The log is two halves, ``<path>.1`` the older: memory and disk stay bounded whatever a task prints.
Writing never raises: what cannot be written is counted, and said once writing works again. The
folder must exist.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from lineclear.clock import Clock, SystemClock
from lineclear.worker.logreader import STREAMS, Stream, older_half

LINE_LIMIT = 4096
"""Characters of one record's text, control characters counted as written."""

TAIL_LINES = 20
HALF_BYTES = 8 * 1024 * 1024
_BLOCK = 65536

_CONTROL = {
    code: f"\\x{code:02x}" for code in (*range(9), *range(11, 13), *range(14, 32), *range(127, 160))
}
_ANY_CONTROL = re.compile(f"[{re.escape(''.join(map(chr, _CONTROL)))}]")


@dataclass(slots=True)
class _Part:
    """What one stream has not finished: bytes of a character, the line so far. Both are small."""

    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    line: str = ""
    cut: bool = False


class JobLog:
    """The writing side, one for each attempt. ``lost`` counts records that could not be written,
    ``fed`` the bytes that came.
    """

    def __init__(
        self,
        path: Path,
        *,
        limit_bytes: int = HALF_BYTES,
        mode: int = 0o600,
        clock: Clock | None = None,
    ) -> None:
        self._path, self._limit, self._mode = path, limit_bytes, mode
        self._clock = clock or SystemClock()
        self._parts = {stream: _Part() for stream in STREAMS}
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._descriptor = -1
        self._size = self._dropped = 0
        self._closed = False
        self._unsaid, self._why = 0, ""
        self.lost = self.fed = 0

    def feed(self, stream: Stream, chunk: bytes) -> None:
        """Take some raw bytes as they came. Never raises and keeps at most a line of them."""
        if self._closed:
            return
        self.fed += len(chunk)
        for at in range(0, len(chunk), _BLOCK):
            part = self._parts[stream]
            self._take(stream, part.decoder.decode(chunk[at : at + _BLOCK]))

    def note(self, sentence: str) -> None:
        """A line of Line Clear's own."""
        self.feed("l", sentence.encode(errors="replace") + b"\n")

    def tail(self) -> list[str]:
        """The last lines printed, for an error's sentence; after ``close`` unfinished ones too."""
        return list(self._tail)

    def close(self) -> None:
        """Write the unfinished lines and let go of the file. Twice is harmless."""
        if self._closed:
            return
        for stream, part in self._parts.items():
            self._take(stream, part.decoder.decode(b"", final=True))
            if part.line.rstrip("\r"):
                self._take(stream, "\n")
        self._closed = True
        self._let_go()

    def _take(self, stream: Stream, text: str) -> None:
        part = self._parts[stream]
        if _ANY_CONTROL.search(text):
            text = text.translate(_CONTROL)
        *lines, rest = (part.line + text).split("\n")
        if "\r" in part.line or "\r" in text:
            lines = [_last_state(line) for line in lines]
            rest = _last_state(rest) + ("\r" if rest.endswith("\r") else "")
        pieces: list[tuple[str, str]] = []
        for line in lines:
            pieces += _cut(stream, line, goes_on=part.cut)
            part.cut = False
        if len(rest) > LINE_LIMIT:
            *whole, (_, rest) = _cut(stream, rest, goes_on=part.cut)
            pieces += whole
            part.cut = True
        part.line = rest
        if not pieces:
            return
        if stream != "l":
            self._tail.extend(piece for _, piece in pieces[-TAIL_LINES:])
        now = self._clock.now_ms()
        self._write("".join([f"{now} {letter} {piece}\n" for letter, piece in pieces]).encode())

    def _write(self, data: bytes) -> None:
        if self._unsaid:
            data = self._note(f"{self._unsaid} lines could not be written here: {self._why}") + data
        while data:
            part = data[: self._room(data)]
            data = data[len(part) :]
            try:
                self._append(part)
            except OSError as error:
                count = part.count(b"\n") + data.count(b"\n") - bool(self._unsaid)
                self._unsaid, self.lost = self._unsaid + count, self.lost + count
                self._why = error.strerror or str(error)
                return
            self._unsaid = 0

    def _room(self, data: bytes) -> int:
        """How much of it, in whole records, goes here; one record where that begins a new half."""
        room = self._limit - self._size
        if len(data) <= room:
            return len(data)
        return data.rfind(b"\n", 0, max(room, 0)) + 1 or data.find(b"\n") + 1

    def _append(self, part: bytes) -> None:
        if self._descriptor < 0:
            self._open()
        if self._size and self._size + len(part) > self._limit:
            self._rotate()
        written = os.write(self._descriptor, part)
        if written < len(part):  # no torn record may stay before the next one
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += written

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, self._mode)
        self._size = os.fstat(self._descriptor).st_size

    def _rotate(self) -> None:
        older = older_half(self._path)
        dropped = older.stat().st_size if older.exists() else 0
        self._path.replace(older)
        self._let_go()
        self._open()
        self._dropped += dropped
        if self._dropped:
            kept = f"this log keeps its last {2 * self._limit:,} bytes"
            self._append(
                self._note(f"Earlier output was dropped ({self._dropped:,} bytes): {kept}")
            )

    def _note(self, sentence: str) -> bytes:
        return f"{self._clock.now_ms()} l {sentence}\n".encode()

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)


def _last_state(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def _cut(stream: Stream, line: str, *, goes_on: bool) -> list[tuple[str, str]]:
    first = stream.upper() if goes_on else stream
    if len(line) <= LINE_LIMIT:
        return [(first, line)]
    starts = range(0, len(line), LINE_LIMIT)
    return [(stream.upper() if at else first, line[at : at + LINE_LIMIT]) for at in starts]


def pump(source: FileIO, log: JobLog, stream: Stream, *, most_bytes: int = 4 * _BLOCK) -> bool:
    """Move what is there from a pipe that does not block into the log. False at its end."""
    for _ in range(0, most_bytes, _BLOCK):
        chunk = source.read(_BLOCK)
        if chunk is None:
            return True
        if not chunk:
            return False
        log.feed(stream, chunk)
    return True
