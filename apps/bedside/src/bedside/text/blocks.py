"""The common form between a file and a book: a flat run of blocks, each met once, in reading order.

The readers make blocks, ``gutenberg`` cuts its boilerplate out of them, ``chapters`` makes chapters
of what is left. Never decides what a chapter is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum


class Kind(Enum):
    """What a block is."""

    TEXT = "text"
    HEADING = "heading"
    RULE = "rule"
    MARK = "mark"
    """A place the book's own table of contents points at; ``text`` is the label there."""


@dataclass(frozen=True, slots=True)
class Block:
    """One paragraph, heading, rule or mark. ``level`` is 1 (highest) to 6 for headings and marks,
    else 0.
    """

    kind: Kind
    text: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class Raw:
    """A file taken apart: what it says of itself, and its blocks."""

    title: str = ""
    author: str = ""
    language: str = ""
    blocks: tuple[Block, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def with_blocks(self, blocks: list[Block]) -> Raw:
        return replace(self, blocks=tuple(blocks))


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_PICTURE = re.compile(
    r"\[(?:Illustration|Picture|Frontispiece|Plate|Map)\b(?:[^\[\]]|\[[^\[\]]*\])*\]", re.IGNORECASE
)
_PAGE = re.compile(r"\s?(?:\[(?:Pg|Page|p\.)\s*[\divxlc]+\]|\{\d{1,4}\})", re.IGNORECASE)
_NOTE_MARK = re.compile(r"\s?\[(?:\d{1,3}|[*†‡§]|[A-Z])\](?=\W|$)")
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """One line of plain text: no picture captions, page numbers, note marks or invisible
    characters.
    """
    text = _INVISIBLE.sub("", text)
    if "[" in text or "{" in text:
        text = _NOTE_MARK.sub("", _PAGE.sub("", _PICTURE.sub(" ", text)))
    return _SPACE.sub(" ", text).strip()


def says_something(text: str) -> bool:
    """Whether a voice has anything to say of it: at least one letter or digit of any script."""
    return any(character.isalnum() for character in text)
