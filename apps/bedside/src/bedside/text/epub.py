"""EPUB 2 and 3 to blocks: container, package, spine in order, and the table of contents as marks.

Chapters are cut where the book's own contents point, never at file borders. Bounded: members are
read up to a limit and not as far as they claim. A path from the archive is only ever a key into the
archive.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import etree

from bedside.book import BookError
from bedside.text import contents, markup
from bedside.text.archive import Archive
from bedside.text.blocks import Block, Kind, Raw, clean, says_something
from bedside.text.decode import decode

_PAGES = {"application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document"}
_DC = "{http://purl.org/dc/elements/1.1/}"


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    kind: str
    properties: frozenset[str]


@dataclass(slots=True)
class _Spine:
    blocks: list[Block] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    without_text: int = 0
    notes: int = 0
    broken: int = 0


def read(path: Path) -> Raw:
    """The book at ``path`` as blocks. Raises ``BookError`` for DRM and for what is no EPUB."""
    try:
        with zipfile.ZipFile(path) as opened:
            return _read(Archive(opened, path.name))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise BookError(
            f"found no readable text ({path.name} is a damaged archive: {error})"
        ) from error


def _read(archive: Archive) -> Raw:
    package_name = _package_name(archive)
    package = _xml(archive, package_name)
    folder = posixpath.dirname(package_name)
    items = _manifest(package, folder)
    order = [items[idref] for idref in _idrefs(package) if idref in items]
    archive.refuse_locked({item.name for item in order})
    marks = contents.marks(
        archive, package, {key: (item.name, item.properties) for key, item in items.items()}
    )
    spine = _walk(archive, [item for item in order if "nav" not in item.properties], marks)
    if not any(block.kind is Kind.TEXT for block in spine.blocks):
        raise BookError(f"found no readable text ({_nothing(spine, len(order))})")
    return Raw(
        title=_said(package, "title"),
        author=", ".join(
            filter(None, (clean(each.text or "") for each in package.iter(f"{_DC}creator")))
        )[:200],
        language=_said(package, "language"),
        blocks=tuple(spine.blocks),
        warnings=_warnings(spine),
    )


def _package_name(archive: Archive) -> str:
    container = _xml(archive, "META-INF/container.xml")
    for root in container.iter("{*}rootfile"):
        name = root.get("full-path")
        if name and archive.find(name):
            return name
    raise BookError(f"found no readable text ({archive.name} names no package file)")


def _xml(archive: Archive, name: str) -> etree._Element:
    data = archive.read(name)
    if data is None:
        raise BookError(f"found no readable text ({archive.name} is no EPUB: it holds no {name})")
    try:
        return markup.parse_xml(data)
    except etree.XMLSyntaxError as error:
        raise BookError(f"found no readable text ({name} in {archive.name} is damaged)") from error


def _manifest(package: etree._Element, folder: str) -> dict[str, _Item]:
    return {
        item.get("id", ""): _Item(
            inside(folder, item.get("href", "")),
            item.get("media-type", ""),
            frozenset((item.get("properties") or "").split()),
        )
        for item in package.iter("{*}item")
    }


def _idrefs(package: etree._Element) -> list[str]:
    # A part outside the reading order (linear="no") is a note or an extra, not the story.
    refs = [ref for ref in package.iter("{*}itemref") if ref.get("linear") != "no"]
    return list(dict.fromkeys(ref.get("idref", "") for ref in refs))


def inside(folder: str, href: str) -> str:
    """The member an address in ``folder`` means; only ever a key into the archive."""
    return posixpath.normpath(posixpath.join(folder, unquote(urlsplit(href).path)))


def _walk(archive: Archive, order: list[_Item], marks: contents.Marks) -> _Spine:
    spine = _Spine()
    for item in order:
        if item.kind not in _PAGES:
            spine.without_text += item.kind.startswith("image/")
            continue
        data = archive.read(item.name)
        if data is None:
            spine.missing.append(item.name)
            continue
        try:
            root = markup.parse(decode(data, item.name), strict=True)
        except BookError:
            spine.broken += 1
            continue
        here: dict[str, list[Block]] = defaultdict(list)
        for fragment, block in marks.get(item.name, ()):
            if fragment and any(
                fragment in (each.get("id"), each.get("name")) for each in root.iter("{*}*")
            ):
                here[fragment].append(block)
            else:
                spine.blocks.append(block)
        page = markup.to_blocks(root, here)
        spine.notes += page.notes
        spine.without_text += (
            not any(says_something(block.text) for block in page.blocks) and page.pictures > 0
        )
        spine.blocks.extend(page.blocks)
    return spine


def _said(package: etree._Element, name: str) -> str:
    return next((clean(each.text) for each in package.iter(f"{_DC}{name}") if each.text), "")


def _warnings(spine: _Spine) -> tuple[str, ...]:
    said = []
    if spine.without_text:
        said.append(f"Pages without text, passed over: {spine.without_text}.")
    if spine.missing:
        said.append(
            f"Parts the book names that are not in the file: {', '.join(spine.missing[:5])}."
        )
    if spine.broken:
        said.append(f"Pages that cannot be read, passed over: {spine.broken}.")
    if spine.notes:
        said.append(f"Notes are not read aloud: {spine.notes} left out.")
    return tuple(said)


def _nothing(spine: _Spine, count: int) -> str:
    if spine.missing:
        return f"the book names {spine.missing[0]}, which is not in the file"
    if spine.without_text:
        return f"its {spine.without_text} pages are pictures"
    return "the book lists no pages" if not count else f"nothing on its {count} pages is text"
