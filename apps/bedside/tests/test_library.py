"""The library: totals early, a timeline that adds up, passages replaced, words found."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from bedside.book import BedsideError, Book, Chapter, Paragraph
from bedside.library import Library, LibraryError, NoSuchBook
from bedside.rows import Rendered
from bedside.sound import Span

BOOK = Book(
    "A Small Book",
    "Nobody",
    "en",
    tuple(Chapter(n, str(n), (Paragraph(("x",)),)) for n in (1, 2, 3)),
)


def rendered(number: int, *texts: str, samples: int = 22_050, voice: str = "tone") -> Rendered:
    spans = tuple(Span(text, at * 100, at * 100 + 90) for at, text in enumerate(texts))
    file = f"audio/1/{voice}/{number:02}.m4a"
    return Rendered(1, voice, number, str(number), 9, "digest", file, 4, samples, 22_050, spans)


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path) as opened:
        opened.add("sha256:1", "small", file="books/1.epub", book=BOOK)
        opened.begin(1, "tone")
        yield opened


def test_b04_the_totals_are_written_before_anything_is_spoken(library: Library) -> None:
    row = library.get(1)
    assert (row.title, row.chapters_total, row.characters_total) == ("A Small Book", 3, 6)
    assert library.chapters(row) == [] and row.done_ms is None


def test_b06_the_same_source_is_the_same_book(library: Library) -> None:
    again = library.add("sha256:1", "other")
    assert not again.new and again.book.id == 1 and len(library.books()) == 1
    assert library.add("gutenberg:11", "Gutenberg 11").new


def test_b05_the_timeline_goes_on_where_the_last_chapter_ended(library: Library) -> None:
    library.publish_chapter(rendered(1, "one", "two", samples=22_050 * 3))
    library.publish_chapter(rendered(2, "three", samples=22_050))
    row = library.get(1)
    assert [(c.start_ms, c.duration_ms) for c in library.chapters(row)] == [(0, 3000), (3000, 1000)]
    assert [(hit.text, hit.start_ms, hit.end_ms) for hit in library.passages(row)] == [
        ("one", 0, 90),
        ("two", 100, 190),
        ("three", 3000, 3090),
    ]
    library.publish_chapter(rendered(1, "one", samples=22_050 * 2))
    assert [hit.start_ms for hit in library.passages(row)] == [0, 2000]


def test_b05_indexing_a_chapter_again_replaces_its_passages(library: Library) -> None:
    for _ in range(3):
        library.publish_chapter(rendered(1, "The horse is hurt.", "Line clear."))
    assert len(library.passages(library.get(1))) == 2
    assert len(library.search("horse")) == 1
    library.publish_chapter(rendered(1, "Line clear."))
    assert library.search("horse") == []
    library.connection.execute(
        "INSERT INTO passage_words (passage_words) VALUES ('integrity-check')"
    )


def test_b11_words_find_a_place_to_play_from(library: Library) -> None:
    library.publish_chapter(rendered(1, "The horses were hurt.", "Nobody’s café."))
    library.publish_chapter(rendered(1, "The horse of another voice.", voice="other"))
    (hit,) = library.search("HORSE hurt")
    assert (hit.book_title, hit.chapter, hit.start_ms) == ("A Small Book", 1, 0)
    assert len(library.search("cafe")) == 1
    assert library.search('horse" OR *') == []
    with pytest.raises(BedsideError, match="at least one word"):
        library.search("?! *")


def test_b03_a_chapter_is_there_when_row_and_file_agree(library: Library, tmp_path: Path) -> None:
    library.publish_chapter(rendered(1, "one"))
    assert not library.has_chapter(1, "tone", 1, "digest")
    path = tmp_path / "audio/1/tone/01.m4a"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"abcd")
    assert library.has_chapter(1, "tone", 1, "digest")
    assert not library.has_chapter(1, "tone", 1, "another digest")
    assert not library.has_chapter(1, "joe", 1, "digest")
    path.write_bytes(b"abc")
    assert not library.has_chapter(1, "tone", 1, "digest")
    library.forget_chapter(1, "tone", 1)
    assert library.chapters(library.get(1)) == [] and library.search("one") == []


def test_e28_a_library_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoSuchBook, match="there is no book 7"), Library.open(tmp_path) as library:
        library.get(7)
    connection = sqlite3.connect(tmp_path / "bedside.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LibraryError, match="made by a newer Bedside"):
        Library.open(tmp_path)
    (tmp_path / "bedside.db").write_text(
        "this is no database at all, but a longer text than a header"
    )
    with pytest.raises(LibraryError, match="cannot be used as a library"):
        Library.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LibraryError, match="cannot be opened"):
        Library.open(tmp_path / "file")


def test_e26_two_that_open_a_new_library_at_once_both_can(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def opened() -> None:
        try:
            with Library.open(tmp_path / "new") as library:
                library.add("gutenberg:11", "Gutenberg 11")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=opened) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with Library.open(tmp_path / "new") as library:
        assert len(library.books()) == 1
