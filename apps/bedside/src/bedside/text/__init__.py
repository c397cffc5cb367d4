"""Reading a book file: ``read_book(path)`` gives a ``Book`` or raises a ``BookError`` that says why
not.

Called by ``bedside add`` (to refuse what is no book) and by the render (to speak it). Never loads a
voice, never writes a file, never opens a path that a book names.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bedside.book import Book, BookError
from bedside.text.blocks import Raw, clean

LARGEST = 500 * 1024 * 1024
LARGEST_TEXT = 64 * 1024 * 1024
PARSER = "1"
"""Raised when the same file would be read into other chapters or sentences."""

_PAGE = re.compile(
    rb"^\s*(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_SHOP = re.compile(
    r"^(?:the )?project gutenberg(?:[’']s)? e-?book,? (?:of )?|\s*[|—–-]\s*project gutenberg$",
    re.IGNORECASE,
)
_LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "latin": "la",
}


def read_book(path: Path) -> Book:
    """The book in the file at ``path``, whatever its kind: EPUB, web page or plain text."""
    from bedside.text import gutenberg
    from bedside.text.chapters import chapters_of

    raw = gutenberg.cut(_read(path))
    chapters, warnings = chapters_of(raw)
    if not any(chapter.paragraphs for chapter in chapters):
        raise BookError(f"found no readable text ({_why_empty(raw)})")
    language = (
        _LANGUAGES.get(raw.language.casefold(), raw.language.split("-")[0].casefold()) or "en"
    )
    return Book(
        title=clean(raw.title) or path.stem,
        author=clean(raw.author),
        language=language,
        chapters=chapters,
        warnings=(*raw.warnings, *warnings),
    )


def _read(path: Path) -> Raw:
    name = path.name
    try:
        size = path.stat().st_size
    except OSError as error:
        raise BookError(f"{name} cannot be read: {error.strerror or error}") from error
    if not path.is_file():
        raise BookError(f"there is no book in {name}, it is not a file")
    if size == 0:
        raise BookError(f"found no readable text ({name} is empty)")
    if size > LARGEST:
        raise BookError(f"{name} is larger than {LARGEST // 1024**2} MB; that is not a book")
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(b"PK\x03\x04") and path.suffix.lower() not in {".txt", ".htm", ".html"}:
        from bedside.text import epub

        return epub.read(path)
    if path.suffix.lower() == ".epub":
        kind = (
            "a web page: name it .html and add it again" if _PAGE.match(head) else "something else"
        )
        raise BookError(f"found no readable text ({name} is not an EPUB but {kind})")
    return _read_text(path, head, size)


def _read_text(path: Path, head: bytes, size: int) -> Raw:
    from bedside.text import markup, plain
    from bedside.text.decode import decode

    if head.startswith(b"%PDF"):
        raise BookError(
            f"found no readable text ({path.name} is a PDF; Bedside reads EPUB, HTML and text)"
        )
    if size > LARGEST_TEXT:
        raise BookError(
            f"{path.name} is larger than {LARGEST_TEXT // 1024**2} MB; that is not a book"
        )
    try:
        text = decode(path.read_bytes(), path.name)
    except OSError as error:
        raise BookError(f"{path.name} cannot be read: {error.strerror or error}") from error
    if _PAGE.match(head) or path.suffix.lower() in {".htm", ".html", ".xhtml"}:
        return _page(markup.parse(text))
    return plain.read(text)


def _page(root: object) -> Raw:
    from lxml import etree

    from bedside.text import markup

    assert isinstance(root, etree._Element)  # noqa: SLF001  lxml has no public name for it
    page = markup.to_blocks(root)
    title = clean(root.findtext(".//title") or "")
    title = _SHOP.sub("", title)
    name, _, author = title.partition(", by ")
    raw = Raw(name, author, root.get("lang") or "", tuple(page.blocks))
    return replace(raw, warnings=_notes(page.notes))


def _notes(count: int) -> tuple[str, ...]:
    return (f"Notes are not read aloud: {count} left out.",) if count else ()


def _why_empty(raw: Raw) -> str:
    return raw.warnings[0].rstrip(".") if raw.warnings else "nothing in it is text"
