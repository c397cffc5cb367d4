"""The end of the socket to the supervisor that a job's process holds.

child.py and host.py say what becomes of what they are told; the contexts ask their questions here.
It reads and writes the bare descriptor, since importing ``socket`` takes time at every start. It
never raises into a task because the supervisor is gone: it ends the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from lineclear import wire
from lineclear.errors import Refused

EXIT_NO_SUPERVISOR = 76
EXIT_BAD_MESSAGE = 77
READ_BYTES = 256 * 1024


class SocketLink:
    """This process's end of the socket. One thread reads; any thread may send or ask."""

    def __init__(self, descriptor: int) -> None:
        self.is_open = True
        self._descriptor = descriptor
        self._reader = wire.Reader()
        self._lock = threading.Lock()
        self._asked = 0
        self._waiting: dict[int, Callable[[wire.Answer], None]] = {}

    def told(self, message: wire.Run | wire.Stop) -> None:
        """The supervisor wants something. Called by the thread that reads."""
        raise NotImplementedError

    def supervisor_gone(self) -> None:
        """Its end of the socket is closed. Nothing is read after this."""
        os._exit(EXIT_NO_SUPERVISOR)

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
            self.supervisor_gone()

    def put(self, question: wire.Question, heard: Callable[[wire.Answer], None], /) -> None:
        """Send a question; ``heard`` gets the answer, in the thread that reads."""
        if not self.is_open:
            raise Refused("a forked copy of the run's process cannot speak for the run")
        with self._lock:
            self._asked += 1
            re = self._asked
        self._waiting[re] = heard
        try:
            self.send(question._replace(re=re))
        except BaseException:
            del self._waiting[re]
            raise

    def ask(self, question: wire.Question, /) -> wire.Answer:
        """Send a question and wait for its answer."""
        answered = threading.Event()
        answers: list[wire.Answer] = []

        def heard(answer: wire.Answer) -> None:
            answers.append(answer)
            answered.set()

        self.put(question, heard)
        answered.wait()
        return answers[0]

    def keep_reading(self) -> None:
        """The reader thread."""
        while self.is_open and self.pump():
            pass

    def forked(self) -> None:
        """In a forked copy of the process: let go of the socket, so that only one speaks."""
        if self.is_open:
            self.is_open = False
            os.close(self._descriptor)

    def pump(self) -> bool:
        """Take what comes next. False once the supervisor is gone."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self.supervisor_gone()
            return False
        try:
            messages = self._reader.feed(data)
        except (wire.WireError, wire.MessageTooLarge) as error:
            os.write(2, f"{error}\n".encode(errors="backslashreplace"))
            os._exit(EXIT_BAD_MESSAGE)
        for message in messages:
            match message:
                case wire.Run() | wire.Stop():
                    self.told(message)
                case wire.Answer() if message.re in self._waiting:
                    self._waiting.pop(message.re)(message)
                case _:
                    pass  # what a supervisor never says
        return True
