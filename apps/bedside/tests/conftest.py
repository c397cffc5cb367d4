"""What Bedside's tests share: the real books, small books made on the spot, a home of their own."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""

MakeEpub = Callable[..., Path]


@pytest.fixture(scope="session")
def real_book() -> Callable[[str], Path]:
    """The path of one of the real books; where they are absent the test fails in CI, else skips."""
    folder = Path(os.environ.get("LINECLEAR_BOOKS") or ROOT / ".." / "shared" / "books")

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            says = f"{name} is not in {folder}; set LINECLEAR_BOOKS to the folder of the real books"
            if os.environ.get("CI"):
                pytest.fail(says)
            pytest.skip(says)
        return path

    return find


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, which this process and those it starts take for theirs."""
    folder = tmp_path / "home"
    monkeypatch.setenv("BEDSIDE_HOME", str(folder))
    monkeypatch.setenv("BEDSIDE_DATABASE", str(folder / "lineclear.db"))
    monkeypatch.setenv("BEDSIDE_GUTENBERG", "http://127.0.0.1:9")
    return folder


@pytest.fixture
def make_epub(tmp_path: Path) -> MakeEpub:
    """An EPUB of documents: name to body (or whole document), in spine order."""

    def make(
        documents: Mapping[str, str],
        *,
        contents: Mapping[str, str] | None = None,
        ncx: bool = False,
        extra: Mapping[str, str | bytes] | None = None,
        missing: tuple[str, ...] = (),
        title: str = "A Small Book",
    ) -> Path:
        path = tmp_path / "small.epub"
        names = [*documents, *missing]
        items = "".join(
            f'<item id="i{at}" href="{name}" media-type="application/xhtml+xml"/>'
            for at, name in enumerate(names)
        )
        spine = "".join(f'<itemref idref="i{at}"/>' for at in range(len(names)))
        files: dict[str, str | bytes] = {"META-INF/container.xml": CONTAINER}
        if contents and ncx:
            items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
            points = "".join(
                f"<navPoint><navLabel><text>{label}</text></navLabel>"
                f"<content src='{to}'/></navPoint>"
                for to, label in contents.items()
            )
            files["OPS/toc.ncx"] = (
                f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{points}</navMap></ncx>'
            )
        elif contents:
            items += (
                '<item id="nav" href="nav.xhtml" properties="nav" '
                'media-type="application/xhtml+xml"/>'
            )
            links = "".join(
                f'<li><a href="{to}">{label}</a></li>' for to, label in contents.items()
            )
            files["OPS/nav.xhtml"] = document(f'<nav epub:type="toc"><ol>{links}</ol></nav>')
        files["OPS/book.opf"] = (
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:title>{title}</dc:title><dc:creator>Nobody</dc:creator>"
            "<dc:language>en</dc:language></metadata>"
            f'<manifest>{items}</manifest><spine toc="{"ncx" if ncx else ""}">{spine}</spine>'
            "</package>"
        )
        for name, body in documents.items():
            files[f"OPS/{name}"] = body if body.startswith("<?xml") else document(body)
        files.update(extra or {})
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
            for name, data in files.items():
                archive.writestr(name, data)
        return path

    return make


def document(body: str) -> str:
    """A whole XHTML document around ``body``."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title>a page</title></head><body>{body}</body></html>"
    )
