"""HTML and XHTML to blocks: one walk over the tree, each text node taken exactly once, so nothing
is read twice.

Used for web pages and for the documents inside an EPUB. Never loads anything from a network, never
expands entities a document defines itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from bedside.book import BookError
from bedside.text.blocks import Block, Kind, clean, says_something
from bedside.text.skip import is_note, skipped
from bedside.text.titles import chapter_at_end

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = set(_HEADINGS) | set(
    "address article aside blockquote body center dd details div dl dt fieldset figure footer "
    "header li main ol p pre "
    "section summary table tr ul".split()
)
_LETTER = re.compile(r"^[“‘\"'«]?\w$")
_BREAK = "\v"
_PARAGRAPH_BREAK = re.compile(r"\v\s*\v")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(\w+);")
_XML_ENTITIES = {"amp", "lt", "gt", "quot", "apos"}


def parse(text: str, *, strict: bool = False) -> etree._Element:
    """The root of ``text``. With ``strict`` it is taken as XHTML first, where ``<a id="x"/>`` is
    closed.
    """
    text = _DECLARATION.sub("", text.lstrip("\ufeff"), count=1)
    if strict:
        try:
            return etree.fromstring(_known_entities(text), _xml())
        except etree.XMLSyntaxError:
            pass
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        raise BookError("found no readable text (the page is empty)")
    return root


def _xml() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def parse_xml(data: bytes) -> etree._Element:
    """The root of a container, package or contents file. Raises lxml's ``XMLSyntaxError``."""
    return etree.fromstring(data, _xml())


def _known_entities(text: str) -> str:
    # XHTML names such as &nbsp; live in a DTD that is never loaded.
    return _ENTITY.sub(
        lambda found: (
            found.group() if found.group(1) in _XML_ENTITIES else html.unescape(found.group())
        ),
        text,
    )


def tag_of(element: etree._Element) -> str:
    """The tag without its namespace, in lower case; empty for comments and entities."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


@dataclass(slots=True)
class _Walk:
    marks: Mapping[str, list[Block]]
    blocks: list[Block] = field(default_factory=list)
    buffer: list[str] = field(default_factory=list)
    level: int = 0
    in_pre: int = 0
    pictures: int = 0
    notes: int = 0
    glue: bool = False
    drawn: str = ""
    """The heading a picture inside a heading stands for."""

    def say(self, text: str | None) -> None:
        if not text:
            return
        if self.glue:
            text, self.glue = text.lstrip(), False
        self.buffer.append(text.replace("\n", _BREAK) if self.in_pre else text)

    def flush(self) -> None:
        text = "".join(self.buffer)
        self.buffer.clear()
        parts = [text] if self.level else _PARAGRAPH_BREAK.split(text)
        for part in map(clean, parts):
            if self.level and not part and self.drawn:
                self.blocks.append(Block(Kind.HEADING, self.drawn, self.level))
            elif self.level and part:
                self.blocks.append(Block(Kind.HEADING, part, self.level))
            elif says_something(part):
                self.blocks.append(Block(Kind.TEXT, part))
            elif part:
                self.blocks.append(Block(Kind.RULE))

    def start(self, element: etree._Element, tag: str) -> None:
        for name in (element.get("id"), element.get("name") if tag == "a" else None):
            if name and name in self.marks:
                self.flush()
                self.blocks.extend(self.marks[name])
        if tag in _BLOCKS:
            self.flush()
            self.level = _HEADINGS.get(tag, self.level)
            self.in_pre += tag == "pre"
        elif tag == "br":
            self.say(_BREAK)
        elif tag == "hr":
            self.flush()
            self.blocks.append(Block(Kind.RULE))
        elif tag in {"td", "th"}:
            self.say(" ")
        elif tag in {"img", "image"}:
            self.picture(element.get("alt") or "")
        self.say(element.text)

    def picture(self, alt: str) -> None:
        if _LETTER.match(alt.strip()):
            # A drawn initial: the rest of its word follows at once.
            self.say(alt.strip())
            self.glue = True
        elif self.level:
            self.drawn = chapter_at_end(alt) or clean(alt)
        else:
            self.pictures += 1

    def end(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.flush()
            if tag in _HEADINGS:
                self.level, self.drawn = 0, ""
            self.in_pre -= tag == "pre"
            self.glue = False


@dataclass(frozen=True, slots=True)
class Page:
    """The blocks of one document, and how many pictures and notes were passed over."""

    blocks: list[Block]
    pictures: int
    notes: int


def to_blocks(root: etree._Element, marks: Mapping[str, list[Block]] | None = None) -> Page:
    """The blocks under ``root``; ``marks`` are put in where an element carries their name as its
    id.
    """
    walk = _Walk(marks or {})
    walker = etree.iterwalk(root, events=("start", "end"))
    passed_over: etree._Element | None = None
    for event, element in walker:
        tag = tag_of(element)
        if event == "start" and skipped(element, tag):
            walk.notes += is_note(element)
            walk.pictures += tag == "svg"
            passed_over = element
            walker.skip_subtree()
        elif event == "start":
            walk.start(element, tag)
        else:
            if element is passed_over:
                passed_over = None
            else:
                walk.end(tag)
            if element is not root:
                walk.say(element.tail)
    walk.flush()
    return Page(walk.blocks, walk.pictures, walk.notes)
