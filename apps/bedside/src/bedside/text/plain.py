"""Plain text to blocks: paragraphs are what blank lines divide, headings are told by how they look.

Never guesses inside a paragraph: a line that merely mentions a chapter stays text.
"""

from __future__ import annotations

import re

from bedside.text.blocks import Block, Kind, Raw, clean, says_something
from bedside.text.titles import Title, title_of

_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
_PICTURE_ACROSS = re.compile(
    r"\[(?:Illustration|Picture|Frontispiece|Plate|Map)\b[^\]]{0,2000}\]", re.IGNORECASE
)
_ITALIC = re.compile(r"(?<![\w_])_([^_\n][^_]{0,400}?)_(?![\w_])")
_BOLD = re.compile(r"(?<![\w=*])([=*])([^\s=*](?:[^=*\n]{0,200}?[^\s=*])?)\1(?![\w=*])")


def read(text: str) -> Raw:
    """``text`` as blocks. Title and author are known only if the text has a Gutenberg header."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
    text = _PICTURE_ACROSS.sub(" ", text)
    text = _BOLD.sub(r"\2", _ITALIC.sub(r"\1", text))
    blocks: list[Block] = []
    gap = 2
    at = 0
    for found in [*_BLANK.finditer(text), None]:
        part = text[at : found.start() if found else len(text)]
        if part.strip():
            _take(part.strip("\n"), gap, blocks)
        if found:
            gap = found.group().count("\n") - 1
            at = found.end()
    return Raw(blocks=tuple(blocks))


def _take(part: str, gap: int, blocks: list[Block]) -> None:
    line = clean(part)
    if not says_something(line):
        blocks.append(Block(Kind.RULE))
        return
    level = _heading(part, line, gap, blocks)
    blocks.append(Block(Kind.HEADING, line, level) if level else Block(Kind.TEXT, line))


def _heading(part: str, line: str, gap: int, before: list[Block]) -> int:
    """The level of the heading that ``part`` is; 0 when it is text."""
    if part.count("\n") > 2 or len(line) > 120:
        return 0
    match title_of(line):
        case Title.PART:
            return 1
        case Title.CHAPTER | Title.STORY:
            return 2
        case Title.FRONT | Title.END:
            return 2 if gap >= 2 else 0
        case _:
            pass
    after_number = (
        bool(before)
        and before[-1].kind is Kind.HEADING
        and title_of(before[-1].text) is not Title.OTHER
    )
    if (
        after_number
        and gap <= 2
        and len(line) <= 80
        and not line.endswith((".", ",", ";", "”", '"', "’"))
    ):
        return 3
    return 2 if gap >= 2 and line.isupper() and len(line) <= 80 and "\n" not in part else 0
