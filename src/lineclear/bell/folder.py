"""The folder of a Unix bell: finding listeners, connecting to them, letting the right people in.

For ``bell/unix.py`` only. Never opens the database file: closing it would drop SQLite's locks.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

GONE = {errno.ECONNREFUSED, errno.ENOENT}


class Folder:
    """``<database>.d/bell/``. ``own`` names the listeners made through this very object."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.path = Path(f"{database}.d") / "bell"
        self.own: set[str] = set()
        self._proc = Path("/proc/self/fd").is_dir()

    def make(self) -> None:
        for path in (self.path.parent, self.path):
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                self.share(path, None, folder=True)

    def open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)

    def address(self, within: int, name: str) -> str:
        """A socket's address has 108 bytes; through the folder's descriptor any depth fits."""
        return f"/proc/self/fd/{within}/{name}" if self._proc else str(self.path / name)

    def share(self, path: Path | str, within: int | None, *, folder: bool = False) -> None:
        """Let in who may write the database, and nobody else."""
        try:
            like = self.database.stat()
        except FileNotFoundError:
            return
        mode = like.st_mode & 0o666
        with suppress(PermissionError):
            owner = like.st_uid if os.geteuid() == 0 else -1
            os.chown(path, owner, like.st_gid, dir_fd=within)
        os.chmod(path, mode | 0o700 | (mode & 0o444) >> 2 if folder else mode, dir_fd=within)

    def reach(
        self, rooms: Collection[str], ends: dict[str, socket.socket], skip: Collection[str]
    ) -> set[int]:
        """Connect to each listener in these rooms that ``ends`` has not yet.

        Answers the error numbers of those that live and were not reached. Never waits or raises.
        """
        missed: set[int] = set()
        if not rooms:
            return missed
        try:
            within = self.open()
        except OSError as error:
            return {error.errno or errno.EIO} - GONE
        try:
            for name in os.listdir(within):  # noqa: PTH208 - by descriptor
                room, _, rest = name.partition("-")
                known = name in ends or name in skip
                if room in rooms and rest.endswith(".sock") and not known:
                    missed.add(self._connect(within, name, ends))
        except OSError as error:
            missed.add(error.errno or errno.EIO)
        finally:
            os.close(within)
        return missed - GONE - {0}

    def _connect(self, within: int, name: str, ends: dict[str, socket.socket]) -> int:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.settimeout(0)
        code = end.connect_ex(self.address(within, name))
        if code == 0:
            ends[name] = end
            return 0
        end.close()
        # No name is used twice, so a refusal means dead. (Elsewhere it may mean a full backlog.)
        if code == errno.ECONNREFUSED and sys.platform == "linux":
            with suppress(OSError):
                os.unlink(name, dir_fd=within)
        return code


def backlog_limit(wanted: int) -> int:
    """What the kernel makes of the backlog that is wanted."""
    try:
        return min(wanted, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    except (OSError, ValueError):
        return min(wanted, socket.SOMAXCONN)
