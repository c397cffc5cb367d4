"""What a heading says it is: a chapter, a part, something of the story around them, front matter,
end matter.

Pure; shared by the plain-text reader and by ``chapters``.
"""

from __future__ import annotations

import re
from enum import Enum


class Title(Enum):
    """The kinds of heading that matter."""

    CHAPTER = "chapter"
    PART = "part"
    STORY = "story"
    """Outside the numbering and yet part of the story: prologue, epilogue."""
    FRONT = "front"
    END = "end"
    THE_END = "the end"
    OTHER = "other"


_UNITS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen first second third fourth fifth sixth seventh eighth "
    "ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth "
    "eighteenth nineteenth last"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ROMAN = r"(?=[ivxlcdm])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_WORD = (
    f"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_UNITS)}))?|{'|'.join(_UNITS)}|"
    "twentieth|thirtieth|fortieth)"
)
_NUMBER = rf"(?:the )?(?:\d{{1,4}}(?:st|nd|rd|th)?|{_WORD}|{_ROMAN})\b"
_CHAPTER_KIND = (
    "chapter|chap\\.?|letter|stave|canto|scene|adventure|lecture|lesson|"
    "chapitre|kapitel|capítulo|capitolo"
)
_PART_KIND = "book|part|volume|vol\\.?|act|section|phase"
_CHAPTER = re.compile(
    rf"^(?:the )?(?:(?:{_CHAPTER_KIND}) {_NUMBER}|{_WORD} chapter\b|{_NUMBER}$)|"
    rf"^(?:\d{{1,3}}|{_ROMAN})[.:)—–-](?: |$)",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"^(?:the )?(?:(?:{_PART_KIND}) {_NUMBER}|{_WORD} (?:book|part|volume)\b)", re.IGNORECASE
)
_STORY = re.compile(
    r"^(?:(?:the )?(?:first|second|third|last) )?(?:prologue|prolog|prelude|epilogue|epilog|"
    r"interlude|postscript|coda|conclusion)\b",
    re.IGNORECASE,
)
_FRONT = re.compile(
    r"^(?:(?:table of )?contents|list of (?:illustrations|plates|maps|characters)|illustrations|"
    r"(?:(?:author|translator|editor|publisher)[’']s )?(?:preface|introduction|foreword|note)s?|"
    r"title ?page|cover|half[- ]?title|imprint|copyright|dedication|dedicatory|to the reader|"
    r"introductory(?: note)?|advertisement|acknowledge?ments?|dramatis person(?:æ|ae)|transcriber|"
    r"landmarks)(?=\W|$)",
    re.IGNORECASE,
)
_END = re.compile(
    r"^(?:foot)?notes?$|^(?:end ?notes|footnotes|index|glossary|bibliography|appendix|colophon|"
    r"uncopyright|transcriber|advertisements?|the full project gutenberg|project gutenberg|"
    r"full license|errata|also by)\b",
    re.IGNORECASE,
)
_THE_END = re.compile(r"^(?:the end|finis|end)\W*$", re.IGNORECASE)
_AT_END = re.compile(rf"(?:^|\W)(chapter {_NUMBER})[\s.\]]*$", re.IGNORECASE)
_PREFIX = re.compile(rf"^(?:the )?(?:(?:{_CHAPTER_KIND}|{_PART_KIND}) )?({_NUMBER})", re.IGNORECASE)


def chapter_at_end(text: str) -> str:
    """The "Chapter I." that ends a caption or a picture's description, or nothing."""
    found = _AT_END.search(text)
    return found[1] if found else ""


def title_of(text: str) -> Title:
    """What kind of heading ``text`` is."""
    text = text.strip("*_ .—–-[]")
    for kind, pattern in (
        (Title.THE_END, _THE_END),
        (Title.PART, _PART),
        (Title.CHAPTER, _CHAPTER),
        (Title.STORY, _STORY),
        (Title.END, _END),
        (Title.FRONT, _FRONT),
    ):
        if pattern.match(text):
            return kind
    return Title.OTHER


def label_of(text: str) -> str:
    """The numbered part of a heading in one form, so that "CHAPTER I." and "Chapter I: Down"
    compare equal.
    """
    found = _PREFIX.match(text.strip("*_ "))
    said = found.group() if found else text
    return re.sub(r"\W+", " ", said).strip().casefold()
