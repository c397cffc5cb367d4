"""Sees to it that a worker always has its keeper."""

from __future__ import annotations

import asyncio
import logging

from lineclear.worker.keeper import Keeper, start_keeper

log = logging.getLogger("lineclear.worker")

AGAIN_S = 1.0


class Keeping:
    """A keeper, and another whenever it dies. Made in the worker's loop."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._keeper: Keeper | None = None
        self._start()

    @property
    def pids(self) -> set[int]:
        return set() if self._keeper is None else {self._keeper.pid}

    def close(self) -> None:
        """Let go of it: it ends what is still marked."""
        if self._keeper is not None:
            self._loop.remove_reader(self._keeper.pidfd)
            self._keeper.close()
            self._keeper = None

    def _start(self) -> None:
        self._since = self._loop.time()
        try:
            self._keeper = start_keeper(self._worker)
        except OSError as error:
            log.warning("the keeper cannot be started: %s; trying again", error)
            self._loop.call_later(AGAIN_S, self._start)
        else:
            self._loop.add_reader(self._keeper.pidfd, self._again)

    def _again(self) -> None:
        """A dead keeper is replaced at once, one that dies at its start a little later."""
        log.warning("the keeper ended; starting another")
        self.close()
        early = self._loop.time() - self._since < AGAIN_S
        self._loop.call_later(AGAIN_S if early else 0, self._start)
