"""The bell of an SQLite file: a ring is the end of a connection that was opened before the commit.

Each listener binds a Unix stream socket in ``<database>.d/bell/``. Who commits connects to all of
them first; the kernel ends the connections also when it kills the process, so no wake-up is lost to
a crash. The SQLite store rings; workers and watchers listen. Never opens the database itself.
"""

from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from weakref import WeakSet

from lineclear.bell import Room
from lineclear.bell.folder import Folder, backlog_limit

BACKLOG = 4096
FULL_AGAIN_S = 1.0
DEATH_AGAIN_S = 0.2  # the kernel frees a dead worker's lock and its sockets one after the other

# What may be said on a connection before it ends. A ring says nothing.
LIFE = b"L"
NOTHING = b"N"

STARVED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = logging.getLogger(__name__)


class UnixBell:
    """The bell of one database file. Symbolic links are followed, as SQLite does for its files."""

    def __init__(self, database: Path | str) -> None:
        self._folder = Folder(Path(database).resolve())

    def take(self, rooms: Collection[Room]) -> UnixRope:
        return UnixRope(self._folder, rooms)

    def listen(self, room: Room) -> UnixListener:
        return UnixListener(self._folder, room)


class UnixRope:
    """Connections to every listener of some rooms."""

    def __init__(self, folder: Folder, rooms: Collection[Room]) -> None:
        self._folder = folder
        self._rooms = rooms
        self._ends: dict[str, socket.socket] = {}
        self._missed: set[int] = set()
        _open.add(self)
        self.after_commit()

    def after_commit(self) -> None:
        skip = {name for name in tuple(self._folder.own) if name.startswith("work-")}
        # A backlog that is full now is drained later, and scanned after this commit.
        self._missed = self._folder.reach(self._rooms, self._ends, skip) - {errno.EAGAIN}

    def let_go(self) -> None:
        self._end()
        if self._missed:  # for want of descriptors, perhaps: now there are some
            self.after_commit()
            self._end()
            for code in self._missed:
                log.warning("A listener could not be rung: %s.", os.strerror(code))
            self._missed = set()

    def drop(self) -> None:
        self._missed = set()
        for end in self._ends.values():
            with suppress(OSError):
                end.send(NOTHING)
        self._end()

    def _end(self) -> None:
        for end in self._ends.values():
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # a forked copy would keep it open after close alone
            end.close()

    def forked(self) -> None:
        for end in self._ends.values():
            end.close()


class UnixListener:
    """A listening socket and the connections to it, in one selector that can itself be watched."""

    def __init__(self, folder: Folder, room: Room) -> None:
        self.again_s: float | None = None
        self._again_at: float | None = None
        self._folder = folder
        self._room = room
        self._name = f"{room}-{token_hex(16)}.sock"
        self._limit = backlog_limit(BACKLOG)
        self._tied: set[str] = set()
        self._ends: dict[socket.socket, bytes] = {}  # what each has said
        self._selector = selectors.DefaultSelector()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.settimeout(0)
        self._muted = True
        folder.own.add(self._name)
        _open.add(self)
        try:
            self._open_door()
        except OSError:
            self.close()
            raise

    def _open_door(self) -> None:
        self._folder.make()
        within = self._folder.open()
        bound = f".{self._name}"
        try:
            self._door.bind(self._folder.address(within, bound))
            self._folder.share(bound, within)
            self._door.listen(BACKLOG)
            # Nobody may find a name that does not listen yet: it would be taken for dead.
            os.rename(bound, self._name, src_dir_fd=within, dst_dir_fd=within)
        finally:
            os.close(within)
        self._mute(starved=False)

    def fileno(self) -> int:
        return self._selector.fileno()

    def drain(self) -> bool:
        self.again_s = None
        rung = self._accept()
        for key, _ in self._selector.select(0):
            if isinstance(end := key.fileobj, socket.socket) and end is not self._door:
                rung |= self._hear(end)
        if self.again_s is not None:
            self._again_at = time.monotonic() + self.again_s
        return rung

    def wait(self, timeout_s: float | None = None) -> bool:
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            due = min(until, float("inf") if self._again_at is None else self._again_at)
            left = None if due == float("inf") else max(0.0, due - time.monotonic())
            if self._selector.select(left) and self.drain():
                return True
            now = time.monotonic()
            if self._again_at is not None and now >= self._again_at:
                self._again_at = None
                self.drain()
                return True
            if now >= until:
                return False

    def hold(self) -> bool:
        fresh: dict[str, socket.socket] = {}
        missed = self._folder.reach({self._room}, fresh, self._folder.own | self._tied)
        for end in fresh.values():
            with suppress(OSError):  # it has just died: that is heard like any other end
                end.send(LIFE)
            self._keep(end, LIFE)
        self._tied.update(fresh)
        return not missed

    def close(self) -> None:
        if self._name in self._folder.own:  # not in a forked child: the name is its parent's
            with suppress(OSError):
                (self._folder.path / self._name).unlink()
        self.forked()

    def forked(self) -> None:
        """Close what a forked child has of its parent's, without ringing: the parent lives."""
        self._folder.own.discard(self._name)
        self._selector.close()
        self._door.close()
        for end in self._ends:
            end.close()
        self._ends.clear()

    def _accept(self) -> bool:
        rung = starved = False
        taken = 0
        while taken <= self._limit:  # a full backlog holds one more than the limit
            try:
                end, _ = self._door.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno not in STARVED:
                    raise
                rung = starved = True
                break
            taken += 1
            end.settimeout(0)
            rung |= self._hear(end)
        if starved or taken > self._limit:
            self.again_s = FULL_AGAIN_S
        self._mute(starved=starved)
        return rung

    def _mute(self, *, starved: bool) -> None:
        """Out of descriptors the door would stay readable and spin. The next drain tries again."""
        if starved and not self._muted:
            self._selector.unregister(self._door)
        elif self._muted and not starved:
            self._selector.register(self._door, selectors.EVENT_READ)
        self._muted = starved

    def _hear(self, end: socket.socket) -> bool:
        """Read one connection. True when it has ended, and not because nothing happened."""
        said = self._ends.get(end, b"")
        for _ in range(2):  # a word, and the end
            try:
                got = end.recv(16)
            except BlockingIOError:
                break
            except OSError:  # its process died before it was accepted
                got = b""
            if not got:
                return self._over(end, said)
            said = got
        self._keep(end, said)
        return False

    def _keep(self, end: socket.socket, said: bytes) -> None:
        if end not in self._ends:
            self._selector.register(end, selectors.EVENT_READ)
        self._ends[end] = said

    def _over(self, end: socket.socket, said: bytes) -> bool:
        if self._ends.pop(end, None) is not None:
            self._selector.unregister(end)
        end.close()
        if said == LIFE:
            self.again_s = max(self.again_s or 0.0, DEATH_AGAIN_S)
        return said != NOTHING


_open: WeakSet[UnixRope | UnixListener] = WeakSet()


def _forked() -> None:
    for each in list(_open):
        each.forked()


# A descriptor can be marked close-on-exec but not close-on-fork, hence this, once for the module.
os.register_at_fork(after_in_child=_forked)
