"""The messages between a supervisor and its child: one JSON object a line over a socket pair.

Used by worker.process (one end) and worker.child with context.py (the other). Pure: it turns
messages into bytes and back, and never reads, writes or waits. Lines are ASCII, so a lone surrogate
or a NUL in somebody's text survives; NaN and infinity are never written and never accepted. ``re``
numbers a question, its ``Answer`` carries the same number. What arrives is checked field by field:
a broken child must not break its supervisor. ``job`` says whose a message is where a process runs
several; one that runs a single job leaves it 0. The messages are named tuples: making a dataclass
takes eight times as long, at every start of a child.
"""

from __future__ import annotations

import json
from sys import float_info
from typing import Any, Literal, NamedTuple, NoReturn

from lineclear.errors import LineClearError, TooLarge
from lineclear.job import Cause, Options, Outcome

WIRE_VERSION = 1
LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one message, its line end included."""


class WireError(LineClearError):
    """The other side sent something that is no message of this version."""


class MessageTooLarge(TooLarge):
    """A message is over ``LINE_LIMIT``."""


class Run(NamedTuple):
    """The job, sent once. ``steps``: recorded name → ``weight`` and ``result`` (JSON text)."""

    job: int
    attempt: int
    lane: str
    task: str
    app: str
    args: str
    key: str | None
    title: str
    unit: str
    steps: dict[str, Any]
    staging: str
    kept: str
    memory_mb: int | None
    started_ms: int
    version: int = WIRE_VERSION


class Stop(NamedTuple):
    """The next safe point must raise; ``now``: a coroutine's next ``await`` too."""

    why: Literal["cancel", "interrupt", "timeout"]
    by: str = ""
    now: bool = False
    job: int = 0


class Answer(NamedTuple):
    """What became of question ``re``; ``lost`` means this run is no longer the job's run."""

    re: int
    verdict: Literal["kept", "lost", "refused"]
    value: Any = None
    error: str | None = None
    job: int = 0


class Ready(NamedTuple):
    """The child has booted and waits for ``run``."""

    pid: int
    version: int = WIRE_VERSION


class Moved(NamedTuple):
    """The work advanced; at most two a second."""

    done: float | None
    total: float | None
    unit: str
    note: str
    job: int = 0


class Printed(NamedTuple):
    """What a job that shares its process has printed: whole lines, or the rest at its end."""

    stream: Literal["o", "e"]
    text: str
    job: int = 0


class StepDone(NamedTuple):
    """A step is finished and wants to be recorded; answered."""

    re: int
    name: str
    weight: float
    result: str | None
    started_ms: int
    job: int = 0


class Publish(NamedTuple):
    """A file is to replace ``path``, perhaps through ``temporary``, a name beside it; answered."""

    re: int
    path: str
    temporary: str
    job: int = 0


class Submit(NamedTuple):
    """A job below this one; ``ordinal`` is the same when a resumed run submits again; answered."""

    re: int
    task: str
    app: str
    args: str
    lane: str
    key: str
    title: str
    ordinal: str
    options: Options
    job: int = 0


class Ended(NamedTuple):
    """The task is over. A process of its own is answered, and then exits."""

    re: int
    outcome: Outcome
    job: int = 0


Message = Run | Stop | Answer | Ready | Moved | Printed | StepDone | Publish | Submit | Ended
Question = StepDone | Publish | Submit | Ended

_KINDS: dict[str, type[Message]] = {
    "run": Run, "stop": Stop, "answer": Answer, "ready": Ready, "moved": Moved,
    "printed": Printed, "step": StepDone, "publish": Publish, "submit": Submit, "ended": Ended,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}
_NESTED: dict[str, type[Outcome | Options]] = {"Outcome": Outcome, "Options": Options}
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "int | None": (int, type(None)), "str": (str,), "str | None": (str, type(None)),
    "float": (int, float), "float | None": (int, float, type(None)), "dict[str, Any]": (dict,),
    "Any": (object,), "bool": (bool,), "Cause": (str,), "RunsIn": (str,),
}  # fmt: skip


def encode(message: Message) -> bytes:
    """One line. Raises ``MessageTooLarge``; ``ValueError`` for a NaN."""
    body = {"t": _NAMES[type(message)], **_content(message)}
    text = json.dumps(body, allow_nan=False, separators=(",", ":"), default=_content)
    if len(text) + 1 > LINE_LIMIT:
        raise MessageTooLarge("message", _too_large(body["t"], len(text) + 1))
    return text.encode("ascii") + b"\n"


def decode(line: bytes) -> Message:
    """The message in one line. Raises ``WireError``."""
    try:
        body = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is no JSON: {error}") from error
    kind = _KINDS.get(str(body.pop("t", ""))) if isinstance(body, dict) else None
    if kind is None:
        raise WireError(f"a message of an unknown kind came: {line[:80]!r}")
    if (version := body.get("version", WIRE_VERSION)) != WIRE_VERSION:
        raise WireError(
            f"the other side speaks version {version} of the messages, this one version "
            f"{WIRE_VERSION}: worker and child come from two installations, start the worker again"
        )
    message: Message = _build(kind, body)
    return message


class Reader:
    """Puts lines together from whatever pieces arrive."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages ``data`` completes. Raises ``WireError`` and ``MessageTooLarge``."""
        if (end := data.rfind(b"\n")) < 0:
            self._rest += data
            self._bound(len(self._rest))
            return []
        lines = (bytes(self._rest) + data[:end]).split(b"\n")
        self._rest = bytearray(data[end + 1 :])
        self._bound(max(map(len, lines)))
        return [decode(line) for line in lines]

    @staticmethod
    def _bound(size: int) -> None:
        if size >= LINE_LIMIT:
            raise MessageTooLarge("message", _too_large("arriving", size))


def _content(value: object) -> dict[str, Any]:
    if not isinstance(value, Message | Outcome | Options):
        raise TypeError(f"{type(value).__name__} is no part of a message")
    return {name: getattr(value, name) for name in _declared(type(value))}


def _declared(kind: type) -> dict[str, str]:
    """Names and types of the fields, as they are written above."""
    return {n: str(getattr(t, "__forward_arg__", t)) for n, t in kind.__annotations__.items()}


def _build(kind: type[Any], body: object) -> Any:
    if not isinstance(body, dict):
        raise WireError(f"{kind.__name__} is not an object")
    try:
        for name, declared in _declared(kind).items():
            if name in body:
                body[name] = _field(kind, declared, name, body[name])
        return kind(**body)
    except (TypeError, ValueError) as error:
        raise WireError(f"{kind.__name__} does not fit: {error}") from error


def _field(kind: type[Any], declared: str, name: str, value: Any) -> Any:
    if declared in _NESTED:
        return _build(_NESTED[declared], value)
    if declared.startswith("Literal["):
        good = isinstance(value, str) and repr(value) in declared
    else:
        good = isinstance(value, _TYPES[declared])
        good = good and not (isinstance(value, bool) and declared.startswith(("int", "float")))
    if good and declared.startswith("float") and value is not None:
        good = abs(value) <= float_info.max  # 1e999 is read as infinity
    if not good:
        raise WireError(f"{kind.__name__}.{name} must be {declared}, not {value!r:.80}")
    return Cause(value) if declared == "Cause" else value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _too_large(what: str, size: int) -> str:
    return f"the {what!r} message has {size} bytes, the limit is {LINE_LIMIT}"
