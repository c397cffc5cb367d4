"""What a function that runs as a task holds, and may wait with.

Made by worker.child and worker.host, or by a test without a worker. Everything goes through a
``Link``; the store is never seen from here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from lineclear import publishing, wire
from lineclear.held import Held, Planned, Sender, Step, named_step, value_of

if TYPE_CHECKING:
    from lineclear.clock import Clock
    from lineclear.tasks import Task

T = TypeVar("T")
R = TypeVar("R")


class Link(Sender, Protocol):
    """The way to the supervisor, for what is answered too."""

    def ask(self, question: wire.Question, /) -> wire.Answer:
        """Number the question, send it and wait for what became of it."""


class Context(Held):
    """Handed to a task as its first argument, ``ctx``."""

    def __init__(
        self, run: wire.Run, link: Link, *, clock: Clock, wake: threading.Event | None = None
    ) -> None:
        super().__init__(run, link, clock=clock, wake=wake)
        self._link = link
        self._open_steps: list[str] = []

    def steps(
        self,
        items: Iterable[T],
        *,
        name: Callable[[T], str],
        weight: Callable[[T], float] | None = None,
        unit: str | None = None,
    ) -> Iterator[T]:
        """Each item whose step is not recorded yet. A step is recorded when the body is done.

        With ``weight`` the total is the sum of them. A loop left early leaves its step undone.
        """
        return self._walk(self._plan(items, name, weight, unit))

    @overload
    def step(self, name: str, *, weight: float = 0) -> AbstractContextManager[Step]: ...
    @overload
    def step(self, name: str, call: Callable[[], R], *, weight: float = 0) -> R: ...
    def step(
        self, name: str, call: Callable[[], R] | None = None, *, weight: float = 0
    ) -> AbstractContextManager[Step] | R:
        """One step: its recorded result, else that of ``call``; a ``with`` block without."""
        block = self._step(named_step(name, weight))
        if call is None:
            return block
        with block as step:
            if not step.done:
                step.result = call()
        result: R = step.result
        return result

    # -- files and further jobs

    @contextmanager
    def publish(self, path: str | os.PathLike[str]) -> Iterator[Path]:
        """A staged file that replaces ``path``, whole, when the block ends without an exception."""
        target, staged = self._place(path)
        try:
            yield staged
            question = self._publication(staged, target)
            value_of(self._link.ask(question))
            publishing.replace(staged, target, target.with_name(question.temporary))
        finally:
            with suppress(OSError):
                staged.unlink()

    def submit(self, task: Task, /, *args: Any, **kwargs: Any) -> tuple[int, str]:
        """Put another job in line, below this one. Returns its id and title.

        A resumed run that submits again in the same order inside a step gets the same jobs again.
        """
        step = self._open_steps[-1] if self._open_steps else ""
        answer = value_of(self._link.ask(self._submission(task, args, kwargs, step=step)))
        return int(answer["id"]), str(answer["title"])

    def _walk(self, plan: list[Planned[T]]) -> Iterator[T]:
        for step in plan:
            with self._step(step):
                yield step.item

    @contextmanager
    def _step(self, planned: Planned[Any]) -> Iterator[Step]:
        if (known := self._known(planned)) is not None:
            yield known
            return
        started_ms = self._begin(planned)
        self._open_steps.append(planned.name)
        step = Step(done=False)
        try:
            yield step
        finally:
            self._open_steps.remove(planned.name)
        recorded = self._finished(planned, step, started_ms)
        value_of(self._link.ask(recorded))
        self._record(planned, recorded)
