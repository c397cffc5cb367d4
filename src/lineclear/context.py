"""What a running task holds: its job, its safe points, its steps, its files.

Made by worker.child, or by a test without a worker. Everything goes through a ``Link``; the store
is never seen from here. ``safe_point`` is called in the innermost loops: it takes no lock and makes
no system call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, overload

from lineclear import publishing, wire
from lineclear.arguments import json_text
from lineclear.errors import BadInput, Cancelled, Interrupted, LeaseLost, Refused

if TYPE_CHECKING:
    import logging

    from lineclear.clock import Clock
    from lineclear.tasks import Task

NOTE_LIMIT = 80
"""Characters of a note or unit."""
STEP_NAME_LIMIT = 200
MOVE_INTERVAL_S = 0.5

T = TypeVar("T")
R = TypeVar("R")


class Link(Protocol):
    """The way to the supervisor."""

    def send(self, message: wire.Moved, /) -> None: ...

    def ask(self, question: wire.Question, /) -> wire.Answer:
        """Number the question, send it and wait for what became of it."""


class Step:
    """A step's ``with`` block: skip its body if ``done``; ``result`` is what is recorded."""

    def __init__(self, *, done: bool, result: Any) -> None:
        self.done = done
        self.result = result


class Context:
    """Handed to a task as its first argument, ``ctx``."""

    def __init__(self, run: wire.Run, link: Link, *, clock: Clock) -> None:
        self.job = run.job
        self.attempt = run.attempt
        self.lane = run.lane
        self.task = run.task
        self.key = run.key
        self.title = run.title
        self.staging = Path(run.staging)
        self.kept = Path(run.kept)
        self._link = link
        self._clock = clock
        self._recorded: dict[str, str | None] = {n: s["result"] for n, s in run.steps.items()}
        self._used: set[str] = set()
        self._open_steps: list[str] = []
        self._submits: dict[str, int] = {}
        self._staged = count(1)
        self._stop: wire.Stop | None = None
        self._done = 0.0
        self._total: float | None = None
        self._unit = run.unit
        self._note = ""
        self._dirty = False
        self._wake = threading.Event()

    # -- stopping and moving

    def safe_point(self, *, advance: float = 0) -> None:
        """The job may stop here: ``Cancelled``, ``Interrupted``. Adds ``advance`` to done."""
        if self._stop is not None:
            self._raise_stop(self._stop)
        if 0 < advance < inf:
            self._done += advance
        if not self._dirty:
            self._moved()

    def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        unit: str | None = None,
        note: str | None = None,
    ) -> None:
        """Say how far the work is. What cannot be true (NaN, negative, infinite) is ignored."""
        if done is not None and 0 <= done < inf:
            self._done = float(done)
        if total is not None and 0 < total < inf:
            self._total = float(total)
        if unit is not None:
            self._unit = _line(unit)
        if note is not None:
            self._note = _line(note)
        self._moved()

    @property
    def stopping(self) -> bool:
        """Whether the next safe point raises."""
        return self._stop is not None

    @cached_property
    def log(self) -> logging.Logger:
        """Lines into the job's log, by way of stderr."""
        import logging

        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger = logging.Logger(self.task, logging.INFO)
        logger.addHandler(handler)
        return logger

    # -- steps

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
        plan = [
            (one, _step_name(name(one)), _weight(weight(one) if weight else 0)) for one in items
        ]
        names = [step for _, step, _ in plan]
        if len(set(names)) < len(names) or not self._used.isdisjoint(names):
            twice = next(n for i, n in enumerate(names) if n in names[:i] or n in self._used)
            raise BadInput("name", f"two steps of this job are called '{twice}'")
        self._used.update(names)
        if weight is not None:
            self.progress(
                done=sum(w for _, step, w in plan if step in self._recorded),
                total=sum(w for _, _, w in plan),
                unit=unit,
            )
        elif unit is not None:
            self.progress(unit=unit)
        return self._walk(plan, exact=weight is not None)

    @overload
    def step(self, name: str, *, weight: float = 0) -> AbstractContextManager[Step]: ...
    @overload
    def step(self, name: str, call: Callable[[], R], *, weight: float = 0) -> R: ...
    def step(
        self, name: str, call: Callable[[], R] | None = None, *, weight: float = 0
    ) -> AbstractContextManager[Step] | R:
        """One step: its recorded result, else that of ``call``; a ``with`` block without."""
        block = self._step(_step_name(name), _weight(weight))
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
        target = Path(path).absolute()
        if not target.parent.is_dir():
            raise BadInput("path", f"'{target}' cannot be published: there is no such folder")
        staged = self.staging / f"{next(self._staged)}{target.suffix}"
        try:
            yield staged
            if staged.is_symlink() or not staged.is_file():
                raise BadInput("path", f"'{target}' cannot be published: the block made no file")
            publishing.sync(staged)
            temporary = target.with_name(f".{target.name}.{self.job}-{self.attempt}")
            self._ask(wire.Publish(0, str(target), temporary.name))
            publishing.replace(staged, target, temporary)
        finally:
            with suppress(OSError):
                staged.unlink()

    def submit(self, task: Task, /, *args: Any, **kwargs: Any) -> tuple[int, str]:
        """Put another job in line, below this one. Returns its id and title.

        A resumed run that submits again in the same order inside a step gets the same jobs again.
        """
        text = task.check(task.arguments.named(args, kwargs))
        step = self._open_steps[-1] if self._open_steps else ""
        number = self._submits[step] = self._submits.get(step, 0) + 1
        ordinal = f"{step}-{number}" if step else str(number)
        key = task.render_key(text) or f"{self.job}-{ordinal}"
        title = task.render_title(text)
        answer = self._ask(
            wire.Submit(0, task.name, task.app, text, task.lane, key, title, ordinal, task.options)
        )
        return int(answer["id"]), str(answer["title"])

    # -- for whoever made the context

    def stop(self, stop: wire.Stop) -> None:
        """The next safe point raises. A cancel outranks what was asked before it."""
        if self._stop is None or stop.why == "cancel":
            self._stop = stop

    @property
    def stop_asked(self) -> wire.Stop | None:
        return self._stop

    def flush(self) -> None:
        """Send the last change, if it is unsent."""
        if self._dirty:
            # Cleared before the values are read: a change that comes meanwhile sets it again.
            self._wake.clear()
            self._dirty = False
            self._link.send(self._snapshot())

    def keep_flushing(self) -> NoReturn:
        """Send changes, at once and then at most twice a second; sleeps while nothing changes."""
        import time

        while True:
            self._wake.wait()
            self.flush()
            time.sleep(MOVE_INTERVAL_S)

    def forked(self) -> None:
        """In a forked copy: nobody sends there, and a thread that is gone may hold the event."""
        self._dirty = True

    # -- inside

    def _moved(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._wake.set()

    def _snapshot(self) -> wire.Moved:
        done, total = self._done, self._total
        known = done < inf and (done > 0 or total is not None)
        if known and total is not None:
            done = min(done, total)
        return wire.Moved(done if known else None, total, self._unit, self._note)

    def _raise_stop(self, stop: wire.Stop) -> NoReturn:
        match stop.why:
            case "cancel":
                raise Cancelled(f"asked by {stop.by}" if stop.by else "asked")
            case "timeout":
                raise Cancelled("the time limit is over")
            case "interrupt":
                raise Interrupted(f"asked by {stop.by}" if stop.by else "the worker stops")

    def _walk(self, plan: list[tuple[T, str, float]], *, exact: bool) -> Iterator[T]:
        done = sum(weight for _, name, weight in plan if name in self._recorded)
        for item, name, weight in plan:
            if name not in self._recorded:
                done += weight
                with self._step(name, weight, done=done if exact else None):
                    yield item

    @contextmanager
    def _step(self, name: str, weight: float, *, done: float | None = None) -> Iterator[Step]:
        """``done`` is what the job has done after this step; without it ``weight`` is added."""
        if name in self._recorded:
            import json

            text = self._recorded[name]
            if name not in self._used:
                self._used.add(name)
                self.progress(done=self._done + weight)
            yield Step(done=True, result=None if text is None else json.loads(text))
            return
        self.safe_point()
        self.progress(note=name)
        started_ms = self._clock.now_ms()
        self._open_steps.append(name)
        step = Step(done=False, result=None)
        try:
            yield step
        finally:
            self._open_steps.remove(name)
        text = None
        if step.result is not None:
            text = json_text(step.result, field="result", what=f"the result of step '{name}'")
        self._ask(wire.StepDone(0, name, weight, text, started_ms))
        self._recorded[name] = text
        self._used.add(name)
        self.progress(done=self._done + weight if done is None else done)

    def _ask(self, question: wire.Question) -> Any:
        answer = self._link.ask(question)
        if answer.verdict == "lost":
            raise LeaseLost("this run is no longer the job's run")
        if answer.verdict == "refused":
            raise Refused(answer.error or "the worker refused it")
        return answer.value


def _step_name(name: object) -> str:
    text = str(name)
    if not 0 < len(text) <= STEP_NAME_LIMIT:
        raise BadInput("name", f"a step's name has 1 to {STEP_NAME_LIMIT} characters: {text!r:.99}")
    return text


def _weight(weight: float) -> float:
    return float(weight) if 0 < weight < inf else 0.0


def _line(text: str) -> str:
    return " ".join(str(text).split())[:NOTE_LIMIT]
