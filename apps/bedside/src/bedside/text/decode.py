"""Bytes to text: byte-order mark, what the file declares, UTF-8, then an educated guess.

Never fails on odd bytes in a text; what is plainly no text at all is a ``BookError``.
"""

from __future__ import annotations

import codecs
import re

from bedside.book import BookError

_DECLARED = re.compile(
    rb"""(?:encoding\s*=\s*["']|charset\s*=\s*["']?|Character set encoding:\s*)([\w.:-]+)""",
    re.IGNORECASE,
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def decode(data: bytes, name: str) -> str:
    """The text of ``data``; ``name`` is the file's name for the sentence when it is no text."""
    return _CONTROL.sub(" ", _decoded(data, name))


def _decoded(data: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\x00" in data[:65536]:
        raise BookError(f"found no readable text ({name} is not a text file)")
    for encoding in ("utf-8", *_declared(data)):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    from charset_normalizer import from_bytes

    best = from_bytes(data[:262144]).best()
    encoding = best.encoding if best else "cp1252"
    return data.decode(encoding, errors="replace")


def _declared(data: bytes) -> list[str]:
    found = _DECLARED.search(data[:4096])
    if not found:
        return []
    name = found.group(1).decode("ascii", "replace").lower()
    # Files that say Latin-1 or ASCII mean Windows-1252 whenever they hold curly quotes.
    return (
        ["cp1252"] if name in {"iso-8859-1", "latin-1", "latin1", "ascii", "us-ascii"} else [name]
    )
