"""Plain text to blocks: paragraphs are what blank lines divide, headings are told by how they look.

Never guesses inside a paragraph: a line that merely mentions a chapter stays text.
"""

from __future__ import annotations

import re

from bedside.text.blocks import Block, Kind, Raw, clean, says_something
from bedside.text.titles import Title, chapter_at_end, title_of

_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
_PICTURE_ACROSS = re.compile(
    r"\[(?:Illustration|Picture|Frontispiece|Plate|Map)\b(?:[^\[\]]|\[[^\[\]]{0,500}\]){0,2000}\]",
    re.IGNORECASE,
)
_BARE = re.compile(r"^[IVXLC\d]+\.?$")
_ITALIC = re.compile(r"(?<![\w_])_([^_\n][^_]{0,400}?)_(?![\w_])")
_BOLD = re.compile(r"(?<![\w=*])([=*])([^\s=*](?:[^=*\n]{0,200}?[^\s=*])?)\1(?![\w=*])")


def read(text: str) -> Raw:
    """``text`` as blocks. Title and author are known only if the text has a Gutenberg header."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
    text = _PICTURE_ACROSS.sub(_caption, text)
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


def _caption(found: re.Match[str]) -> str:
    # Some editions draw the first chapter's heading, so that it stands only in the caption.
    label = chapter_at_end(found[0].strip().rpartition("\n")[2].strip(" _]"))
    return f"\n\n\n{label}.\n\n\n" if label and "\n" in found[0] else " "


def _take(part: str, gap: int, blocks: list[Block]) -> None:
    line = clean(part)
    if not says_something(line):
        blocks.append(Block(Kind.RULE))
        return
    level = _heading(part, line, gap, blocks)
    blocks.append(Block(Kind.HEADING, line, level) if level else Block(Kind.TEXT, line))


def _heading(part: str, line: str, gap: int, before: list[Block]) -> int:
    """The level of the heading that ``part`` is; 0 when it is text."""
    following = part.splitlines()[1:]
    listed = any(title_of(each.strip()) is Title.CHAPTER for each in following)
    if listed or len(following) > 2 or len(line) > 120:
        return 0
    match title_of(line):
        case Title.PART:
            return 1
        case Title.CHAPTER | Title.STORY:
            # A bare numeral may count the parts of a chapter that has a name.
            return 3 if _BARE.match(line) else 2
        case Title.FRONT | Title.END:
            return 2 if gap >= 2 else 0
        case _:
            return _by_looks(line, gap, before, one_line=not following)


def _by_looks(line: str, gap: int, before: list[Block], *, one_line: bool) -> int:
    last = before[-1] if before else None
    after_number = (
        last is not None and last.kind is Kind.HEADING and title_of(last.text) is not Title.OTHER
    )
    short = len(line) <= 80
    if after_number and gap <= 2 and short and not line.endswith((".", ",", ";", "”", '"', "’")):
        return 3
    return 2 if gap >= 2 and line.isupper() and short and one_line else 0
