"""The process that runs a lane's coroutines and threads: ``python -m lineclear.worker.host``.

Started by worker.hosts with ``--fd N --parent PID``, one for a lane and an application, for as many
jobs as come. Its main thread is one event loop; a thread of its own reads the socket, so that a
coroutine that computes hears a stop at its safe points. It ends when the socket does.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from lineclear import wire
from lineclear.clock import SystemClock
from lineclear.context import Context
from lineclear.coroutine import AsyncContext
from lineclear.errors import Stopped
from lineclear.held import Held, keep_flushing
from lineclear.job import Outcome
from lineclear.worker import output
from lineclear.worker.child import reset_signals, tie_to
from lineclear.worker.link import SocketLink
from lineclear.worker.performing import ended_by, load, returned

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_THREADS = 10_000
"""More than any lane has slots: the lane alone bounds how many run at once."""


class Place:
    """One job in this process, and its way to the supervisor."""

    def __init__(self, run: wire.Run, host: Host) -> None:
        self.run = run
        self.held: Held | None = None
        self.printer = output.Printer(self._printed)
        self._host = host
        self._asked: wire.Stop | None = None
        self._coroutine: asyncio.Task[None] | None = None

    def context(self, *, coroutine: bool) -> Held:
        """What its task is handed. A stop that came earlier is in it."""
        clock, wake = SystemClock(), self._host.wake
        if coroutine:
            self._coroutine = asyncio.current_task()
            self.held = AsyncContext(self.run, AwaitedLink(self), clock=clock, wake=wake)
        else:
            self.held = Context(self.run, self, clock=clock, wake=wake)
        if self._asked is not None:
            self.held.stop(self._asked)
        return self.held

    def stop(self, stop: wire.Stop) -> None:
        """Called by the thread that reads."""
        self._asked = stop
        if self.held is not None:
            self.held.stop(stop)
        if stop.now and self._coroutine is not None:
            self._host.loop.call_soon_threadsafe(self._coroutine.cancel)

    def send(self, message: wire.Moved, /) -> None:
        self._host.link.send(message._replace(job=self.run.job))

    def ask(self, question: wire.Question, /) -> wire.Answer:
        return self._host.link.ask(question._replace(job=self.run.job))

    async def answer(self, question: wire.Question) -> wire.Answer:
        loop = self._host.loop
        answered: asyncio.Future[wire.Answer] = loop.create_future()

        def heard(answer: wire.Answer) -> None:
            loop.call_soon_threadsafe(set_answer, answer)

        def set_answer(answer: wire.Answer) -> None:
            if not answered.done():  # else its coroutine has been stopped meanwhile
                answered.set_result(answer)

        self._host.link.put(question._replace(job=self.run.job), heard)
        return await answered

    def _printed(self, stream: output.Stream, text: str) -> None:
        self._host.link.send(wire.Printed(stream, text, self.run.job))


class AwaitedLink:
    """A place's way to the supervisor, for a coroutine."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def send(self, message: wire.Moved, /) -> None:
        self._place.send(message)

    async def ask(self, question: wire.Question, /) -> wire.Answer:
        return await self._place.answer(question)


class HostLink(SocketLink):
    """Of a process that runs several jobs."""

    def __init__(self, descriptor: int, host: Host) -> None:
        super().__init__(descriptor)
        self._host = host

    def told(self, message: wire.Run | wire.Stop) -> None:
        match message:
            case wire.Run():
                place = Place(message, self._host)
                self._host.places[message.job] = place
                self._host.loop.call_soon_threadsafe(self._host.start, place)
            case wire.Stop():
                if (asked := self._host.places.get(message.job)) is not None:
                    asked.stop(message)

    def supervisor_gone(self) -> None:
        if self._host.places:
            super().supervisor_gone()
        self._host.loop.call_soon_threadsafe(self._host.over.set)

    def forked(self) -> None:
        super().forked()
        for place in self._host.places.values():
            place.printer.is_open = False
            if place.held is not None:
                place.held.forked()


class Host:
    """This process's whole life."""

    def __init__(self, descriptor: int) -> None:
        self.places: dict[int, Place] = {}
        self.wake = threading.Event()
        self.link = HostLink(descriptor, self)
        self._threads = ThreadPoolExecutor(MOST_THREADS, "lineclear-job")
        self._loaded = False
        self._running: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.over = asyncio.Event()
        os.register_at_fork(after_in_child=self.link.forked)
        flush = partial(keep_flushing, self.wake, self._flush)
        for work, name in ((self.link.keep_reading, "reader"), (flush, "moves")):
            threading.Thread(target=work, name=f"lineclear-{name}", daemon=True).start()
        self.link.send(wire.Ready(os.getpid()))
        await self.over.wait()

    def start(self, place: Place) -> None:
        running = self.loop.create_task(self._live(place))
        self._running.add(running)  # the loop itself would forget it
        running.add_done_callback(self._running.discard)

    async def _live(self, place: Place) -> None:
        output.printing.set(place.printer)
        outcome = await self._perform(place)
        if not self.link.is_open:
            os._exit(0)  # a forked copy that came all the way back
        place.printer.close()
        if place.held is not None:
            place.held.flush()
        del self.places[place.run.job]  # before its end is known: it may be sent here again
        # A lost lease is known to who took it: what is said of this end changes nothing any more.
        self.link.send(wire.Ended(0, outcome or Outcome("interrupted"), place.run.job))

    async def _perform(self, place: Place) -> Outcome | None:
        try:
            task, arguments = load(place.run, again=self._loaded)
            self._loaded = True
            held = place.context(coroutine=inspect.iscoroutinefunction(task.function))
            if held.stopping:
                held.safe_point()
            first = (held,) if task.arguments.takes_context else ()
            call = partial(task.function, *first, **arguments)
            if isinstance(held, AsyncContext):
                return returned(await call())
            run = contextvars.copy_context().run
            return await self.loop.run_in_executor(self._threads, run, _perform, call, place)
        except asyncio.CancelledError as error:
            return ended_by(_why_cancelled(error, place.held), place.run, place.held)
        except BaseException as error:  # noqa: BLE001  whatever a task raises is how it ended
            return ended_by(error, place.run, place.held)

    def _flush(self) -> None:
        for place in list(self.places.values()):
            if place.held is not None:
                place.held.flush()


def _perform(call: Callable[[], Any], place: Place) -> Outcome | None:
    """The whole of a job in a thread."""
    try:
        return returned(call())
    except BaseException as error:  # noqa: BLE001  whatever a task raises is how it ended
        return ended_by(error, place.run, place.held)


def _why_cancelled(error: asyncio.CancelledError, held: Held | None) -> BaseException:
    """A coroutine that was asked to stop and ended at an ``await`` has done as it was asked."""
    try:
        if held is not None and held.stopping:
            held.safe_point()
    except Stopped as stopped:
        return stopped
    return error


def main(argv: list[str]) -> int:
    descriptor, parent = (int(argv[argv.index(name) + 1]) for name in ("--fd", "--parent"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003  its only form
    tie_to(parent)
    reset_signals()
    output.route()
    asyncio.run(Host(descriptor).work())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
