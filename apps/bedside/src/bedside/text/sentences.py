"""A paragraph to sentences a voice can say in one breath. Nothing of the text is changed or lost
but white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bedside.text.blocks import says_something

LONGEST = 300
"""Characters of a sentence. A longer one is split where a reader would breathe."""

_ABBREVIATION = re.compile(
    r"(?:^|[\s(“‘\"'—-])(?:Mr|Mrs|Ms|Dr|St|Messrs|Mme|Mlle|Rev|Hon|Capt|Col|Gen|Lieut|Lt|Sgt|Maj|Adm|Prof|Esq|No|Vol|"
    r"Mt|Ft|Bros|viz|&c|etc|i\.e|e\.g|cf|\d+s|[A-Z])\.$"
)
_OPEN_END = re.compile(r"[.!?…][”’\"')\]]*$")
_BREATHS = (re.compile(r"[;:](?=\s)|[—–]|--"), re.compile(r",(?=\s)"), re.compile(r"\s"))


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of one paragraph, each at most ``LONGEST`` characters, each with something to
    say.
    """
    whole: list[str] = []
    for piece in _segments(text):
        if whole and _belongs(whole[-1], piece):
            whole[-1] = f"{whole[-1]} {piece}"
        else:
            whole.append(piece)
    return tuple(part for sentence in whole for part in _capped(sentence) if says_something(part))


def _segments(text: str) -> Iterator[str]:
    from syntok import segmenter

    starts = [
        sentence[0].offset
        for paragraph in segmenter.process(text)
        for sentence in paragraph
        if sentence
    ]
    # The segmenter's rules for English serve the other European languages well enough.
    starts = sorted({0, *starts}) if starts else [0]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:end].strip()
        if piece:
            yield piece


def _belongs(before: str, piece: str) -> bool:
    """Whether ``piece`` is the rest of the sentence ``before``, which a full stop only seemed to
    end.
    """
    if _ABBREVIATION.search(before) or not says_something(piece):
        return True
    first = piece.lstrip("“‘\"'([—-")[:1]
    return first.islower() and bool(_OPEN_END.search(before)) and piece[:1] not in '“‘"('


def _capped(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST:
        cut = _breath(sentence)
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    yield sentence


def _breath(sentence: str) -> int:
    """Where to cut a sentence that is too long: the last good place before the limit, else at the
    limit.
    """
    for places in _BREATHS:
        ends = [
            found.end()
            for found in places.finditer(sentence, 0, LONGEST)
            if found.end() >= LONGEST // 4
        ]
        if ends:
            return ends[-1]
    return LONGEST
