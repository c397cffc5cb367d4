"""The supervisor's end of the socket to a job's process: messages out, messages in."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Self

from lineclear import wire

READ_BYTES = 256 * 1024


class Line:
    """Open inside its ``async with`` block."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._messages = wire.Reader()

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        # Not close(): what is unsent has no reader, and would keep the descriptor in the loop.
        self._writer.transport.abort()

    def send(self, message: wire.Message) -> None:
        """Never waits. What is sent to a process that has ended is lost."""
        if not self._writer.is_closing():
            self._writer.write(wire.encode(message))

    async def drain(self) -> None:
        """Wait until most of it is sent, or can be sent no more."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def finish(self) -> None:
        """Nothing more will be said: the other side reads the end."""
        if not self._writer.is_closing():
            self._writer.write_eof()

    async def messages(self) -> AsyncIterator[wire.Message]:
        """Until the other end is closed. Raises ``WireError``, ``MessageTooLarge`` for nonsense."""
        while data := await self._reader.read(READ_BYTES):
            for message in self._messages.feed(data):
                yield message
