"""What a worker takes from the store at each look. Called by the supervisor, in its writing thread.

Every function here runs inside one transaction and touches nothing but the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from lineclear.job import Job
from lineclear.store import runs
from lineclear.store.base import Tx
from lineclear.store.runs import ProcessFor, Sign

log = logging.getLogger("lineclear.worker")


@dataclass(frozen=True, slots=True)
class Scan:
    """What one look at the store brought."""

    claimed: list[Job]
    mine: list[Job]
    foreign: list[Job]
    signs: list[Sign]
    tick_ms: int
    next_wall_ms: int | None


@dataclass(frozen=True, slots=True)
class Claims:
    """The lanes that the worker of ``sign`` serves, or the one job that it was named by hand."""

    sign: Sign
    is_trouble: Callable[[Exception], bool]
    process_for: ProcessFor
    only: int | None = None

    def look(self, tx: Tx, *, held: set[str], closed: bool) -> Scan:
        """Claims unless ``closed``, wishes, the runs of others, and the next moment to look again.

        ``held`` are the leases of the worker's own runs.
        """
        lanes = runs.served_lanes(tx, self.sign.lanes)
        claimed = [] if closed else self._claim(tx, lanes)
        mine = held | {job.lease for job in claimed}
        running = runs.every_run(tx)
        return Scan(
            claimed=claimed,
            mine=[job for job in running if job.lease in mine],
            foreign=[job for job in running if job.lease not in mine],
            signs=runs.signs(tx),
            tick_ms=tx.tick_ms,
            next_wall_ms=None if closed else runs.next_wall_ms(tx, lanes),
        )

    def _claim(self, tx: Tx, lanes: list[str]) -> list[Job]:
        if self.only is not None:
            job = runs.claim_by_hand(tx, self.only, self.sign.id)
            return [] if job is None else [job]
        claimed: list[Job] = []
        for lane in lanes:
            claimed += self.in_lane(tx, lane)
        return claimed

    def in_lane(self, tx: Tx, lane: str, *, most: int | None = None) -> list[Job]:
        """What may start there, at most so many. A row that cannot be claimed stops its lane only:
        neither other lanes nor the end stored with this are undone by it.
        """
        claimed: list[Job] = []
        while most is None or len(claimed) < most:
            try:
                with tx.savepoint():
                    job = runs.claim(tx, lane, self.sign.id, self.process_for)
            except Exception as error:
                if self.is_trouble(error):
                    raise
                log.exception("lane %s: its next job cannot be claimed. Please report this.", lane)
                break
            if job is None:
                break
            claimed.append(job)
        return claimed
