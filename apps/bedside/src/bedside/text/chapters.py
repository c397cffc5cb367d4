"""Blocks to chapters: at the marks of the book's own table of contents, else at its headings.

What stands before the first chapter is front matter and is not read; every block from there on
belongs to exactly one chapter. Decides nothing by a file's name or size.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from bedside.book import Chapter, Paragraph
from bedside.text.blocks import Block, Kind, Raw, clean
from bedside.text.sentences import sentences
from bedside.text.titles import Title, label_of, title_of

_WORTH_SAYING = 800
_SHORT_OPENING = 1000
_TITLE_PAGE = 600


@dataclass(slots=True)
class _Section:
    head: Block | None
    kind: Title
    blocks: list[Block] = field(default_factory=list)

    @property
    def characters(self) -> int:
        return sum(len(block.text) for block in self.blocks if block.kind is Kind.TEXT)


def chapters_of(raw: Raw) -> tuple[tuple[Chapter, ...], tuple[str, ...]]:
    """The chapters of ``raw``, numbered from 1, and sentences about what was left out."""
    sections = _sections(raw)
    warnings: list[str] = []
    kept = _choose(sections, raw, warnings)
    chapters: list[Chapter] = []
    part = ""
    for section, following in zip(kept, [*kept[1:], None], strict=True):
        title, body = _titled(section)
        if _only_announces(section, following):
            part = f"{part}. {title}" if part else title
            continue
        title = f"{part}. {title}" if part and title else title or part
        part = ""
        chapters.append(Chapter(len(chapters) + 1, title, _paragraphs(body)))
    return tuple(chapters), tuple(warnings)


def _only_announces(section: _Section, following: _Section | None) -> bool:
    """Whether it is a part's or an epilogue's title page, which belongs to the chapter after it."""
    outer = section.kind in {Title.PART, Title.STORY} and not section.characters
    return outer and following is not None and following.kind in {Title.CHAPTER, Title.PART}


def _sections(raw: Raw) -> list[_Section]:
    wanted = _cuts(raw)
    sections = [_Section(None, Title.OTHER)]
    for at, block in enumerate(raw.blocks):
        if at in wanted:
            sections.append(_Section(block, title_of(block.text)))
        else:
            sections[-1].blocks.append(block)
    return sections


def _cuts(raw: Raw) -> set[int]:
    """Where a section begins: indexes into the blocks."""
    marks = [at for at, block in enumerate(raw.blocks) if block.kind is Kind.MARK]
    if len({raw.blocks[at].text for at in marks} - {raw.title}) >= 2:
        return set(marks)
    heads = [at for at, block in enumerate(raw.blocks) if block.kind is Kind.HEADING]
    kinds = {at: title_of(raw.blocks[at].text) for at in heads}
    numbered = [at for at in heads if kinds[at] is Title.CHAPTER] or [
        at for at in heads if kinds[at] is Title.PART
    ]
    if numbered:
        levels = Counter(raw.blocks[at].level for at in numbered)
        level = max(levels, key=lambda each: (levels[each], -each))
        plain = {Title.OTHER, Title.THE_END}
        return {
            at
            for at in heads
            if (raw.blocks[at].level == level and kinds[at] not in plain)
            or (raw.blocks[at].level <= level + 1 and kinds[at] not in {Title.CHAPTER, *plain})
        }
    return _unnumbered(raw, [at for at in heads if kinds[at] is not Title.THE_END])


def _unnumbered(raw: Raw, heads: list[int]) -> set[int]:
    named = [at for at in heads if not _same(raw.blocks[at].text, raw.title)]
    stories = [at for at in named if title_of(raw.blocks[at].text) is not Title.FRONT]
    levels = Counter(raw.blocks[at].level for at in stories)
    level = min((each for each, count in levels.items() if count >= 2), default=0)
    return {at for at in named if raw.blocks[at].level == level or (level and at not in stories)}


def _choose(sections: list[_Section], raw: Raw, warnings: list[str]) -> list[_Section]:
    """The sections that are read, in order. With no heads at all the whole text is one chapter."""
    sections = _without_contents(sections)
    if len(sections) == 1:
        return sections
    first = next(
        (at for at, each in enumerate(sections) if each.kind in {Title.CHAPTER, Title.PART}), None
    )
    kept: list[_Section] = []
    left_out: list[str] = []
    for at, section in enumerate(sections):
        if _is_read(section, raw, before=first is None or at < first):
            kept.append(section)
        elif section.characters > _WORTH_SAYING:
            left_out.append(
                section.head.text.rstrip(" .")
                if section.head
                else "what stands before the first chapter"
            )
    if left_out:
        warnings.append(f"Left out, as it is no part of the story: {', '.join(left_out[:8])}.")
    return (
        kept
        if any(each.characters for each in kept) or not any(each.characters for each in sections)
        else [_Section(None, Title.OTHER, list(raw.blocks))]
    )


def _is_read(section: _Section, raw: Raw, *, before: bool) -> bool:
    if section.kind is Title.END:
        return False
    if section.head is None:
        return before and section.head is not None
    if section.kind in {Title.CHAPTER, Title.PART, Title.STORY}:
        return True
    if before:
        is_title = _same(section.head.text, raw.title) or section.kind is Title.FRONT
        return (
            not is_title
            and section.head.kind in {Kind.MARK, Kind.HEADING}
            and (section.head.kind is Kind.HEADING or section.characters >= _SHORT_OPENING)
        )
    return True


def _without_contents(sections: list[_Section]) -> list[_Section]:
    """Without a list of contents: a run of empty sections, after which one of them comes again."""
    labels = [label_of(each.head.text) if each.head else "" for each in sections]
    kept: list[_Section] = []
    at = 0
    while at < len(sections):
        end = at
        while end < len(sections) and labels[end] and not sections[end].characters:
            end += 1
        # Between the last of the list and the first chapter a title page may stand.
        last = end < len(sections) and bool(labels[end]) and sections[end].characters < _TITLE_PAGE
        ends = [each for each in (end, end + last) if each < len(labels) and each - at >= 2]
        listed = next((each for each in ends if labels[each] in labels[at:each]), at)
        if listed == at:
            kept.append(sections[at])
        at = max(listed, at + 1)
    return kept


def _titled(section: _Section) -> tuple[str, list[Block]]:
    """The title a section is announced by, and its blocks without what became the title."""
    blocks = list(section.blocks)
    own = section.head.text if section.head and section.head.kind is Kind.HEADING else ""
    names = [own] if own else []
    while blocks and blocks[0].kind in {Kind.HEADING, Kind.RULE}:
        head = blocks.pop(0)
        if head.kind is Kind.HEADING:
            names.append(head.text)
    if not names and section.head:
        names = [section.head.text]
        if blocks and _plain(blocks[0].text) == _plain(section.head.text):
            blocks.pop(0)
    return clean(". ".join(name.strip(" .[]") for name in names)), blocks


def _paragraphs(blocks: list[Block]) -> tuple[Paragraph, ...]:
    made: list[Paragraph] = []
    after_break = False
    for block in blocks:
        if block.kind is Kind.RULE:
            after_break = bool(made)
        elif block.kind is not Kind.MARK:
            said = sentences(block.text)
            if said:
                made.append(
                    Paragraph(said, after_break or (block.kind is Kind.HEADING and bool(made)))
                )
                after_break = False
    return tuple(made)


def _same(one: str, other: str) -> bool:
    """Whether two titles are the same but for case, dots and a subtitle."""
    a, b = (_plain(text.split(", by ")[0]) for text in (one, other))
    return a == b or (min(len(a), len(b)) > 8 and (a.startswith(b) or b.startswith(a)))


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
