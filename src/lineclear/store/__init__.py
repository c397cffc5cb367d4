"""Where jobs are kept. ``open_store`` is the only door; ``acts``, ``runs`` and ``reads`` are what
one can do inside.
"""

from __future__ import annotations

from pathlib import Path

from lineclear.clock import Clock
from lineclear.store.base import Store, Tx

__all__ = ["Store", "Tx", "open_store"]


def open_store(database: str | Path, *, clock: Clock | None = None, create: bool = True) -> Store:
    """Open the database, bringing its schema up to date.

    Raises:
        StoreRefused: it may not be used; the sentence says why and what to do.
        StoreError: it cannot be reached.
    """
    from lineclear.store.sqlite import SqliteStore

    return SqliteStore(Path(database), clock=clock, create=create)
