"""What Project Gutenberg puts around a book, and what it says there: cut off, and read for title,
author, language.

Works on blocks, so it is the same for web pages, plain text and EPUB. Never touches what stands
between the markers, except credit lines at the very start and the closing line at the very end.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bedside.text.blocks import Block, Kind, Raw

_START = re.compile(
    r"\*\*\*?\s*START OF (?:TH(?:E|IS) )?PROJECT GUTENBERG|\*END\s?\*?\s?THE SMALL PRINT",
    re.IGNORECASE,
)
_END = re.compile(
    r"\*\*\*?\s*END OF (?:TH(?:E|IS) )?PROJECT GUTENBERG|^\W*START: FULL LICENSE",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"^\W*end of (?:the |this )?project gutenberg", re.IGNORECASE)
_CREDIT = re.compile(
    r"^\W*(?:produced by|(?:this )?e-?(?:text|book) (?:was )?(?:prepared|produced)|prepared by|"
    r"transcribed (?:from|by)|html version|scanned (?:and|by)|credits?:|"
    r"transcriber[’']?s?[’']? note|this file was produced|proofread)",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\b(Title|Author|Language): (.+?)(?= (?:Title|Author|Editor|Illustrator|Translator|Language|"
    r"Release Date|Posting Date|Last Updated|Most recently|Character set|Credits|"
    r"Original publication):|$)"
)
_BY = re.compile(
    r"^(?:The )?Project Gutenberg(?:[’']s)?(?: e-?(?:book|text))?(?: of)? (.+?), by (.+)$",
    re.IGNORECASE,
)


def cut(raw: Raw) -> Raw:
    """``raw`` without header, licence and credits; its title, author and language filled in from
    the header.
    """
    blocks = list(raw.blocks)
    starts = [at for at, block in enumerate(blocks) if _START.search(block.text)]
    ends = [at for at, block in enumerate(blocks) if _END.search(block.text)]
    if starts:
        raw = _described(raw, blocks[: starts[0]])
    end = min((at for at in ends if not starts or at > starts[0]), default=len(blocks))
    blocks = blocks[starts[0] + 1 if starts else 0 : end]
    if starts or ends:
        blocks = _without_credits(blocks)
    while blocks and (blocks[-1].kind is Kind.RULE or _CLOSING.match(blocks[-1].text)):
        blocks.pop()
    return raw.with_blocks(blocks)


def _without_credits(blocks: list[Block]) -> list[Block]:
    head = [block for block in blocks[:12] if not _CREDIT.match(block.text)]
    tail = [
        block
        for block in blocks[12:][-6:]
        if not (_CREDIT.match(block.text) or _CLOSING.match(block.text))
    ]
    return [*head, *blocks[12:][:-6], *tail]


def _described(raw: Raw, header: list[Block]) -> Raw:
    said: dict[str, str] = {}
    for block in header:
        for name, value in _FIELD.findall(block.text):
            said.setdefault(name.lower(), value.strip())
        by = _BY.match(block.text)
        if by:
            said.setdefault("title", by.group(1))
            said.setdefault("author", by.group(2))
    return replace(
        raw,
        title=said.get("title", raw.title),
        author=said.get("author", raw.author),
        language=said.get("language", raw.language),
    )
