"""What one stream has still to send. ``hub.py`` fills it, ``stream.py`` sends it.

It must never grow without bound, however slowly somebody reads.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from lineclear.web.changes import Public

BUFFER_BYTES = 1024 * 1024


class Shared(Protocol):
    """What a stream has in common with others."""

    def snapshot(self, me: str | None) -> bytes: ...

    def words(self, data: Public, me: str | None) -> Public: ...


class Subscriber:
    """One stream: what it has not sent yet, bounded."""

    def __init__(self, channel: Shared, *, browser: str, me: str | None) -> None:
        self.browser, self.me = browser, me
        self._channel = channel
        self.changed = asyncio.Event()
        """Set when the journal has new lines."""
        self._chunks: list[bytes] = []
        self._log = self._last = b""
        self._behind = self._over = False
        self._ready, self._log_taken = asyncio.Event(), asyncio.Event()

    def put(self, chunk: bytes) -> None:
        """What does not fit is dropped, with all before it: a snapshot takes its place."""
        if self._behind or self._over:
            return
        self._chunks.append(chunk)
        if len(self._chunks) > 1 and sum(map(len, self._chunks)) > BUFFER_BYTES:
            self._chunks.clear()
            self._behind = True
        self._ready.set()

    def put_log(self, chunk: bytes) -> None:
        """One part of a log; the next only once ``log_taken`` has come back."""
        self._log = chunk
        self._log_taken.clear()
        self._ready.set()

    async def log_taken(self) -> None:
        await self._log_taken.wait()

    def end(self, last: bytes = b"") -> None:
        """Send what is there, then ``last``, then no more."""
        if not self._over:
            self._over, self._last = True, last
            self._ready.set()

    async def next(self) -> bytes | None:
        """What to send now; ``None`` at the end."""
        while True:
            if self._behind:
                self._behind = False
                self._chunks.append(self._channel.snapshot(self.me))
            parts = [*self._chunks, self._log]
            self._chunks, self._log = [], b""
            self._log_taken.set()
            if self._over:
                parts.append(self._last)
                self._last = b""
            if sent := b"".join(parts):
                return sent
            if self._over:
                return None
            self._ready.clear()
            await self._ready.wait()

    def words(self, data: Public) -> Public:
        return self._channel.words(data, self.me)
