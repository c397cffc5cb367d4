"""Plain text and web pages that are not among the real books; sentences, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedside.book import Book, BookError
from bedside.text import read_book
from bedside.text.sentences import LONGEST, sentences
from bedside.text.spoken import roman, spoken

LISTED = """A BOOK OF BOXES

CONTENTS

CHAPTER I. The Lamp
CHAPTER II. The Fog


CHAPTER I.

The Lamp

It was _very_ late. Mr. Tully slept.[1]

[Illustration: The lamp,
seen from below]

    *    *    *

He woke at 3 a.m. and said nothing.


CHAPTER II.

The Fog

It came.

THE END
"""


def read(tmp_path: Path, text: str, name: str = "book.txt", encoding: str = "utf-8") -> Book:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_book(path)


def heard(book: Book) -> list[tuple[str, list[str]]]:
    return [(chapter.title, list(chapter.sentences)) for chapter in book.chapters]


def test_case_g4_a_text_with_its_own_contents(tmp_path: Path) -> None:
    book = read(tmp_path, LISTED)
    assert heard(book) == [
        (
            "CHAPTER I. The Lamp",
            ["It was very late.", "Mr. Tully slept.", "He woke at 3 a.m. and said nothing."],
        ),
        ("CHAPTER II. The Fog", ["It came.", "THE END"]),
    ]
    assert book.chapters[0].paragraphs[-1].after_break
    spread = LISTED.replace(
        "CHAPTER I. The Lamp\nCHAPTER II. The Fog", "CHAPTER I\n\nCHAPTER II\n\nCHAPTER III"
    )
    spread += "\n\nCHAPTER III.\n\nMore.\n"
    assert [c.title for c in read(tmp_path, spread).chapters] == [
        "CHAPTER I. The Lamp",
        "CHAPTER II. The Fog",
        "CHAPTER III",
    ]


def test_case_g3_a_text_without_chapters_is_one(tmp_path: Path) -> None:
    book = read(tmp_path, "It was late.\n\nThe lamp burned.\n", name="late.txt")
    assert heard(book) == [("", ["It was late.", "The lamp burned."])]
    assert book.title == "late"


def test_case_g4_stories_with_names_only(tmp_path: Path) -> None:
    page = (
        "<html><head><title>Tales, by Nobody</title></head><body><h1>Tales</h1><p>By Nobody</p>"
        "<h2>The Lamp</h2><p>A.</p><h3>Later</h3><p>B.</p><h2>By the Marsh</h2><p>C.</p>"
        "</body></html>"
    )
    book = read(tmp_path, page, "tales.html")
    assert (book.title, book.author) == ("Tales", "Nobody")
    assert heard(book) == [("The Lamp", ["A.", "Later", "B."]), ("By the Marsh", ["C."])]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_b01_any_usual_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = "“Café,” said Zoë — twice. ‘Déjà vu,’ she thought, and went on to the next naïve façade."
    assert "Café" in " ".join(read(tmp_path, text, encoding=encoding).chapters[0].sentences)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b"  \n * * * \n", "nothing in it is text"),
        ("a.txt", b"\x7fELF\x00\x00\x01", "a.txt is not a text file"),
        ("a.pdf", b"%PDF-1.7 ...", "a.pdf is a PDF"),
        ("a.html", b"<html><body><img src='x'></body></html>", "nothing in it is text"),
    ],
)
def test_case_g3_no_readable_text(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BookError, match=r"^found no readable text \(") as caught:
        read_book(path)
    assert says in str(caught.value)
    with pytest.raises(BookError, match="is not a file"):
        read_book(tmp_path)
    with pytest.raises(BookError, match="cannot be read"):
        read_book(tmp_path / "none.txt")


@given(st.text(max_size=2000))
def test_case_g4_sentences_lose_nothing_that_can_be_said(text: str) -> None:
    text = " ".join(text.split())
    made = sentences(text)
    assert all(0 < len(sentence) <= LONGEST for sentence in made)
    kept = "".join(character for character in "".join(made) if character.isalnum())
    assert kept == "".join(character for character in text if character.isalnum())


@pytest.mark.parametrize(
    "text",
    [
        "Mr. St. John Smith met Mrs. Long and Dr. B. Grey at St. James’s.",
        "He paid £3 4s. 6d. for it.",
        "“Is it late?” asked the fireman.",
    ],
)
def test_b02_what_is_one_sentence_stays_one(text: str) -> None:
    assert sentences(text) == (text,)


def test_b02_a_long_sentence_is_split_where_one_breathes() -> None:
    text = ", ".join(f"the signalman wrote line number {at} into the book" for at in range(30))
    made = sentences(f"{text}; and slept.")
    assert all(len(one) <= LONGEST for one in made) and all(
        one.endswith((",", ";")) for one in made[:-1]
    )
    assert sentences("a" * 700) == ("a" * 300, "a" * 300, "a" * 100)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Mr. Darcy had £10,000 a year.", "Mister Darcy had ten thousand pounds a year."),
        ("£3 4s. 6d. is £1 more", "three pounds, four shillings and sixpence is one pound more"),
        ("for 1s. 1d. or 5d.", "for one shilling and one penny or fivepence"),
        ("In 1812, on the 3rd.", "In eighteen twelve, on the third."),
        ("No. 7, St. James’s St.", "number seven, Saint James’s Street"),
        ("wait--no—yes &c.", "wait, no, yes et cetera"),
        ("Henry VIII slept", "Henry the eighth slept"),
        ("* * *", ""),
        ("\N{CAT FACE}", ""),
        ("“Oh!”", "“Oh!”"),
    ],
)
def test_b02_written_is_not_said(written: str, said: str) -> None:
    assert spoken(written) == said


def test_b02_headings_are_said_as_numbers() -> None:
    assert spoken("CHAPTER IV. The Rabbit", heading=True) == "CHAPTER four. The Rabbit"
    assert spoken("XIX", heading=True) == "Chapter nineteen"
    assert spoken("Part I. Chapter II", heading=True) == "Part one. Chapter two"
    assert spoken("MIX IT", heading=True) == "MIX IT"
    assert [roman(text) for text in ("XLIX", "IIII", "", "MCMXC")] == [49, 0, 0, 1990]


PREFACE = "Somebody else has somewhere a fine and just distinction to make. " * 20

DRAWN_PAGE = f"""<html lang="en"><head><title>Boxes | Project Gutenberg</title></head><body>
<section class="pg-boilerplate pgheader" id="pg-header"><h2>The Project Gutenberg eBook</h2>
<p>Title: Boxes</p><p>Author: Nobody</p><p>*** START OF THE PROJECT GUTENBERG EBOOK BOXES ***</p>
</section><h1>BOXES</h1><p>[<i>Copyright 1894 by Somebody.</i>]</p>
<h2>PREFACE.</h2><p>{PREFACE}</p>
<h2>List of Illustrations.</h2><table><tr><td>Frontispiece</td><td>iv</td></tr></table>
<h2><img src="one.jpg" alt="BOXES Chapter I."></h2>
<p><span><img src="i.jpg" alt="I"></span>T is late <span class="pagenum">{{2}}</span>at night.</p>
<div class="figcenter"><img src="a.jpg" alt=""><div class="caption"><p>“It is late”</p></div></div>
<h2>CHAPTER II.</h2><p>It is later.</p><div class="footnotes"><p>[A] A note.</p></div>
<section class="pg-boilerplate pgfooter" id="pg-footer">
<p>*** END OF THE PROJECT GUTENBERG EBOOK BOXES ***</p><p>Updated editions.</p></section>
</body></html>
"""

DRAWN_TEXT = f"""The Project Gutenberg eBook of Boxes

Title: Boxes

Author: Nobody

*** START OF THE PROJECT GUTENBERG EBOOK BOXES ***

[Illustration:

_Reading Jane’s Letters._      _Chap 34._
                                        ]

PREFACE.

{PREFACE}

[Illustration:

·BOXES·

Chapter I.]

It is late at night.

[Illustration:

“It is late”

[_Copyright 1894 by Somebody._]]

CHAPTER II.

[Illustration]

It is later.

*** END OF THE PROJECT GUTENBERG EBOOK BOXES ***

Updated editions.
"""


@pytest.mark.parametrize(("name", "text"), [("a.html", DRAWN_PAGE), ("a.txt", DRAWN_TEXT)])
def test_case_g4_an_illustrated_edition_whose_first_heading_is_drawn(tmp_path, name, text) -> None:
    book = read(tmp_path, text, name)
    assert (book.title, book.author) == ("Boxes", "Nobody")
    (one, first), two = heard(book)
    assert (one, two) == ("Chapter I", ("CHAPTER II", ["It is later."]))
    assert first in (["IT is late at night."], ["It is late at night."])
    assert any(warning.startswith("Left out, as it is no part") for warning in book.warnings)


def test_case_g4_books_within_a_book_count_their_chapters_anew(tmp_path: Path) -> None:
    page = (
        "<h1>WAR</h1><h2>By Nobody</h2><h2>Contents</h2><p>BOOK ONE</p><p>CHAPTER I</p>"
        "<h2>BOOK ONE: 1805</h2><h2>CHAPTER I</h2><p>A.</p><h2>CHAPTER II</h2><p>B.</p>"
        "<h2>BOOK TWO</h2><h2>CHAPTER I</h2><p>C.</p>"
        "<h2>FIRST EPILOGUE</h2><h2>CHAPTER I</h2><p>D.</p>"
    )
    assert heard(read(tmp_path, page, "war.html")) == [
        ("BOOK ONE: 1805. CHAPTER I", ["A."]),
        ("CHAPTER II", ["B."]),
        ("BOOK TWO. CHAPTER I", ["C."]),
        ("FIRST EPILOGUE. CHAPTER I", ["D."]),
    ]


def test_case_g4_a_bare_numeral_counts_the_parts_of_a_named_chapter(tmp_path: Path) -> None:
    text = (
        "I. A SCANDAL\n\n\nI.\n\nShe came.\n\nII.\n\nShe went.\n\n\n"
        "II. THE LEAGUE\n\nHe came.\n\n\nIII. A CASE\n\nHe went.\n\n\n"
        "IV. THE END OF IT\n\nNobody came.\n"
    )
    assert heard(read(tmp_path, text)) == [
        ("I. A SCANDAL. I", ["She came.", "II.", "She went."]),
        ("II. THE LEAGUE", ["He came."]),
        ("III. A CASE", ["He went."]),
        ("IV. THE END OF IT", ["Nobody came."]),
    ]
