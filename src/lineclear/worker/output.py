"""Where what a host's jobs print goes: each line to the job that printed it.

Made by host.py. Who prints is known by a context variable, which coroutines, their tasks and
``asyncio.to_thread`` carry on. What no job can be told for (threads that a task starts by itself,
programs, code below Python) stays on the process's own output, which is the lane's host log.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Literal

Stream = Literal["o", "e"]

HELD_BYTES = 8192
"""What a line may have before it is passed on in parts."""

DESCRIPTORS: dict[Stream, int] = {"o": 1, "e": 2}


class Printer:
    """What one job prints, passed on by whole lines."""

    def __init__(self, send: Callable[[Stream, str], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._rest: dict[Stream, bytes] = {"o": b"", "e": b""}
        self.is_open = True

    def write(self, stream: Stream, data: bytes) -> None:
        with self._lock:
            data = self._rest[stream] + data
            end = len(data) if len(data) > HELD_BYTES else data.rfind(b"\n") + 1
            self._pass_on(stream, data[:end])
            self._rest[stream] = data[end:]

    def flush(self) -> None:
        with self._lock:
            for stream, rest in self._rest.items():
                self._pass_on(stream, rest)
                self._rest[stream] = b""

    def close(self) -> None:
        """The job is over: what still prints in its name is nobody's."""
        self.flush()
        self.is_open = False

    def _pass_on(self, stream: Stream, data: bytes) -> None:
        if data:
            self._send(stream, data.decode(errors="replace"))


printing: ContextVar[Printer | None] = ContextVar("lineclear_printing", default=None)


class _Routed(io.RawIOBase):
    """A standard stream that asks at each write whose it is."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = bytes(data)
        printer = printing.get()
        if printer is not None and printer.is_open:
            printer.write(self._stream, data)
        else:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self.fileno(), rest) :]
        return len(data)

    def flush(self) -> None:
        printer = printing.get()
        if printer is not None and printer.is_open:
            printer.flush()

    def fileno(self) -> int:
        return DESCRIPTORS[self._stream]

    def writable(self) -> bool:
        return True


def route() -> None:
    """From now on ``sys.stdout`` and ``sys.stderr`` belong to whoever writes."""
    for stream, name in (("o", "stdout"), ("e", "stderr")):
        setattr(sys, name, io.TextIOWrapper(  # its own buffer would mix what two jobs print
            _Routed(stream), encoding="utf-8", errors="backslashreplace", write_through=True  # type: ignore[arg-type]
        ))  # fmt: skip
