"""Worker locks: a file lock that the kernel frees at death. Held means alive, whatever any clock
says.

Only the worker itself makes its file. Who probes never creates one, and a missing file proves
nothing.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def take(path: Path, *, mode: int) -> int:
    """Make and hold the lock of this process's life; answers the descriptor to keep open.

    The file gets its name only once it is locked, so that nobody can find it free before. Until
    then it ends in ``.new``: who probes every ``*.lock``, dot names too, must not open it, since
    that prober's shared lock would refuse this one.
    """
    unnamed = path.with_name(f".{path.name}.new")
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    os.fchmod(descriptor, mode)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(path)
    return descriptor


def is_held(path: Path) -> bool | None:
    """Whether somebody holds the lock; ``None`` where the file is missing or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared: two who probe at once must not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
