"""A zip archive read within limits, and the question whether its pages are locked.

Used by the EPUB reader only. A name is looked up among the members and never becomes a path on
disk.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field

from lxml import etree

from bedside.book import BookError
from bedside.text import markup

MEMBERS = 20_000
LARGEST_MEMBER = 32 * 1024 * 1024
LARGEST_TOTAL = 200 * 1024 * 1024

_FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_LICENCES = ("META-INF/rights.xml", "META-INF/license.lcpl", "META-INF/sinf.xml")


@dataclass(slots=True)
class Archive:
    """One opened archive. ``name`` is the file's name, for sentences."""

    opened: zipfile.ZipFile
    name: str
    taken: int = 0
    _names: dict[str, zipfile.ZipInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        members = self.opened.infolist()
        if len(members) > MEMBERS:
            raise BookError(f"{self.name} holds more than {MEMBERS} files; that is not a book")
        for member in reversed(members):
            self._names[member.filename.casefold()] = member
        self._names.update({member.filename: member for member in members})

    def find(self, name: str) -> zipfile.ZipInfo | None:
        return self._names.get(name) or self._names.get(name.casefold())

    def read(self, name: str) -> bytes | None:
        """The bytes of a member, ``None`` if there is no such member. Counts what comes out, not
        what is claimed.
        """
        member = self.find(name)
        if member is None or member.is_dir():
            return None
        if member.flag_bits & 0x1:
            raise BookError(f"{self.name} is locked with a password; Bedside cannot read it")
        with self.opened.open(member) as stream:
            data = stream.read(LARGEST_MEMBER + 1)
        self.taken += len(data)
        if len(data) > LARGEST_MEMBER or self.taken > LARGEST_TOTAL:
            raise BookError(f"{self.name} unpacks to far more than a book; it was not read")
        return data

    def refuse_locked(self, pages: set[str]) -> None:
        """Raise when a page is encrypted or the archive carries a reader's licence. Scrambled fonts
        are fine.
        """
        if any(self.find(name) for name in _LICENCES) or pages & self._encrypted():
            raise BookError(
                f"{self.name} is locked by its seller (DRM), so there is no readable text in it; "
                "add a copy without the lock"
            )

    def _encrypted(self) -> set[str]:
        data = self.read("META-INF/encryption.xml")
        if data is None:
            return set()
        try:
            root = markup.parse_xml(data)
        except etree.XMLSyntaxError:
            return set()
        locked = set()
        for entry in root.iter("{*}EncryptedData"):
            method = next(
                (each.get("Algorithm", "") for each in entry.iter("{*}EncryptionMethod")), ""
            )
            if method not in _FONTS:
                from bedside.text.epub import inside

                locked |= {
                    inside("", each.get("URI", "")) for each in entry.iter("{*}CipherReference")
                }
        return locked
