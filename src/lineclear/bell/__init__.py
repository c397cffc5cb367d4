"""The bell: wakes whoever waits for a change. It carries nothing; the store is the queue.

The store takes a rope inside each write transaction that somebody may wait for. Workers listen in
the room ``work`` (claimable work, wishes, settings), whoever looks listens in ``watch`` (anything
visible). Nothing here polls, starts a thread, or fails a commit.

Who writes:   BEGIN IMMEDIATE, the change, ``take``, COMMIT, ``after_commit``, sync, ``let_go``.
Who listens:  ``listen``, one scan inside BEGIN IMMEDIATE, then on each wake ``drain`` first and
              scan after. The first scan has to be a writer's: only then does it wait for a commit
              whose rope was taken before the listener had its name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

Room = Literal["work", "watch"]


class Rope(Protocol):
    """A ring that comes when it is let go, or when this process dies. Calling twice is safe."""

    def after_commit(self) -> None:
        """COMMIT has returned: reach those who came meanwhile, or had no room for a ring."""

    def let_go(self) -> None:
        """Ring: the change is as durable as promised, or it is not known what became of it."""

    def drop(self) -> None:
        """Let go without ringing: it was rolled back. A crash in here rings, which is harmless."""


class Listener(Protocol):
    """One who waits. Belongs to one thread."""

    again_s: float | None
    """Set by ``drain``: drain and scan once more after so many seconds; ``None`` most times."""

    def fileno(self) -> int:
        """Readable when there is something to drain: for ``loop.add_reader``."""

    def drain(self) -> bool:
        """Take everything that came, without waiting; true means scan now. Ten rings are one."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a ring and drain it; false when the time is over. Honours ``again_s`` itself."""

    def hold(self) -> bool:
        """Tie this process to all others in its room: the death of either wakes the other at once.

        Call it once after ``listen``; whoever comes later ties itself to those already there.
        False means that somebody could not be reached: call it again with the next scan.
        """

    def close(self) -> None:
        """Stop listening and free the name."""


class Bell(Protocol):
    """One database's bell, in the hands of one user of it."""

    def take(self, rooms: Collection[Room]) -> Rope:
        """Take the rope inside the write transaction, just before COMMIT. Never waits or raises.

        ``work`` listeners made by this same bell object are left out, since a worker looks again
        after its own writes anyway; ``watch`` listeners hear everything.
        """

    def listen(self, room: Room) -> Listener:
        """Listen from now on. Then scan once. ``OSError`` where the folder cannot be used."""
