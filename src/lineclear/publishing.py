"""Putting a finished file in its place so that a crash leaves the old one or the new one, whole.

Called by context.py. Never swallows an error: what is not surely on the disk is not published.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def replace(staged: Path, target: Path, temporary: Path) -> None:
    """Either the old file or the whole new one, whenever this is cut short."""
    try:
        staged.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil

        try:
            shutil.copy(staged, temporary)
            sync(temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    sync(target.parent)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
