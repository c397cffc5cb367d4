"""EPUBs made on the spot: chapters by the book's own contents, and everything that is no book."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from bedside.book import Book, BookError
from bedside.text import archive, read_book

STORY = "<p>Once there was a lamp in a box above the marsh.</p><p>It burned all night.</p>"
ENCRYPTED = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"
  xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData>
  <enc:EncryptionMethod Algorithm="{algorithm}"/>
  <enc:CipherData><enc:CipherReference URI="{uri}"/></enc:CipherData>
  </enc:EncryptedData></encryption>"""


def heard(book: Book) -> list[tuple[str, list[str]]]:
    return [(chapter.title, list(chapter.sentences)) for chapter in book.chapters]


@pytest.mark.parametrize("ncx", [False, True])
def test_case_g4_chapters_are_cut_at_the_contents_not_at_files(make_epub, ncx) -> None:
    path = make_epub(
        {
            "c0.xhtml": "<p>The first begins.</p>",
            "c1.xhtml": "<p>The first goes on.</p><h2 id='b'>The Second</h2><p>It begins.</p>",
            "c2.xhtml": "<p>The second goes on.</p>",
        },
        contents={"c0.xhtml": "The First", "c1.xhtml#b": "The Second"},
        ncx=ncx,
    )
    assert heard(read_book(path)) == [
        ("The First", ["The first begins.", "The first goes on."]),
        ("The Second", ["It begins.", "The second goes on."]),
    ]


def test_case_g4_nested_lists_and_poems_are_read_once(make_epub) -> None:
    body = (
        "<h2>One</h2><ul><li><p>Tea.</p><ul><li><p>Black tea.</p></li></ul></li><li>Milk.</li></ul>"
        "<blockquote><p>The line is clear,<br/>the lamp is lit,</p><p>the kettle sings.</p>"
        "</blockquote><div>Loose words <p>and a paragraph</p> and a tail.</div>"
        "<h2>Two</h2><p>End.</p>"
    )
    (_, one), (_, two) = heard(read_book(make_epub({"a.xhtml": body})))
    assert one == [
        "Tea.",
        "Black tea.",
        "Milk.",
        "The line is clear, the lamp is lit,",
        "the kettle sings.",
        "Loose words",
        "and a paragraph",
        "and a tail.",
    ]
    assert two == ["End."]


def test_case_g7_a_chapter_in_seven_files_with_picture_pages_is_whole(make_epub) -> None:
    picture = '<div><img src="x.png" alt="A lamp"/></div>'
    pages = {"p0.xhtml": "<h1>Chapter 1</h1><p>Part 0 is here.</p>"}
    for at in range(1, 7):
        pages[f"i{at}.xhtml"] = picture
        pages[f"p{at}.xhtml"] = f"<p>Part {at} is here.</p>"
    pages["last.xhtml"] = "<h1>Chapter 2</h1><p>The end of it.</p>"
    contents = {"p0.xhtml": "Chapter 1", "last.xhtml": "Chapter 2"}
    book = read_book(make_epub(pages, contents=contents))
    assert heard(book)[0] == ("Chapter 1", [f"Part {at} is here." for at in range(7)])
    assert book.warnings == ("Pages without text, passed over: 6.",)


def test_case_g4_front_and_back_matter_is_not_read(make_epub) -> None:
    book = read_book(
        make_epub(
            {
                "t.xhtml": '<section epub:type="titlepage"><h1>A Small Book</h1></section>',
                "d.xhtml": '<section epub:type="dedication"><p>For the fish.</p></section>',
                "toc.xhtml": '<nav epub:type="toc"><ol><li><a href="a.xhtml">I</a></li></ol></nav>',
                "p.xhtml": '<section epub:type="prologue"><h2>Prologue</h2><p>Before.</p>'
                "</section>",
                "a.xhtml": '<section epub:type="chapter"><h2>I</h2><p>First<a epub:type="noteref" '
                'href="n.xhtml">1</a> of all.<span epub:type="pagebreak">12</span></p></section>',
                "b.xhtml": '<section epub:type="chapter"><h2>II</h2><p>Second.</p>'
                '<aside epub:type="footnote"><p>A note.</p></aside></section>',
                "n.xhtml": '<section epub:type="endnotes"><p>1. Another note.</p></section>',
                "c.xhtml": '<section epub:type="colophon"><p>Set in lead.</p></section>',
            },
            contents={
                "t.xhtml": "Titlepage",
                "p.xhtml": "Prologue",
                "a.xhtml": "I",
                "b.xhtml": "II",
                "c.xhtml": "Colophon",
            },
        )
    )
    assert heard(book) == [
        ("Prologue", ["Before."]),
        ("I", ["First of all."]),
        ("II", ["Second."]),
    ]
    assert book.warnings == ("Notes are not read aloud: 2 left out.",)


def test_b02_chapters_with_nothing_to_say_keep_their_number(make_epub) -> None:
    book = read_book(
        make_epub(
            {
                "a.xhtml": "<h2>1</h2><p>One.</p>",
                "b.xhtml": "<h2>2</h2><hr/>",
                "c.xhtml": "<h2>3</h2><p>\N{CAT FACE}</p>",
                "d.xhtml": '<h2>4</h2><img src="x.png"/>',
                "e.xhtml": "<h2>5</h2><p>Five.</p>",
            },
            contents={f"{letter}.xhtml": str(at + 1) for at, letter in enumerate("abcde")},
        )
    )
    assert [(c.number, c.title, len(c.paragraphs)) for c in book.chapters] == [
        (1, "1", 1),
        (2, "2", 0),
        (3, "3", 0),
        (4, "4", 0),
        (5, "5", 1),
    ]


def test_b01_parts_go_before_their_first_chapter(make_epub) -> None:
    body = (
        "<h1>Part One</h1><h2>Chapter 1</h2><p>A.</p><h2>Chapter 2</h2><p>B.</p>"
        "<h1>Part Two</h1><h2>Chapter 3</h2><p>C.</p>"
    )
    assert [title for title, _ in heard(read_book(make_epub({"a.xhtml": body})))] == [
        "Part One. Chapter 1",
        "Chapter 2",
        "Part Two. Chapter 3",
    ]


def test_b01_a_drawn_initial_is_read_with_its_word(make_epub) -> None:
    page = '<p><img src="t.png" alt="T"/>\n HE lamp&nbsp;burned &mdash; all&shy; night.</p>'
    assert heard(read_book(make_epub({"a.xhtml": page})))[0][1] == ["THE lamp burned — all night."]


@pytest.mark.parametrize(
    ("documents", "missing", "says"),
    [
        ({"a.xhtml": "<p> </p>"}, (), "nothing on its 1 pages is text"),
        (
            {"a.xhtml": '<img src="a.png"/>', "b.xhtml": '<img src="b.png"/>'},
            (),
            "2 pages are pictures",
        ),
        ({}, ("chapter1.xhtml",), "names OPS/chapter1.xhtml, which is not in the file"),
        ({}, (), "the book lists no pages"),
    ],
)
def test_case_g3_an_epub_without_text(make_epub, documents, missing, says) -> None:
    with pytest.raises(BookError, match=r"^found no readable text \(") as caught:
        read_book(make_epub(documents, missing=missing))
    assert says in str(caught.value)


def test_case_g3_one_missing_page_is_a_warning(make_epub) -> None:
    book = read_book(make_epub({"a.xhtml": STORY}, missing=("gone.xhtml",)))
    assert book.warnings == ("Parts the book names that are not in the file: OPS/gone.xhtml.",)


@pytest.mark.parametrize(
    "extra",
    [
        {
            "META-INF/encryption.xml": ENCRYPTED.format(
                algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc", uri="OPS/a.xhtml"
            )
        },
        {"META-INF/rights.xml": "<rights/>"},
        {"META-INF/license.lcpl": "{}"},
    ],
)
def test_case_g3_a_locked_book_is_refused_by_name(make_epub, extra) -> None:
    with pytest.raises(BookError, match=r"locked by its seller \(DRM\)"):
        read_book(make_epub({"a.xhtml": STORY}, extra=extra))


def test_case_g3_scrambled_fonts_are_fine(make_epub) -> None:
    scrambled = ENCRYPTED.format(algorithm="http://www.idpf.org/2008/embedding", uri="OPS/f.otf")
    book = read_book(make_epub({"a.xhtml": STORY}, extra={"META-INF/encryption.xml": scrambled}))
    assert len(list(book.chapters[0].sentences)) == 2


def test_e28_a_bomb_is_refused_before_it_fills_the_memory(
    make_epub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST_MEMBER", 1_000_000)
    path = make_epub({"a.xhtml": f"<p>{'a' * 1_100_000}</p>"})
    assert path.stat().st_size < 20_000
    with pytest.raises(BookError, match="unpacks to far more than a book"):
        read_book(path)


def test_e28_no_entity_and_no_path_leads_out_of_the_book(make_epub, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret of the box")
    inner = (
        '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "../secret.txt">'
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><html xmlns="http://www.w3.org/1999/xhtml">'
        "<body><p>Before &x; after &b; all.</p></body></html>"
    )
    path = make_epub({"a.xhtml": inner, "../../secret.txt": "<p>Inside.</p>"})
    said = " ".join(read_book(path).chapters[0].sentences)
    assert "secret of" not in said and "ha" not in said.replace("that", "")
    assert "Before" in said and "all." in said


def test_case_g3_what_is_no_epub_at_all(tmp_path: Path) -> None:
    page = tmp_path / "page.epub"
    page.write_text("<!DOCTYPE html><html><body><p>Hello.</p></body></html>")
    with pytest.raises(
        BookError, match=r"found no readable text \(page.epub is not an EPUB but a web"
    ):
        read_book(page)
    empty = tmp_path / "empty.epub"
    empty.touch()
    with pytest.raises(BookError, match=r"found no readable text \(empty.epub is empty\)"):
        read_book(empty)
    other = tmp_path / "other.epub"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("hello.txt", "hello")
    with pytest.raises(BookError, match=r"is no EPUB: it holds no META-INF/container.xml"):
        read_book(other)
    other.write_bytes(other.read_bytes()[:60])
    with pytest.raises(BookError, match="damaged archive"):
        read_book(other)
