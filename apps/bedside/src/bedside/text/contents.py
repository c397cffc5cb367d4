"""An EPUB's table of contents as marks: which place of which document is called what.

EPUB 3's navigation document first, else EPUB 2's ncx. A contents that cannot be read is no
contents: headings serve.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lxml import etree

from bedside.book import BookError
from bedside.text import markup
from bedside.text.archive import Archive
from bedside.text.blocks import Block, Kind, clean
from bedside.text.decode import decode
from bedside.text.skip import types_of

Marks = dict[str, list[tuple[str, Block]]]
"""For each document, in order: the fragment (or nothing, for its start) and the mark that goes
there.
"""

Items = Mapping[str, tuple[str, frozenset[str]]]


def marks(archive: Archive, package: etree._Element, items: Items) -> Marks:
    """The marks of the book, empty when it has no readable contents."""
    for name, properties in items.values():
        if "nav" in properties:
            found = _navigation(archive, name)
            if found:
                return found
    spine = next(package.iter("{*}spine"), None)
    ncx = spine.get("toc") if spine is not None else None
    names = (
        [items[ncx][0]]
        if ncx and ncx in items
        else [name for name, _ in items.values() if name.endswith(".ncx")]
    )
    return _ncx(archive, names[0]) if names else {}


def _add(found: Marks, folder: str, address: str, *, label: str, level: int) -> None:
    from bedside.text.epub import inside

    parts = urlsplit(address)
    if parts.scheme or not parts.path or not label:
        return
    block = Block(Kind.MARK, label, min(level, 6))
    places = found.setdefault(inside(folder, address), [])
    fragment = unquote(parts.fragment)
    if fragment not in {where for where, _ in places}:
        places.append((fragment, block))


def _navigation(archive: Archive, name: str) -> Marks:
    found: Marks = {}
    data = archive.read(name)
    if data is None:
        return found
    try:
        root = markup.parse(decode(data, name), strict=True)
    except BookError:
        return found
    for nav in root.iter("{*}nav"):
        if "toc" in types_of(nav):
            for link in nav.iter("{*}a"):
                level = sum(1 for outer in link.iterancestors() if markup.tag_of(outer) == "li")
                label = clean("".join(map(str, link.itertext())))
                _add(found, posixpath.dirname(name), link.get("href", ""), label=label, level=level)
    return found


def _ncx(archive: Archive, name: str) -> Marks:
    found: Marks = {}
    data = archive.read(name)
    if data is None:
        return found
    try:
        root = markup.parse_xml(data)
    except etree.XMLSyntaxError:
        return found
    for point in root.iter("{*}navPoint"):
        target = next((each.get("src", "") for each in point.iterchildren("{*}content")), "")
        label = clean(
            " ".join(
                "".join(map(str, each.itertext())) for each in point.iterchildren("{*}navLabel")
            )
        )
        level = 1 + sum(1 for outer in point.iterancestors("{*}navPoint"))
        _add(found, posixpath.dirname(name), target, label=label, level=level)
    return found
