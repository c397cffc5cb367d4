"""Which elements are not read aloud: page numbers, captions, notes and their marks, title pages,
boilerplate.

Called by the walk in ``markup`` for every element. Judges by tag, EPUB type, role and class, never
by a file's name.
"""

from __future__ import annotations

import re

from lxml import etree

_TAGS = set(
    "script style head title nav template svg math audio video object iframe form button select "
    "textarea noscript "
    "rt rp figcaption caption".split()
)
_NOTES = {"footnote", "footnotes", "endnote", "endnotes", "rearnote", "rearnotes"}
_TYPES = _NOTES | set(
    "pagebreak noteref titlepage halftitlepage halftitle imprint colophon copyright-page toc "
    "landmarks loi lot lov loa index cover coverpage dedication acknowledgments bibliography "
    "errata seriespage contributors credit credits "
    "other-credits keywords page-list bridgehead-number".split()
)
_BODY_KEPT = {
    "frontmatter": ("prologue", "prolog", "preamble"),
    "backmatter": ("epilogue", "afterword", "conclusion", "postscript"),
}
_CLASSES = set(
    "pagenum pageno pagenumber page-number linenum lnum caption figcaption illustration-caption "
    "transnote tnote mynote "
    "pgfooter pg-footer fnanchor noteref footnote "
    "footnotes".split()
)
# The header stays until its fields are read and its marker is found; see ``gutenberg``.
_IDS = {"pg-footer"}
_NOTE_MARK = re.compile(r"^[\[(]?(?:\d{1,3}|[a-z*†‡§])[\])]?$", re.IGNORECASE)
_EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"


def types_of(element: etree._Element) -> set[str]:
    """The EPUB types and document roles of an element, in one vocabulary."""
    said = (
        f"{element.get(_EPUB_TYPE) or element.get('epub:type') or ''} {element.get('role') or ''}"
    )
    return {name.removeprefix("doc-") for name in said.lower().split()}


def is_note(element: etree._Element) -> bool:
    """Whether it is one note's text (a list of notes counts as one)."""
    return bool(_NOTES & (types_of(element) | _classes(element)))


def skipped(element: etree._Element, tag: str) -> bool:
    """Whether the element and all in it is passed over."""
    if tag in _TAGS or element.get("id") in _IDS:
        return True
    types = types_of(element)
    if types & _TYPES or element.get("hidden") is not None:
        return True
    if tag in {"body", "section", "div"} and types & set(_BODY_KEPT):
        return not _keeps(element, types)
    if tag in {"body", "h1", "h2", "h3"}:
        return False
    if _classes(element) & _CLASSES:
        return True
    return (
        tag == "sup"
        and bool(_NOTE_MARK.match(_text(element)))
        and element.find(".//{*}a") is not None
    )


def _keeps(element: etree._Element, types: set[str]) -> bool:
    # Front matter may hold a prologue, back matter an epilogue: those belong to the story.
    wanted = {name for part in types & set(_BODY_KEPT) for name in _BODY_KEPT[part]}
    return any(types_of(inner) & wanted for inner in element.iter("{*}*", "*"))


def _classes(element: etree._Element) -> set[str]:
    return set((element.get("class") or "").lower().split())


def _text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext())).strip()
