"""A job with a place in its lane's host process (hosts.py), beside others.

Its end is what the task says of it, or the host's. A coroutine can be stopped at an ``await``; what
does not answer can only be ended with the host, whose other jobs go back in line.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lineclear import wire
from lineclear.job import Ending, Job, Outcome, Wish
from lineclear.worker.processes import Exit, NotStarted
from lineclear.worker.run import Run, Why, shortage
from lineclear.worker.talk import sentence_of

if TYPE_CHECKING:
    from lineclear.worker.hosts import Host
    from lineclear.worker.owner import Owner

log = logging.getLogger("lineclear.worker")


class HostRun(Run):
    """A run that shares its process."""

    def __init__(self, job: Job, owner: Owner, *, echo: bool = False) -> None:
        super().__init__(job, owner, echo=echo)
        self._host: Host | None = None
        self._over: asyncio.Future[tuple[Ending, Outcome | None]] = self._loop.create_future()
        self._asked_twice = False
        self._hearing: set[asyncio.Task[None]] = set()
        self._told_of_host_log = False

    @property
    def coroutine(self) -> bool:
        return self.job.options.runs_in == "coroutine"

    async def live(self) -> None:
        try:
            if self.job.attempt > 1:
                await asyncio.to_thread(self.prepare)
            if (why := self._wanted_over) is not None:
                await self._finish(Ending(why))
                return
            host = self._host = self._owner.hosts.place(self)
        except (NotStarted, OSError) as error:
            self._log.note(str(error))
            kind: Literal["no room", "not started"]
            kind = "no room" if shortage(error) else "not started"
            await self._finish(Ending(kind, sentence=str(error)))
            return
        line = await host.opened
        if line is not None and not await self.talk.hand_over(
            host.pid, host.start, line, number=self.job.id
        ):
            host.leave(self)
            await self._finish(Ending("lost"))
            return
        ending, outcome = await self._over
        await self._finish(ending, outcome)

    # What the host says

    def hear(self, message: wire.Message) -> None:
        """Called for everything that its process says of it."""
        match message:
            case wire.Printed():
                self._log.feed(message.stream, message.text.encode(errors="replace"))
                self._show()
            case wire.Ended():
                self._end_heard(message.outcome)
            case _:
                hearing = self._loop.create_task(self._hear(message))
                self._hearing.add(hearing)  # the loop itself would forget it
                hearing.add_done_callback(self._hearing.discard)

    async def _hear(self, message: wire.Message) -> None:
        """Nobody may wait for an answer that does not come: where talking fails, it is ended."""
        try:
            await self.talk.hear(message)
        except Exception as error:
            log.warning("job %d: talking to its process failed", self.job.id, exc_info=error)
            self._fault = sentence_of(error)
            self._log.note(self._fault)
            if self._host is not None:
                self._host.end(self)

    def _end_heard(self, outcome: Outcome) -> None:
        self.talk.said_end = True
        if self._host is not None:
            self._host.leave(self, outcome)
        if not self._over.done():
            self._over.set_result((Ending(self._ended_for or "itself"), outcome))

    def host_ended(
        self, seen: Exit, *, out_of_memory: bool, ended_for: Run | None, alone: bool, fault: str
    ) -> None:
        """Its process is gone, and all that came of it. ``alone``: no other job was in it."""
        why: Literal["itself", "interrupt", "wish", "timeout", "lost", "shared", "aside"]
        why, sentence = self._ended_for or self.why_signalled(seen), self._fault or fault
        if why == "itself" and ended_for is not None and ended_for is not self:
            why, sentence = "aside", f"ended to end job {ended_for.job.id}"
        elif why == "itself" and not alone:
            why, sentence = "shared", "lost"
        if why in ("aside", "shared"):
            sentence = f"The process it shared with others was {sentence}; it resumes at its place."
        ending = Ending(
            why,
            exit_code=seen.code,
            signal=seen.signal,
            out_of_memory=out_of_memory,
            sentence=sentence,
        )
        if not self._over.done():
            self._over.set_result((ending, None))

    def tell_of(self, host_log: Path) -> None:
        """Its process has printed what no single job can be told for."""
        if not self._told_of_host_log:
            self._told_of_host_log = True
            self._log.note(f"Its process printed something of nobody's, which is in {host_log}")

    # What others ask of it

    def wish(self, want: Wish | None, by: str) -> None:
        """A coroutine that reaches no safe point within the grace is stopped at an ``await``."""
        asked = self.talk.asked_to_stop
        if want is Wish.CANCEL and self.coroutine and (asked is None or asked.why != "cancel"):
            self._later(self._owner.settings.grace_s, lambda: self.talk.break_off("cancel", by))
        super().wish(want, by)

    def end_gently(self, why: Why) -> None:
        """At its next ``await``, and after the time for that with its host."""
        self._ended_for = self._ended_for or why
        if not self._over.done():
            self._ask_once_more()
            self._later(self._owner.settings.kill_s, lambda: self.end_now(why))

    def end(self) -> None:
        """A thread's host ends at once; a coroutine is asked first, and so is what lost its lease:
        nothing that it wants stored counts any more.
        """
        if self._host is None or self._over.done():
            return
        if self._asked_twice or not (self.coroutine or self._ended_for == "lost"):
            self._host.end(self)
        else:
            self._ask_once_more()
            self._later(self._owner.settings.kill_s, self.end)

    def _ask_once_more(self) -> None:
        self._asked_twice = True
        self.talk.break_off("cancel" if self._ended_for == "wish" else "interrupt", "")
