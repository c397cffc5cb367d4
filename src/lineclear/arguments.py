"""What a task takes: its parameters, checked when a job is submitted and handed over in the child.

Called by tasks.py. Never imports pydantic while every value already has the plain JSON type that
its parameter names: that import costs more than starting the child.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Union

from lineclear.errors import BadInput, Refused, TooLarge
from lineclear.job import PAYLOAD_LIMIT

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_PLAIN = (Any, str, int, float, bool, None, type(None), list, dict)
_CONTEXTS = ("Context", "AsyncContext")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def json_text(value: object, *, field: str, what: str) -> str:
    """Compact ASCII JSON. Raises ``BadInput`` or ``TooLarge``, a sentence about ``what``."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(field, f"{what} cannot be stored as JSON: {error}") from error
    if len(text) > PAYLOAD_LIMIT:
        raise TooLarge(field, _too_large(what, len(text)))
    return text


@dataclass(frozen=True, eq=False)
class Arguments:
    """The parameters of one task's function, its ``ctx`` left out."""

    function: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]
    takes_context: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Arguments:
        """Raises ``Refused`` for parameters that have no name to submit them by."""
        parameters = tuple(inspect.signature(function).parameters.values())
        takes_context = bool(parameters) and _is_context(parameters[0])
        for parameter in parameters[takes_context:]:
            if parameter.kind not in _NAMED:
                raise Refused(f"the parameter '{parameter}' of a task must have a name of its own")
        return cls(function, parameters[takes_context:], takes_context)

    def named(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments by name."""
        places = [p.name for p in self.parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        if len(positional) > len(places):
            raise BadInput("args", f"{len(positional)} arguments are too many: {self._takes}")
        args = dict(zip(places, positional, strict=False))
        for name in named:
            if name in args:
                raise BadInput(name, f"{name}: this argument is given twice")
        return {**args, **named}

    def check(self, args: Mapping[str, Any]) -> str:
        """Canonical JSON text of all arguments, with defaults. Raises ``BadInput`` naming one."""
        self._names(args)
        pieces = {p.name: self._piece(p.name, args.get(p.name, p.default)) for p in self.parameters}
        text = "{" + ",".join(f"{json.dumps(name)}:{piece}" for name, piece in pieces.items()) + "}"
        if len(text) > PAYLOAD_LIMIT:
            largest = max(pieces, key=lambda name: len(pieces[name]))
            raise TooLarge(largest, _too_large(f"{largest}: all arguments together", len(text)))
        return text

    def bind(self, text: str) -> dict[str, Any]:
        """What the function is called with. Raises ``BadInput`` where the task has changed."""
        args: dict[str, Any] = json.loads(text)
        self._names(args)
        return {name: self._value(name, value) for name, value in args.items()}

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, as a form shows it."""
        from pydantic import TypeAdapter

        names = [p.name for p in self.parameters]
        schemas, shared = TypeAdapter.json_schemas(
            [(name, "validation", self._adapter(name)) for name in names]
        )
        properties: dict[str, Any] = {name: {**schemas[name, "validation"]} for name in names}
        for p in self.parameters:
            if p.default is not p.empty:
                properties[p.name]["default"] = json.loads(self._piece(p.name, p.default))
        required = [p.name for p in self.parameters if p.default is p.empty]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
            **shared,
        }

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """Resolved late, and without ``ctx``: often only a type checker imports ``Context``."""
        given = {p.name: Any if p.annotation is p.empty else p.annotation for p in self.parameters}
        holder = types.SimpleNamespace(__annotations__=given)
        scope = getattr(inspect.unwrap(self.function), "__globals__", {})
        try:
            hints = typing.get_type_hints(holder, globalns=scope, include_extras=True)
        except Exception as error:
            raise Refused(f"an annotation of the task cannot be read: {error}") from error
        # "voice: str = None" means what it says to everybody but a type checker.
        return {p.name: _optional(hints[p.name], p.default) for p in self.parameters}

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {}

    @property
    def _takes(self) -> str:
        return f"this task takes {', '.join(p.name for p in self.parameters) or 'no arguments'}"

    def _names(self, args: Mapping[str, Any]) -> None:
        known = {p.name: p.default is p.empty for p in self.parameters}
        for name in args:
            if name not in known:
                raise BadInput(str(name), f"{name}: there is no such argument, {self._takes}")
        for name, needed in known.items():
            if needed and name not in args:
                raise BadInput(name, f"{name}: this argument is missing, {self._takes}")

    def _piece(self, name: str, value: Any) -> str:
        annotation = self.annotations[name]
        if plain(annotation):
            if not _fits(value, annotation):
                value = self._validated(name, lambda adapter: adapter.validate_python(value))
            text = json_text(value, field=name, what=f"{name}: this value")
            if json.loads(text) != value:
                raise BadInput(
                    name, f"{name}: JSON would change this value; it has text keys and lists only"
                )
            return text
        checked = self._validated(name, lambda adapter: adapter.validate_python(value))
        try:
            value = self._adapter(name).dump_python(checked, mode="json")
        except ValueError as error:
            raise BadInput(name, f"{name}: this value cannot be stored as JSON: {error}") from error
        return json_text(value, field=name, what=f"{name}: this value")

    def _value(self, name: str, value: Any) -> Any:
        if plain(self.annotations[name]):
            return value
        return self._validated(name, lambda adapter: adapter.validate_json(json.dumps(value)))

    def _validated(self, name: str, validate: Callable[[TypeAdapter[Any]], Any]) -> Any:
        from pydantic import ValidationError

        try:
            return validate(self._adapter(name))
        except ValidationError as error:
            _refuse(name, error)

    def _adapter(self, name: str) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        if name not in self._adapters:
            try:
                self._adapters[name] = TypeAdapter(self.annotations[name])
            except PydanticUserError as error:
                reason = str(error).splitlines()[0]
                raise BadInput(name, f"{name}: its type cannot be checked: {reason}") from error
        return self._adapters[name]


def plain(annotation: Any) -> bool:
    """Whether JSON carries every value of this type as it is."""
    inner = typing.get_args(annotation)
    match typing.get_origin(annotation):
        case None:
            return any(annotation is one for one in _PLAIN)
        case origin if origin in (Union, types.UnionType, list):
            return all(map(plain, inner))
        case origin:
            return origin is dict and inner[0] is str and plain(inner[1])


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value already is of a plain type. Where it is not, pydantic decides."""
    inner = typing.get_args(annotation)
    match typing.get_origin(annotation):
        case None:
            if annotation is Any:
                return True
            return value is None if annotation is None else type(value) is annotation
        case origin if origin is list:
            return type(value) is list and all(_fits(one, inner[0]) for one in value)
        case origin if origin is dict:
            return type(value) is dict and all(
                type(key) is str and _fits(one, inner[1]) for key, one in value.items()
            )
        case _:
            return any(_fits(value, one) for one in inner)


def _refuse(name: str, error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join([name, *map(str, first["loc"])])
    raise BadInput(name, f"{path}: {first['msg']}") from error


def _optional(annotation: Any, default: object) -> Any:
    return annotation | None if default is None else annotation


def _is_context(parameter: inspect.Parameter) -> bool:
    # By name: context.py imports this package's lower half, never the other way round.
    annotation = parameter.annotation
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return parameter.name == "ctx" or kind.strip("'\"").rpartition(".")[2] in _CONTEXTS


def _too_large(what: str, size: int) -> str:
    return f"{what} has {size:,} bytes of JSON, the limit is {PAYLOAD_LIMIT:,}"
