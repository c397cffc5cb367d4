"""The supervisor's one writing thread: what piles up during one commit goes into the next.

Each operation has a savepoint of its own, so that one that fails undoes nothing of another's. A
database that is locked, full or gone is tried again until it answers: an end or a step that was
accepted is not dropped. A disk that did not confirm a write ends the process, since nothing after
that could be promised.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from lineclear.errors import StoreError, StoreUnsafe
from lineclear.store.base import Store, Tx

T = TypeVar("T")

LONGEST_WAIT_S = 5.0
EXIT_UNSAFE = 74

log = logging.getLogger("lineclear.worker")


@dataclass(frozen=True, slots=True)
class _Operation:
    run: Callable[[Tx], Any]
    durable: bool
    early: Callable[[Any], object] | None
    future: Future[Any]


class Writer:
    """Runs operations against a store, in the order they came, in groups."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._operations: queue.SimpleQueue[_Operation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="lineclear-writer", daemon=True)
        self._thread.start()

    async def write(
        self,
        run: Callable[[Tx], T],
        *,
        durable: bool = True,
        early: Callable[[T], None] | None = None,
    ) -> T:
        """The operation's answer, once it is committed (and on disk, where ``durable``).

        ``early`` gets it, in this loop, as soon as it is committed: for what a power loss may undo.
        """
        future: Future[T] = Future()
        soon: Callable[..., object] = asyncio.get_running_loop().call_soon_threadsafe
        told = None if early is None else partial(soon, early)
        self._operations.put(_Operation(run, durable, told, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._operations.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            group = [self._operations.get()]
            while not self._operations.empty():
                group.append(self._operations.get())
            try:
                # From here on nobody can call an operation off: it may be stored already.
                self._until_stored(
                    [each for each in group if each and each.future.set_running_or_notify_cancel()]
                )
            except BaseException:
                log.exception("The writing thread failed; the worker ends. Please report this.")
                os._exit(EXIT_UNSAFE)  # without it, every run would wait for ever
            if None in group:
                return

    def _until_stored(self, group: list[_Operation]) -> None:
        wait_s = 0.1
        while group:
            try:
                answers = self._store_group(group)
            except StoreUnsafe as error:
                os.write(2, f"lineclear: {error}\n".encode())
                os._exit(EXIT_UNSAFE)
            except StoreError as error:
                log.warning("%s Trying again in %.1f s.", error, wait_s)
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            else:
                for operation, (answer, failure) in zip(group, answers, strict=True):
                    if failure is None:
                        operation.future.set_result(answer)
                    else:
                        operation.future.set_exception(failure)
                return

    def _store_group(self, group: list[_Operation]) -> list[tuple[Any, Exception | None]]:
        answers: list[tuple[Any, Exception | None]] = []

        def committed() -> None:
            for operation, (answer, failure) in zip(group, answers, strict=True):
                if operation.early is not None and failure is None:
                    operation.early(answer)

        with self._store.write(durable=any(operation.durable for operation in group)) as tx:
            tx.committed = committed
            answers += [self._one(tx, operation) for operation in group]
        return answers

    def _one(self, tx: Tx, operation: _Operation) -> tuple[Any, Exception | None]:
        try:
            with tx.savepoint():
                return operation.run(tx), None
        except Exception as error:
            if self._store.is_trouble(error):
                raise
            return None, error
