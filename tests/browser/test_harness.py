"""What the harness watches for is noticed; else a page without faults would prove nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser
from tests.browser import harness
from tests.browser.harness import DESK, open_visit
from tests.helpers import wait_until

FAULTS = {
    "": ("<p>nothing wrong", ""),
    "inline": ("<script>document.title = 1</script>", "Content Security Policy"),
    "style": ("<p style='color: red'>", "Content Security Policy"),
    "foreign": ("<img src='http://127.0.0.2:9/x.png'>", "left the origin"),
    "missing": ("<img src='gone.png'>", "404"),
    "raises": ("<script src='raise.js'></script>", "page error: broken"),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/")
        script = name == "raise.js"
        known = script or name in FAULTS
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header(
            "Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src 'self' data:"
        )
        self.end_headers()
        html = f"<link rel=icon href='data:,'>{FAULTS.get(name, ('', ''))[0]}"
        self.wfile.write(b"throw Error('broken')" if script else html.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", FAULTS)
def test_the_harness_notices(chromium: Browser, path: str) -> None:
    with listening() as url:
        visit = open_visit(chromium, SimpleNamespace(url=url), path, size=DESK)  # type: ignore[arg-type]
        if fault := FAULTS[path][1]:
            wait_until(lambda: visit.page.evaluate("1") and any(fault in p for p in visit.problems))
            with pytest.raises(AssertionError, match=fault):
                visit.check()
            visit.expect(fault, "127.0.0.2", "gone.png")
        visit.check()
        visit.context.close()


def test_a_missing_browser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="apt-get install chromium"):
        harness.chromium()
