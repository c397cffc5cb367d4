"""Fetching by id against a server on this machine: polite, cached, clear when it cannot be done."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bedside import fetch
from bedside.fetch import FetchError, Gutenberg
from bedside.library import Library

PAGE = b"<html><body><p>Hello.</p></body></html>"


@dataclass
class Shop:
    """What the server answers (per path, the last again and again), and what it was asked."""

    answers: dict[str, list[tuple[int, dict[str, str], bytes]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    base: str = ""

    def put(self, name: str, status: int, body: bytes = b"", **headers: str) -> None:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self.answers.setdefault(f"/cache/epub/11/{name}", []).append((status, named, body))


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append((self.path.rpartition("/")[2], dict(self.headers)))
            answers = made.answers.get(self.path, [(404, {}, b"")])
            status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def gutenberg(shop: Shop, tmp_path: Path, pauses: list[float]) -> Callable[[], Gutenberg]:
    return lambda: Gutenberg(shop.base, tmp_path, wait=pauses.append)


def test_b01_a_book_is_fetched_once_and_then_asked_for_politely(shop, gutenberg, pauses) -> None:
    shop.put("pg11-images.html", 200, PAGE, ETag='"v1"')
    shop.put("pg11-images.html", 304)
    path = gutenberg().fetch(11)
    assert path.read_bytes() == PAGE
    assert [name for name, _ in shop.asked] == [
        "pg11.epub",
        "pg11-images-3.epub",
        "pg11-images.html",
    ]
    assert all("Line Clear" in headers["User-Agent"] for _, headers in shop.asked)
    assert pauses == [2.0, 2.0]
    assert gutenberg().fetch(11) == path and path.read_bytes() == PAGE
    assert shop.asked[-1][1]["If-None-Match"] == '"v1"'


def test_b01_an_epub_comes_first(shop, gutenberg, pauses) -> None:
    shop.put("pg11.epub", 200, b"PK")
    shop.put("pg11.txt", 200, b"text")
    assert gutenberg().fetch(11).name == "pg11.epub"
    assert len(shop.asked) == 1 and pauses == []


def test_b01_a_busy_server_is_given_the_time_it_asks_for(shop, gutenberg, pauses) -> None:
    shop.put("pg11.epub", 503, Retry_After="7")
    shop.put("pg11.epub", 429, Retry_After="Thu, 01 Jan 2026 00:00:00 GMT")
    shop.put("pg11.epub", 200, b"PK")
    gutenberg().fetch(11)
    assert pauses == [7.0, 0.0]


@pytest.mark.parametrize(
    ("status", "headers", "says"),
    [
        (404, {}, "has no readable book 11"),
        (503, {"Retry_After": "3600"}, "asks to wait 3600 s"),
        (429, {"Retry_After": "1"}, "was busy 4 times in a row"),
        (500, {}, "could not be fetched"),
    ],
)
def test_b01_what_cannot_be_had_is_a_sentence(shop, gutenberg, status, headers, says) -> None:
    shop.put("pg11.epub", status, **headers)
    with pytest.raises(FetchError, match=says):
        gutenberg().fetch(11)


def test_b01_a_file_without_end_is_not_kept(shop, gutenberg, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(fetch, "LARGEST", 100)
    shop.put("pg11.epub", 200, b"x" * 200)
    with pytest.raises(FetchError, match="was not fetched"):
        gutenberg().fetch(11)
    assert [path.name for path in (tmp_path / "11").iterdir()] == []


def test_b01_what_is_kept_serves_when_nobody_answers(shop, gutenberg, tmp_path) -> None:
    shop.put("pg11.epub", 200, b"PK")
    path = gutenberg().fetch(11)
    away = Gutenberg("http://127.0.0.1:9", tmp_path)
    assert away.fetch(11) == path
    with pytest.raises(FetchError, match="try again later, or add the file itself"):
        away.fetch(12)


def test_b01_a_stop_does_not_sit_out_a_pause(shop, tmp_path) -> None:
    class Stopped(BaseException):
        pass

    def stop(_: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        Gutenberg(shop.base, tmp_path, wait=stop).fetch(11)
    assert len(shop.asked) == 1


def test_b01_b04_a_number_is_fetched_read_and_rendered_by_the_worker(
    shop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = Path(sys.executable).parent
    monkeypatch.setenv("BEDSIDE_GUTENBERG", shop.base)
    shop.put("pg11.epub", 404)
    shop.put("pg11-images.html", 200, b"<title>Boxes, by Nobody</title><h2>I</h2><p>A.</p>" + PAGE)
    added = subprocess.run([bin_folder / "bedside", "add", "11", "--voice", "tone"], check=False)
    assert added.returncode == 0 and shop.asked == []
    queue = home / "lineclear.db"
    ran = subprocess.run([bin_folder / "lineclear", "--database", queue, "run", "1"], check=False)
    assert ran.returncode == 0 and len(shop.asked) == 3
    with Library.open(home) as library:
        row = library.get(1)
        assert (row.title, row.author, row.chapters_total) == ("Boxes", "Nobody", 1)
        assert row.done_ms is not None and len(library.chapters(row)) == 1
