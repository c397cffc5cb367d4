"""What every running task holds, function or coroutine: its job, its safe points, its files, and
the parts of its steps.

``Context`` waits for the supervisor's answers, coroutine.py's awaits them; both are made of these
parts. ``safe_point`` is called in the innermost loops: it takes no lock and makes no system call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import accumulate, count, islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

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


class Sender(Protocol):
    """The way to the supervisor, for what is not answered."""

    def send(self, message: wire.Moved, /) -> None: ...


class Step:
    """A step's ``with`` block: skip its body if ``done``; ``result`` is what is recorded."""

    def __init__(self, *, done: bool, result: Any = None) -> None:
        self.done = done
        self.result = result


class Planned(NamedTuple, Generic[T]):
    """A step to come. ``after`` is what the job has done with it; unknown, its weight is added."""

    item: T
    name: str
    weight: float
    after: float | None = None


class Held:
    """What a task may do without waiting, and the parts of what it waits for."""

    def __init__(
        self, run: wire.Run, link: Sender, *, clock: Clock, wake: threading.Event | None = None
    ) -> None:
        """``wake`` is set when there is something to ``flush``."""
        self.job = run.job
        self.attempt = run.attempt
        self.lane = run.lane
        self.task = run.task
        self.key = run.key
        self.title = run.title
        self.wake = wake or threading.Event()
        self._way = link
        self._folders = run.staging, run.kept
        self._clock = clock
        self._recorded: dict[str, str | None] = {n: s["result"] for n, s in run.steps.items()}
        self._used: set[str] = set()
        self._submits: dict[str, int] = {}
        self._staged = count(1)
        self._stop: wire.Stop | None = None
        self._done = 0.0
        self._total: float | None = None
        self._unit = run.unit
        self._note = ""
        self._dirty = False

    @cached_property
    def staging(self) -> Path:
        """An empty folder of this attempt's own, removed when it ends."""
        return _folder(self._folders[0])

    @cached_property
    def kept(self) -> Path:
        """A folder of this job's own that its later attempts find again."""
        return _folder(self._folders[1])

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
            self._dirty = False  # before the values are read: a change that comes meanwhile sets it
            self._way.send(self._snapshot())

    def forked(self) -> None:
        """In a forked copy: nobody sends there, and a thread that is gone may hold the event."""
        self._dirty = True

    # -- inside

    def _moved(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.wake.set()

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

    def _plan(
        self,
        items: Iterable[T],
        name: Callable[[T], str],
        weight: Callable[[T], float] | None,
        unit: str | None,
    ) -> list[Planned[T]]:
        """The steps of a loop that are not recorded yet."""
        plan = [
            Planned(one, _step_name(name(one)), _weight(weight(one) if weight else 0))
            for one in items
        ]
        names = [step.name for step in plan]
        if len(set(names)) < len(names) or not self._used.isdisjoint(names):
            twice = next(n for i, n in enumerate(names) if n in names[:i] or n in self._used)
            raise BadInput("name", f"two steps of this job are called '{twice}'")
        self._used.update(names)
        todo = [step for step in plan if step.name not in self._recorded]
        if weight is None:
            if unit is not None:
                self.progress(unit=unit)
            return todo
        total = sum(step.weight for step in plan)
        done = total - sum(step.weight for step in todo)
        self.progress(done=done, total=total, unit=unit)
        afters = islice(accumulate((step.weight for step in todo), initial=done), 1, None)
        return [step._replace(after=after) for step, after in zip(todo, afters, strict=True)]

    def _known(self, step: Planned[Any]) -> Step | None:
        """What is recorded of a step, where it is."""
        if step.name not in self._recorded:
            return None
        import json

        text = self._recorded[step.name]
        if step.name not in self._used:
            self._used.add(step.name)
            self.progress(done=self._done + step.weight)
        return Step(done=True, result=None if text is None else json.loads(text))

    def _begin(self, step: Planned[Any]) -> int:
        """A step starts now; answers when that is."""
        self.safe_point()
        self.progress(note=step.name)
        return self._clock.now_ms()

    def _finished(self, planned: Planned[Any], step: Step, started_ms: int) -> wire.StepDone:
        text = None
        if step.result is not None:
            what = f"the result of step '{planned.name}'"
            text = json_text(step.result, field="result", what=what)
        return wire.StepDone(0, planned.name, planned.weight, text, started_ms)

    def _record(self, planned: Planned[Any], recorded: wire.StepDone) -> None:
        self._recorded[planned.name] = recorded.result
        self._used.add(planned.name)
        after = planned.after
        self.progress(done=self._done + planned.weight if after is None else after)

    def _place(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Where a file is to be in the end, and where it is made."""
        target = Path(path).absolute()
        if not target.parent.is_dir():
            raise BadInput("path", f"'{target}' cannot be published: there is no such folder")
        return target, self.staging / f"{next(self._staged)}{target.suffix}"

    def _publication(self, staged: Path, target: Path) -> wire.Publish:
        """To be asked when the staged file is whole and on the disk."""
        if staged.is_symlink() or not staged.is_file():
            raise BadInput("path", f"'{target}' cannot be published: the block made no file")
        publishing.sync(staged)
        temporary = target.with_name(f".{target.name}.{self.job}-{self.attempt}")
        return wire.Publish(0, str(target), temporary.name)

    def _submission(
        self, task: Task, args: tuple[Any, ...], kwargs: dict[str, Any], *, step: str
    ) -> wire.Submit:
        text = task.check(task.arguments.named(args, kwargs))
        number = self._submits[step] = self._submits.get(step, 0) + 1
        ordinal = f"{step}-{number}" if step else str(number)
        key = task.render_key(text) or f"{self.job}-{ordinal}"
        title = task.render_title(text)
        return wire.Submit(
            0, task.name, task.app, text, task.lane, key, title, ordinal, task.options
        )


def value_of(answer: wire.Answer) -> Any:
    """What the supervisor answered. Raises ``LeaseLost`` and ``Refused``."""
    if answer.verdict == "lost":
        raise LeaseLost("this run is no longer the job's run")
    if answer.verdict == "refused":
        raise Refused(answer.error or "the worker refused it")
    return answer.value


def named_step(name: str, weight: float) -> Planned[None]:
    return Planned(None, _step_name(name), _weight(weight))


def _folder(path: str) -> Path:
    """Made when it is first asked for, with the rights of the folder it is in."""
    folder = Path(path)
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(folder.parent.stat().st_mode & 0o777)
    return folder


def keep_flushing(wake: threading.Event, flush: Callable[[], None]) -> NoReturn:
    """Send changes, at once and then at most twice a second; sleeps while nothing changes."""
    while True:
        wake.wait()
        wake.clear()
        flush()
        time.sleep(MOVE_INTERVAL_S)


def _step_name(name: object) -> str:
    text = str(name)
    if not 0 < len(text) <= STEP_NAME_LIMIT:
        raise BadInput("name", f"a step's name has 1 to {STEP_NAME_LIMIT} characters: {text!r:.99}")
    return text


def _weight(weight: float) -> float:
    return float(weight) if 0 < weight < inf else 0.0


def _line(text: str) -> str:
    return " ".join(str(text).split())[:NOTE_LIMIT]
