"""HTML as values: whatever is not made by ``tag`` is text, and is escaped.

For the pages that are written here (the one without JavaScript). It must never offer a way to put
a text in unescaped: there is none to forget.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

VOID = ("br", "input", "link", "meta")


class Markup(str):
    """Made by ``tag`` only."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """``tag("a", "text", href="x")``. ``class_`` and ``for_`` lose their underscore, ``True`` is an
    attribute without a value, ``None`` and ``False`` are left out.
    """
    told = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    end = "" if name in VOID else f"</{name}>"
    return Markup(f"<{name}{told}>{together(children)}{end}")


def together(children: Child) -> Markup:
    """All of them, one after the other."""
    match children:
        case None:
            return Markup()
        case Markup():
            return children
        case str() | int():
            return Markup(_text(children))
        case _:
            return Markup("".join(map(together, children)))


def _text(value: str | int) -> str:
    # A lone half of a character can't be sent as UTF-8; jobs may hold one.
    return escape(str(value)).encode(errors="replace").decode()
