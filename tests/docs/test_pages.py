"""The pages hold together: links lead somewhere, no file speaks of where it was written."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PLACES = ("src", "apps", "tests", "docs", "bench", ".ci")
FILES = ("*.md", "*.toml", "*.txt", "Makefile", "LICENSE", ".gitignore")
# Written so that this file does not hold what it looks for.
ELSEWHERE = re.compile(
    r"(?<![\w.])/(?:wor[k]|far[m]|roo[t])/|pyp[i]\.org|pythonhoste[d]|npmj[s]\.|deb\.debia[n]"
)


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("apps/*/*.md")]


def anchors(page: Path) -> set[str]:
    plain = (
        re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(page.read_text())
    )
    return {heading.replace(" ", "-") for heading in plain}


def test_relative_links_lead_somewhere() -> None:
    lost = []
    for page in pages():
        for one, other in LINK.findall(CODE.sub("", page.read_text())):
            link = one or other
            if "://" in link or link.startswith("mailto:"):
                continue
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                lost.append(f"{page.relative_to(ROOT)}: {link}")
    assert lost == []


def test_every_page_is_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = (one or other for one, other in LINK.findall(CODE.sub("", page.read_text())))
        todo += [page.parent / link.partition("#")[0] for link in links if "://" not in link]
    written = {page.resolve() for page in ROOT.glob("docs/**/*.md")}
    assert written - seen == set()


def test_no_file_names_the_place_it_was_written_in() -> None:
    files = [file for pattern in FILES for file in ROOT.glob(pattern)]
    files += [file for place in PLACES for file in (ROOT / place).rglob("*") if file.is_file()]
    found = []
    for file in files:
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue  # a recording or a picture
        found += [f"{file.relative_to(ROOT)}: {place}" for place in ELSEWHERE.findall(text)]
    assert found == []


def test_pictures_fetch_nothing() -> None:
    for picture in ROOT.glob("docs/images/*.svg"):
        told = picture.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?:|@import|@font-face|<script", told) == [], picture.name
