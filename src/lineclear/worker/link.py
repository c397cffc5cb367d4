"""The child's end of the socket to its supervisor.

Made by worker.child, used by context.py as its ``Link``. It reads and writes the bare descriptor,
since importing ``socket`` takes time at every start. It never raises into a task because the
supervisor is gone: it ends the process.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from lineclear import wire
from lineclear.errors import Refused

if TYPE_CHECKING:
    from lineclear.context import Context

EXIT_NO_SUPERVISOR = 76
EXIT_BAD_MESSAGE = 77
READ_BYTES = 256 * 1024


class SocketLink:
    """This process's end of the socket. One thread reads; any thread may send or ask."""

    def __init__(self, descriptor: int) -> None:
        self.run: wire.Run | None = None
        self.context: Context | None = None
        self._descriptor = descriptor
        self._reader = wire.Reader()
        self._lock = threading.Lock()
        self._asked = 0
        self._waiting: dict[int, tuple[threading.Event, list[wire.Answer]]] = {}
        self._early_stop: wire.Stop | None = None
        self.is_open = True
        self.leaving = False

    def send(self, message: wire.Message, /) -> None:
        """Write one message, whole. Nothing is sent from a forked copy."""
        data = memoryview(wire.encode(message))
        if not self.is_open:
            return
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._descriptor, data) :]
        except (BrokenPipeError, ConnectionResetError):
            self._supervisor_gone()

    def ask(self, question: wire.Question, /) -> wire.Answer:
        """Send a question and wait for its answer."""
        if not self.is_open:
            raise Refused("a forked copy of the run's process cannot speak for the run")
        with self._lock:
            self._asked += 1
            re = self._asked
        answered = threading.Event()
        answers: list[wire.Answer] = []
        self._waiting[re] = (answered, answers)
        try:
            self.send(question._replace(re=re))
            answered.wait()
        finally:
            del self._waiting[re]
        return answers[0]

    def wait_for_run(self) -> wire.Run:
        while self.run is None:
            self._pump()
        return self.run

    def keep_reading(self) -> None:
        """The reader thread."""
        while self.is_open:
            self._pump()

    def attach(self, context: Context) -> None:
        """From now on stops go to ``context``; one that came earlier is handed on."""
        self.context = context
        if self._early_stop is not None:
            context.stop(self._early_stop)

    def forked(self) -> None:
        """In a forked copy of the process: let go of the socket, so that only one speaks."""
        if self.is_open:
            self.is_open = False
            os.close(self._descriptor)
        if self.context is not None:
            self.context.forked()

    def _pump(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self._supervisor_gone()
        try:
            messages = self._reader.feed(data)
        except (wire.WireError, wire.MessageTooLarge) as error:
            os.write(2, f"{error}\n".encode(errors="backslashreplace"))
            os._exit(EXIT_BAD_MESSAGE)
        for message in messages:
            self._take(message)

    def _take(self, message: wire.Message) -> None:
        match message:
            case wire.Run():
                self.run = message
            case wire.Stop() if self.context is not None:
                self.context.stop(message)
            case wire.Stop():
                self._early_stop = message
            case wire.Answer() if message.re in self._waiting:
                answered, answers = self._waiting[message.re]
                answers.append(message)
                answered.set()

    def _supervisor_gone(self) -> NoReturn:
        if self.leaving:
            sys.exit()  # ends the reader thread only; the process is on its own way out
        os._exit(EXIT_NO_SUPERVISOR)
