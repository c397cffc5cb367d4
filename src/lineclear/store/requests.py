"""Acts that are done once, however often they are asked. Called by ``control.py`` alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from lineclear.errors import BadInput, Replayed
from lineclear.store.base import Tx, one

T = TypeVar("T")


def once(
    tx: Tx, act: Callable[[], T], *, key: str | None, what: str, ids: Callable[[T], list[int]]
) -> tuple[T, list[int], int | None]:
    """The act, the jobs it touched and its number for ``undo``; remembered under the key with it.

    Raises:
        Replayed: it was done before. BadInput: the key belongs to another act.
    """
    known = None if key is None else one(tx, "request_of", key=key)
    if known is not None:
        if known["what"] != what:
            raise BadInput("Idempotency-Key", "This Idempotency-Key was used for something else.")
        raise Replayed(tuple(json.loads(known["jobs"])), known["undo"])
    before = _newest_undo(tx)
    done = act()
    newest, touched = _newest_undo(tx), ids(done)
    number = newest if newest > before else None
    if key is not None:
        listed = json.dumps(touched)
        rows = tx.all("request_add", key=key, what=what, now_ms=tx.now_ms, jobs=listed, undo=number)
        tx.all("request_prune", id=rows[0]["id"])
    return done, touched, number


def _newest_undo(tx: Tx) -> int:
    return tx.all("undo_newest")[0]["id"] or 0
