"""The render: a book of the library, chapter by chapter, sentence by sentence, to published audio.

Runs in the worker's child, from ``jobs.render``. The library's docstring tells the order of writes
that makes a crash at any instruction harmless. Never writes anything of a chapter before the
chapter is whole, but for the pieces, which nobody hears.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedside import sound
from bedside.book import Book, BookError, Chapter
from bedside.fetch import Gutenberg
from bedside.home import gutenberg
from bedside.library import Library
from bedside.pieces import FORMAT, Pieces
from bedside.rows import BookRow, Rendered
from bedside.sound import Said, Tags
from bedside.speech import Voice, VoiceError, check_voice, load_voice
from bedside.text import PARSER, read_book
from bedside.text.spoken import spoken
from lineclear import Context

if TYPE_CHECKING:
    from bedside.speech import Samples

FAILURES_IN_A_ROW = 10
"""So many sentences in a row without a sound mean a broken voice, not ten odd sentences."""
SILENCE_MS = 500
_LONGEST_S = 120


def render_book(ctx: Context, number: int, voice_name: str, *, home: Path) -> dict[str, Any]:
    """Render what is missing of a book. Its text is read, and its totals written, before any voice
    is loaded (B04).
    """
    began = time.monotonic()
    check_voice(voice_name)
    with Library.open(home) as library:
        row = library.get(number)
        book = read_book(_source(ctx, library, row))
        library.parsed(number, book)
        library.begin(number, voice_name)
        studio = _Studio(ctx, library, number, book, load_voice(voice_name))
        for chapter in ctx.steps(
            book.chapters,
            name=lambda one: f"chapter {one.number}",
            weight=lambda one: one.characters,
            unit="characters",
        ):
            studio.render(chapter)
        for chapter in book.chapters:
            # Recorded as done once, and lost or outdated since: the library is the truth.
            studio.render(chapter, again=True)
        library.finish(number)
        rows = library.chapters(library.get(number))
        return {
            "book": book.title,
            "chapters": len(rows),
            "duration_ms": sum(row.duration_ms for row in rows),
            "spoken_ms": round(studio.spoken_ms),
            "took_ms": round((time.monotonic() - began) * 1000),
            "warnings": len(studio.warnings),
        }


def _source(ctx: Context, library: Library, row: BookRow) -> Path:
    """The book's file in the home, fetched first if the library has only its number."""
    if row.file and (library.home / row.file).exists():
        return library.home / row.file
    if not row.source.startswith("gutenberg:"):
        raise BookError(f"the file of book {row.id} is gone from {library.home}; add it again")
    ctx.progress(note="fetching the book")

    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ctx.safe_point()
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))

    cache = library.home / "fetched"
    cache.mkdir(parents=True, exist_ok=True)
    path = Gutenberg(gutenberg(), cache, wait=wait).fetch(int(row.source.partition(":")[2]))
    library.fetched(row.id, str(path.relative_to(library.home)))
    return path


@dataclass(slots=True)
class _Studio:
    ctx: Context
    library: Library
    number: int
    book: Book
    voice: Voice
    warnings: list[str] = field(default_factory=list)
    failures: int = 0
    spoken_ms: float = 0
    """What this run itself made, silences included: pieces of an earlier one do not count."""

    def render(self, chapter: Chapter, *, again: bool = False) -> None:
        """Make one chapter, unless the library has it whole."""
        digest = self._digest(chapter)
        pieces = Pieces(self.ctx.kept / f"chapter-{chapter.number}", self.voice)
        if not self.library.has_chapter(self.number, self.voice.name, chapter.number, digest):
            before = len(self.warnings)
            said = list(self._sentences(chapter, pieces, again=again))
            self._publish(chapter, digest, said, self.warnings[before:])
        pieces.forget()

    def _sentences(self, chapter: Chapter, pieces: Pieces, *, again: bool) -> Iterator[Said]:
        """Every sentence, spoken or found among the pieces, with a safe point after each (B03)."""
        for text, words, before_ms in plan(chapter):
            made_before = self.spoken_ms
            yield Said(text, before_ms, self._voiced(text, words, pieces))
            self.spoken_ms += before_ms if self.spoken_ms > made_before else 0
            self.ctx.safe_point(advance=0 if again else len(text))

    def _voiced(self, text: str, words: str, pieces: Pieces) -> _Voiced:
        voiced = _Voiced(self, pieces, text, words)
        voiced()
        return voiced

    def speak(self, text: str, words: str) -> Samples | None:
        """What the voice makes of a sentence; ``None`` and a warning when it makes nothing of it
        (B14).
        """
        try:
            samples = self.voice.speak(words)
            _check(samples, self.voice.sample_rate)
        except MemoryError:
            raise
        except Exception as error:
            self.failures += 1
            self.warnings.append(f"Not spoken: {text[:80]} ({type(error).__name__}: {error})"[:300])
            self.ctx.log.warning("%s", self.warnings[-1])
            if self.failures >= FAILURES_IN_A_ROW:
                raise VoiceError(
                    f'the voice "{self.voice.name}" failed at {self.failures} sentences in a row; '
                    f"the last one said: {error}"
                ) from error
            return None
        self.failures = 0
        self.spoken_ms += len(samples) * 1000 / self.voice.sample_rate
        return samples

    def _publish(
        self, chapter: Chapter, digest: str, said: list[Said], warnings: list[str]
    ) -> None:
        total = len(self.book.chapters)
        file = (
            Path("audio")
            / str(self.number)
            / self.voice.name
            / f"{chapter.number:0{max(2, len(str(total)))}}.m4a"
        )
        path = self.library.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        tags = Tags(
            chapter.title or f"Chapter {chapter.number}",
            self.book.author,
            self.book.title,
            chapter.number,
            total,
        )
        with self.ctx.publish(path) as staged:
            made = sound.encode(
                staged, said, rate=self.voice.sample_rate, tags=tags, between=self.ctx.safe_point
            )
            size = staged.stat().st_size
            self.library.forget_chapter(self.number, self.voice.name, chapter.number)
        self.library.publish_chapter(
            Rendered(
                self.number,
                self.voice.name,
                chapter.number,
                chapter.title,
                chapter.characters,
                digest,
                str(file),
                size,
                made.samples,
                made.rate,
                made.spans,
                tuple(warnings),
            )
        )

    def _digest(self, chapter: Chapter) -> str:
        """Everything the chapter's sound depends on, in one word."""
        voice = self.voice
        parts = [FORMAT, PARSER, voice.name, voice.version, str(voice.sample_rate)]
        parts += [f"{before_ms} {words}" for _, words, before_ms in plan(chapter)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class _Voiced:
    """The samples of one sentence, held in its piece and not in memory; a damaged piece is made
    again, alone.
    """

    studio: _Studio
    pieces: Pieces
    text: str
    words: str
    silent: bool = False

    def __call__(self) -> Samples:
        if not self.silent:
            samples = self.pieces.read(self.words)
            if samples is None:
                samples = self.studio.speak(self.text, self.words)
                if samples is not None:
                    self.pieces.write(self.words, samples)
            if samples is not None:
                return samples
            self.silent = True
        import numpy as np

        return np.zeros(SILENCE_MS * self.studio.voice.sample_rate // 1000, dtype=np.int16)


def _check(samples: Samples, rate: int) -> None:
    if not 0 < len(samples) < _LONGEST_S * rate:
        raise ValueError(f"{len(samples)} samples came back")


def plan(chapter: Chapter) -> Iterator[tuple[str, str, int]]:
    """What is heard of a chapter: the written sentence, the words said, the silence before it in
    milliseconds.
    """
    before_ms = sound.LEAD_MS
    title = spoken(chapter.title, heading=True)
    if title:
        yield chapter.title, title, before_ms
        before_ms = sound.BREAK_MS
    for paragraph in chapter.paragraphs:
        if paragraph.after_break:
            before_ms = sound.BREAK_MS
        for sentence in paragraph.sentences:
            words = spoken(sentence)
            if words:
                yield sentence, words, before_ms
                before_ms = sound.SENTENCE_MS
        before_ms = max(before_ms, sound.PARAGRAPH_MS) if before_ms != sound.LEAD_MS else before_ms
