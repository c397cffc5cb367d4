"""The bell within one process, for tests and for a worker inside a program. No files.

Each user makes its own beside another's (``LocalBell(beside=first)``), as each process opens its
own ``UnixBell``; that tells a worker's own writes from others'. No other process hears it.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Collection
from contextlib import suppress

from lineclear.bell import Room


class LocalBell:
    """One user's hold on a bell that all bells beside it share."""

    def __init__(self, *, beside: LocalBell | None = None) -> None:
        self.listeners: list[LocalListener] = beside.listeners if beside else []

    def take(self, rooms: Collection[Room]) -> LocalRope:
        return LocalRope(self, rooms)

    def listen(self, room: Room) -> LocalListener:
        return LocalListener(self, room)


class LocalRope:
    """Nothing is held: within one process there is nobody left to wake when it dies."""

    def __init__(self, bell: LocalBell, rooms: Collection[Room]) -> None:
        self._bell = bell
        self._rooms = rooms

    def after_commit(self) -> None:
        pass

    def let_go(self) -> None:
        for listener in tuple(self._bell.listeners):
            own = listener.bell is self._bell and listener.room == "work"
            if listener.room in self._rooms and not own:
                listener.ring()
        self._rooms = ()

    def drop(self) -> None:
        self._rooms = ()


class LocalListener:
    """A socket pair; a byte in it is a ring."""

    again_s: float | None = None

    def __init__(self, bell: LocalBell, room: Room) -> None:
        self.bell = bell
        self.room = room
        self._hears, self._rings = socket.socketpair()
        self._hears.settimeout(0)
        self._rings.settimeout(0)
        bell.listeners.append(self)

    def ring(self) -> None:
        with suppress(OSError):  # full of rings, or closed meanwhile
            self._rings.send(b"!")

    def fileno(self) -> int:
        return self._hears.fileno()

    def drain(self) -> bool:
        rung = False
        with suppress(BlockingIOError):
            while self._hears.recv(4096):
                rung = True
        return rung

    def wait(self, timeout_s: float | None = None) -> bool:
        poll = select.poll()
        poll.register(self._hears, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000)) and self.drain()

    def hold(self) -> bool:
        return True

    def close(self) -> None:
        with suppress(ValueError):
            self.bell.listeners.remove(self)
        self._hears.close()
        self._rings.close()
