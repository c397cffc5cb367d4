"""One book from Project Gutenberg by its id: politely, once, and kept.

One request at a time on this machine, a pause between requests, a User-Agent that says who asks,
conditional requests for what is kept, and a wait as long as the server asks for. Called by the
render, never by the command line or a page.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedside import __version__
from bedside.book import BedsideError

if TYPE_CHECKING:
    import httpx

AGENT = f"Bedside/{__version__} (part of Line Clear; renders one book at a time for one listener)"
LARGEST = 100 * 1024 * 1024
LONGEST_WAIT_S = 300.0
_ASKED_AGAIN = 3
_BUSY = {429, 503}
_NAMES = ("pg{id}.epub", "pg{id}-images-3.epub", "pg{id}-images.html", "pg{id}.txt")


class FetchError(BedsideError):
    """The book could not be fetched; the sentence says why and what to do."""


@dataclass(frozen=True, slots=True)
class Gutenberg:
    """The shop. ``wait`` is called for every pause and may raise, so that a stop does not sit one
    out.
    """

    base: str
    cache: Path
    pause_s: float = 2.0
    wait: Callable[[float], None] = time.sleep

    def fetch(self, number: int) -> Path:
        """The file of book ``number``, EPUB rather than HTML rather than text, in the cache."""
        import httpx

        folder = self.cache / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        timeout = httpx.Timeout(30.0, connect=15.0)
        headers = {"User-Agent": AGENT}
        with (
            self._alone(),
            httpx.Client(timeout=timeout, headers=headers, follow_redirects=True) as client,
        ):
            try:
                return self._first(client, folder, number)
            except httpx.HTTPError as error:
                kept = self._kept(folder, number)
                if kept:
                    return kept
                raise FetchError(
                    f"book {number} could not be fetched from {self.base}: "
                    f"{error or type(error).__name__}; try again later, or add the file itself"
                ) from error

    def _first(self, client: httpx.Client, folder: Path, number: int) -> Path:
        for at, name in enumerate(each.format(id=number) for each in _NAMES):
            if at:
                self.wait(self.pause_s)
            path = self._one(client, f"{self.base}/cache/epub/{number}/{name}", folder / name)
            if path:
                return path
        raise FetchError(
            f"Project Gutenberg has no readable book {number}; check the number on its page there"
        )

    def _one(self, client: httpx.Client, address: str, path: Path) -> Path | None:
        """The file at ``address``, fetched or still as it was; ``None`` where there is no such
        file.
        """
        for _ in range(_ASKED_AGAIN + 1):
            with client.stream("GET", address, headers=_conditions(path)) as answer:
                if answer.status_code == 304 and path.exists():
                    return path
                if answer.status_code in {403, 404, 410}:
                    return None
                if answer.status_code not in _BUSY:
                    answer.raise_for_status()
                    _save(answer, path)
                    return path
                pause = _asked_wait(answer, self.pause_s)
            if pause > LONGEST_WAIT_S:
                raise FetchError(
                    f"Project Gutenberg asks to wait {round(pause)} s; ask again after that"
                )
            self.wait(pause)
        raise FetchError(
            f"Project Gutenberg was busy {_ASKED_AGAIN + 1} times in a row; ask again later"
        )

    def _kept(self, folder: Path, number: int) -> Path | None:
        return next(
            (
                folder / name.format(id=number)
                for name in _NAMES
                if (folder / name.format(id=number)).exists()
            ),
            None,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.cache / ".one-at-a-time").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _conditions(path: Path) -> dict[str, str]:
    try:
        known = json.loads(_beside(path).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not path.exists():
        return {}
    return {
        name: str(known[key])
        for name, key in (("If-None-Match", "etag"), ("If-Modified-Since", "modified"))
        if known.get(key)
    }


def _asked_wait(answer: httpx.Response, otherwise: float) -> float:
    said = answer.headers.get("Retry-After", "")
    if said.isdecimal():
        return float(said)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError):
        return otherwise * 5


def _save(answer: httpx.Response, path: Path) -> None:
    part = path.with_name(f"{path.name}.part")
    taken = 0
    with part.open("wb") as file:
        for chunk in answer.iter_bytes():
            taken += len(chunk)
            if taken > LARGEST:
                file.close()
                part.unlink()
                raise FetchError(
                    f"{answer.url} is larger than {LARGEST // 1024**2} MB; it was not fetched"
                )
            file.write(chunk)
    part.replace(path)
    known = {"etag": answer.headers.get("ETag"), "modified": answer.headers.get("Last-Modified")}
    _beside(path).write_text(json.dumps(known), "utf-8")


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
