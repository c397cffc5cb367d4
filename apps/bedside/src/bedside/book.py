"""A book as it is read aloud: chapters, paragraphs, sentences. Frozen data; imports nothing of
ours.

Every reader in ``bedside.text`` makes one of these. Chapters are numbered from 1 without gaps; a
chapter with nothing to say (a picture page, an ornament) keeps its number and has no paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


class BedsideError(Exception):
    """Base of what Bedside refuses on purpose. The sentence in it is what a person reads."""


class BookError(BedsideError):
    """The file cannot be read as a book."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences said in one go. ``after_break``: a rule or an ornament stands before it, so the
    pause is longer.
    """

    sentences: tuple[str, ...]
    after_break: bool = False


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: what is heard is its title, then its paragraphs."""

    number: int
    title: str
    paragraphs: tuple[Paragraph, ...]

    @property
    def sentences(self) -> Iterator[str]:
        """The sentences of the text, without the title."""
        return (sentence for paragraph in self.paragraphs for sentence in paragraph.sentences)

    @property
    def characters(self) -> int:
        """What progress is counted in: the characters of the title and of every sentence."""
        return len(self.title) + sum(len(sentence) for sentence in self.sentences)


@dataclass(frozen=True, slots=True)
class Book:
    """A whole book. ``warnings`` are sentences about what was left out or looked odd."""

    title: str
    author: str
    language: str
    chapters: tuple[Chapter, ...]
    warnings: tuple[str, ...] = ()

    @property
    def characters(self) -> int:
        return sum(chapter.characters for chapter in self.chapters)
