"""A task: the function that does a kind of job, with how its jobs want to be run.

``Queue.task`` makes one (``make_task``), ``Queue.submit`` checks arguments with it, the child finds
it again by its ``app`` (``load_task``). An ``app`` is "module:name" or "/path/file.py:name" and is
taken from a registered function only, never from a request. Registering must stay light: nothing is
resolved, imported or opened before it is asked for.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lineclear.arguments import Arguments
from lineclear.errors import BadInput, Refused, TaskLoadError
from lineclear.job import TEXT_LIMIT, Options, RunsIn

if TYPE_CHECKING:
    from lineclear.job import Job

LOADING = "LINECLEAR_LOADING"
"""Set in a child's environment while it loads the application; nothing may be submitted then."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TEMPLATE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PATH = "__lineclear_path__"


class Submitter(Protocol):
    """What a task needs of its queue."""

    def submit(self, task: Task, args: Mapping[str, Any], /) -> Job: ...


class Application(Protocol):
    """What ``load_app`` returns: a ``Queue``, by the part this module needs."""

    @property
    def tasks(self) -> dict[str, Task]: ...


@dataclass(frozen=True, eq=False)
class Task:
    """A registered task. Called, it is its function; ``submit`` puts a job for it in line."""

    name: str
    lane: str
    function: Callable[..., Any]
    app: str
    arguments: Arguments
    key: str | None
    title: str | None
    options: Options
    queue: Submitter | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def submit(self, *args: Any, **kwargs: Any) -> Job:
        """Put a job in line, at once. Raises ``BadInput`` naming the argument that does not fit."""
        if self.queue is None:
            raise Refused(f"the task '{self.name}' belongs to no queue")
        refuse_while_loading()
        return self.queue.submit(self, self.arguments.named(args, kwargs))

    def check(self, args: Mapping[str, Any]) -> str:
        """Canonical JSON text of all arguments, defaults included; see ``Arguments.check``."""
        return self.arguments.check(args)

    def bind(self, text: str) -> dict[str, Any]:
        """Keyword arguments for the function, from what ``check`` returned."""
        return self.arguments.bind(text)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return self.arguments.schema()

    def render_key(self, text: str) -> str | None:
        """The job's key, from what ``check`` returned; ``None`` where the task has no key."""
        return None if self.key is None else check_key(_fill(self.key, text))

    def render_title(self, text: str) -> str:
        """The job's title, from what ``check`` returned; empty where the task has none."""
        return "" if self.title is None else _fill(self.title, text)[:TEXT_LIMIT]


def make_task(
    function: Callable[..., Any],
    *,
    queue: Submitter | None = None,
    lane: str = "default",
    name: str | None = None,
    key: str | None = None,
    title: str | None = None,
    retries: int = 0,
    retry_delay_s: float = 60.0,
    timeout_s: float | None = None,
    memory_mb: int | None = None,
    nice: int | None = None,
    unit: str = "",
    max_interruptions: int = 3,
    runs_in: Literal["own", "thread"] | None = None,
) -> Task:
    """A task of ``function``. Raises ``BadInput`` naming the option that does not fit."""
    name = function.__name__ if name is None else name
    place = _place(function, name, runs_in)
    arguments = Arguments.of(function)
    check_name("name", name)
    check_name("lane", lane)
    _check_template("key", key, arguments)
    _check_template("title", title, arguments)
    _at_least("retries", retries, 0)
    _at_least("retry_delay_s", retry_delay_s, 0)
    _at_least("max_interruptions", max_interruptions, 0)
    _at_least("memory_mb", memory_mb, 1)
    if timeout_s is not None and not timeout_s > 0:
        raise BadInput("timeout_s", f"timeout_s must be above 0, not {timeout_s}")
    if nice is not None and not -20 <= nice <= 19:
        raise BadInput("nice", f"nice must be -20 to 19, not {nice}")
    for field, limit in (("memory_mb", memory_mb), ("nice", nice)):
        if limit is not None and place != "own":
            raise BadInput(field, f"{field} cannot hold for '{name}': it shares its process")
    options = Options(
        retries=retries,
        retry_delay_s=retry_delay_s,
        timeout_s=timeout_s,
        memory_mb=memory_mb,
        nice=nice,
        max_interruptions=max_interruptions,
        unit=unit,
        runs_in=place,
    )
    return Task(name, lane, function, app_of(function), arguments, key, title, options, queue)


def _place(function: Callable[..., Any], name: str, runs_in: str | None) -> RunsIn:
    """Coroutines share their lane's host process; a function does where it asks for a thread."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise Refused(f"'{name}' yields: a task returns its result")
    if runs_in not in (None, "own", "thread"):
        raise BadInput("runs_in", f"runs_in must be 'own' or 'thread', not {runs_in!r:.40}")
    if inspect.iscoroutinefunction(function):
        if runs_in is not None:
            raise BadInput(
                "runs_in", f"'{name}' is a coroutine, which runs in its lane's host process"
            )
        return "coroutine"
    return "thread" if runs_in == "thread" else "own"


def register(tasks: dict[str, Task], task: Task) -> None:
    """Add a task. A module loaded twice may replace its own, another may not take the name."""
    known = tasks.get(task.name)
    if known is not None and known.app != task.app:
        raise BadInput("name", f"two tasks are called '{task.name}': {known.app} and {task.app}")
    tasks[task.name] = task


def check_name(field: str, name: str) -> str:
    """A lane's or task's name. Raises ``BadInput`` saying the rule."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            field, f"{field}: {name!r:.100} is not 1 to 64 letters, digits, dots, _ and -"
        )
    return name


def check_key(key: str) -> str:
    """A job's key. Raises ``BadInput`` saying how long it may be."""
    if not 0 < len(key) <= TEXT_LIMIT:
        raise BadInput("key", f"the key has {len(key)} characters, not 1 to {TEXT_LIMIT}")
    return key


def refuse_while_loading() -> None:
    """A script that submits when it is imported would submit again in every child that loads it."""
    if os.environ.get(LOADING):
        raise Refused(
            "the application submits a job while it is being loaded: "
            "put that below \"if __name__ == '__main__':\""
        )


def app_of(function: Callable[..., Any]) -> str:
    """Where a child finds this function."""
    module = function.__module__
    path = getattr(function, "__globals__", {}).get(_PATH)
    if path is None and module == "__main__":
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec is not None else str(Path(file).absolute()) if file else module
    return f"{path or module}:{function.__qualname__}"


def load_app(app: str) -> Application:
    """The queue of an application, "module:attribute"; "module" alone means "module:queue".

    Raises ``TaskLoadError``.
    """
    found = _load(app if ":" in app else f"{app}:queue")
    if not isinstance(getattr(found, "tasks", None), dict):
        raise TaskLoadError(f"'{app}' is no Queue but a {type(found).__name__}")
    queue: Application = found
    return queue


def load_task(app: str) -> Task:
    """The task a job names. Raises ``TaskLoadError``."""
    found = _load(app)
    if not isinstance(found, Task):
        # The name may hold the bare function, with the task registered under another one.
        module = sys.modules.get(getattr(found, "__module__", None) or "", None)
        for one in vars(module).values() if module else ():
            if isinstance(one, Task) and one.function is found:
                return one
        raise TaskLoadError(f"'{app}' is no task but a {type(found).__name__}")
    return found


def _load(app: str) -> Any:
    name, _, attribute = app.rpartition(":")
    if not name or not attribute:
        raise TaskLoadError(f"'{app}' is not of the form module:attribute")
    if "<locals>" in attribute:
        raise TaskLoadError(f"'{app}' is defined inside a function, where no worker can find it")
    if name == "__main__":
        raise TaskLoadError(f"'{app}' was defined at a prompt: put the task into a file")
    found: Any = _module(app, name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise TaskLoadError(f"'{app}' cannot be loaded: {name} has no '{part}'")
        found = getattr(found, part)
    return found


def _module(app: str, name: str) -> ModuleType:
    path = Path(name) if name.endswith(".py") or os.sep in name else None
    folder = str(path.absolute().parent if path else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name) if path is None else _run_file(path.absolute())
    except MemoryError:
        raise
    except ModuleNotFoundError as error:
        where = f"; looked in {folder} and where Python looks" if error.name == name else ""
        raise TaskLoadError(f"'{app}' cannot be loaded: {error}{where}") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise TaskLoadError(f"'{app}' cannot be loaded: {reason}") from error


def _run_file(path: Path) -> ModuleType:
    # Under its own name where that is free, so that processes the task starts can import it too.
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    name = path.stem if path.stem not in sys.modules else f"_lineclear_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    loader = SourceFileLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    vars(module)[_PATH] = str(path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check_template(field: str, template: str | None, arguments: Arguments) -> None:
    # Only plain names: a template is its author's, but what it is filled with is anybody's.
    names = {parameter.name for parameter in arguments.parameters}
    for match in _TEMPLATE.finditer(template or ""):
        if match[0] not in ("{{", "}}") and match[1] not in names:
            known = ", ".join(f"{{{name}}}" for name in sorted(names)) or "nothing"
            raise BadInput(field, f"{field}: {match[0]} cannot be filled in, only {known}")


def _fill(template: str, text: str) -> str:
    values = json.loads(text)

    def one(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        value = values[match[1]]
        return value if isinstance(value, str) else json.dumps(value)

    return _TEMPLATE.sub(one, template)


def _at_least(field: str, value: float | None, least: int) -> None:
    if value is not None and not value >= least:
        raise BadInput(field, f"{field} must be {least} or more, not {value}")
