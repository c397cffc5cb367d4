"""One lane of a queue, with everything that can be set on it. ``Queue.lane`` makes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lineclear.errors import BadInput
from lineclear.job import Job, Lane

if TYPE_CHECKING:
    from lineclear.control import Control
    from lineclear.store.base import Tx


class LaneHandle:
    """One lane of a queue, with what can be set on it; each act answers the lane afterwards."""

    def __init__(self, queue: Control, name: str) -> None:
        self.name = name
        self._queue = queue

    def get(self) -> Lane:
        """The lane as it is now."""
        return self._queue.lane_now(self.name)

    def pause(
        self,
        why: str = "",
        *,
        until_ms: int | None = None,
        source: str = "person",
        by: str | None = None,
    ) -> Lane:
        """Start nothing more here; what runs finishes. Each ``source`` sets and clears its own."""
        refuse_past(until_ms, self._queue.now_ms())
        return self._set(
            lambda tx, acts: acts.pause(
                tx, self.name, by=by or self._queue.by, why=why, until_ms=until_ms, source=source
            )
        )

    def resume(self, source: str | None = None, *, by: str | None = None) -> Lane:
        """Clear one source's pause, or all of them."""
        who = by or self._queue.by
        return self._set(lambda tx, acts: acts.resume(tx, self.name, by=who, source=source))

    def set_delay(self, delay_ms: int, *, by: str | None = None) -> Lane:
        """Milliseconds from the last end in this lane to the next start; in force at once."""
        who = by or self._queue.by
        return self._set(lambda tx, acts: acts.set_delay(tx, self.name, delay_ms, by=who))

    def set_concurrency(self, slots: int, *, by: str | None = None) -> Lane:
        """How many run at once. Lowering it never stops what runs."""
        who = by or self._queue.by
        return self._set(lambda tx, acts: acts.set_concurrency(tx, self.name, slots, by=who))

    def set(
        self, *, delay_ms: int | None = None, slots: int | None = None, by: str | None = None
    ) -> Lane:
        """Both, either or none, together or not at all."""
        who = by or self._queue.by

        def both(tx: Tx, acts: Any) -> None:
            if delay_ms is not None:
                acts.set_delay(tx, self.name, delay_ms, by=who)
            if slots is not None:
                acts.set_concurrency(tx, self.name, slots, by=who)

        return self._set(both)

    def stop_now(self, *, why: str = "", by: str | None = None) -> list[Job]:
        """Pause the lane and end what runs at once; those jobs go back in line, uncounted."""
        who = by or self._queue.by
        return self._queue.change(lambda tx, acts: acts.stop_now(tx, self.name, by=who, why=why))

    def remove_waiting(self, *, expect: int | None = None, by: str | None = None) -> int:
        """Take every waiting job out of the line; answers how many. ``undo`` brings them back.

        Raises:
            WrongState: it would not be ``expect`` jobs; says how many. Nothing has changed.
        """
        who = by or self._queue.by
        removed: list[int] = self._queue.change(
            lambda tx, acts: acts.remove_waiting(tx, self.name, expect=expect, by=who)
        )
        return len(removed)

    def _set(self, act: Callable[[Tx, Any], object]) -> Lane:
        self._queue.change(act)
        return self.get()


def refuse_past(until_ms: int | None, now_ms: int) -> None:
    if until_ms is not None and until_ms <= now_ms:
        raise BadInput("until", "The end of the pause is in the past.")
