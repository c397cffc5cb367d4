"""What a coroutine that runs as a task holds: what waits in ``Context`` is awaited here.

Made by worker.host, whose one event loop every coroutine of its lane shares: nothing here may wait
for the supervisor or the disk without letting the others go on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from lineclear import publishing, wire
from lineclear.held import Held, Planned, Sender, Step, named_step, value_of

if TYPE_CHECKING:
    import os
    import threading
    from pathlib import Path

    from lineclear.clock import Clock
    from lineclear.tasks import Task

T = TypeVar("T")
R = TypeVar("R")

_open_steps: ContextVar[tuple[str, ...]] = ContextVar("lineclear_open_steps", default=())
"""Of each coroutine its own: steps of one job that run side by side do not see one another."""


class AsyncLink(Sender, Protocol):
    """The way to the supervisor, for what is answered too."""

    async def ask(self, question: wire.Question, /) -> wire.Answer:
        """Number the question, send it and await what became of it."""


class AsyncContext(Held):
    """Handed to an ``async def`` task as its first argument, ``ctx``."""

    def __init__(
        self, run: wire.Run, link: AsyncLink, *, clock: Clock, wake: threading.Event | None = None
    ) -> None:
        super().__init__(run, link, clock=clock, wake=wake)
        self._link = link

    def steps(
        self,
        items: Iterable[T],
        *,
        name: Callable[[T], str],
        weight: Callable[[T], float] | None = None,
        unit: str | None = None,
    ) -> AsyncIterator[T]:
        """``async for`` over each item whose step is not recorded yet, as ``Context.steps``."""
        return self._walk(self._plan(items, name, weight, unit))

    @overload
    def step(self, name: str, *, weight: float = 0) -> AbstractAsyncContextManager[Step]: ...
    @overload
    def step(
        self, name: str, call: Callable[[], Awaitable[R]], *, weight: float = 0
    ) -> Awaitable[R]: ...
    @overload
    def step(self, name: str, call: Callable[[], R], *, weight: float = 0) -> Awaitable[R]: ...
    def step(
        self, name: str, call: Callable[[], Any] | None = None, *, weight: float = 0
    ) -> AbstractAsyncContextManager[Step] | Awaitable[Any]:
        """One step: ``await`` it for its recorded result, else that of ``call``, which may be a
        coroutine function; an ``async with`` block without.
        """
        block = self._step(named_step(name, weight))
        return block if call is None else _called(block, call)

    @asynccontextmanager
    async def publish(self, path: str | os.PathLike[str]) -> AsyncIterator[Path]:
        """A staged file that replaces ``path``, whole, when the block ends without an exception."""
        target, staged = self._place(path)
        try:
            yield staged
            question = await _to_its_end(lambda: self._publication(staged, target))
            value_of(await self._link.ask(question))
            temporary = target.with_name(question.temporary)
            await _to_its_end(lambda: publishing.replace(staged, target, temporary))
        finally:
            with suppress(OSError):
                staged.unlink()

    async def submit(self, task: Task, /, *args: Any, **kwargs: Any) -> tuple[int, str]:
        """Put another job in line, below this one. Returns its id and title."""
        step = "".join(_open_steps.get()[-1:])
        answer = value_of(await self._link.ask(self._submission(task, args, kwargs, step=step)))
        return int(answer["id"]), str(answer["title"])

    async def _walk(self, plan: list[Planned[T]]) -> AsyncIterator[T]:
        for step in plan:
            async with self._step(step):
                yield step.item

    @asynccontextmanager
    async def _step(self, planned: Planned[Any]) -> AsyncIterator[Step]:
        if (known := self._known(planned)) is not None:
            yield known
            return
        started_ms = self._begin(planned)
        outer = _open_steps.get()
        _open_steps.set((*outer, planned.name))
        step = Step(done=False)
        try:
            yield step
        finally:
            _open_steps.set(outer)
        recorded = self._finished(planned, step, started_ms)
        value_of(await self._link.ask(recorded))
        self._record(planned, recorded)


async def _called(block: AbstractAsyncContextManager[Step], call: Callable[[], Any]) -> Any:
    async with block as step:
        if not step.done:
            result = call()
            step.result = await result if inspect.isawaitable(result) else result
    return step.result


async def _to_its_end(call: Callable[[], R]) -> R:
    """In a thread, so that others go on. Stopped meanwhile, it is over before that is heard: no
    thread is left behind that still writes.
    """
    working = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
