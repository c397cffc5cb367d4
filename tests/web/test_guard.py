"""Who is let through, on every route there is: the routes are asked for, not listed here."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from tests.browser.harness import Ground
from tests.web.conftest import ACTING, Page

import lineclear
from lineclear import Queue
from lineclear.web.guard import BODY_LIMIT, Guard
from lineclear.web.tokens import Tokens

FORM = "application/x-www-form-urlencoded"
SIGNING = ("/login", "/api/v1/login", "/api/v1/logout")
BODIES: dict[str, Any] = {
    "/api/v1/jobs": {"task": "render", "args": {"name": "Emma"}},
    "/api/v1/jobs/{job_id}/move": {"to": "top"},
    "/api/v1/jobs/retry": {"ids": [1]},
    "/api/v1/jobs/remove": {"ids": [1]},
    "/api/v1/clear": {"states": ["done"]},
    "/api/v1/lanes/{lane}/clear": {"expect": 3},
    "/api/v1/lanes/{lane}": {"delay_s": 60},
    "/api/v1/undo": {"undo": None},
    "/api/v1/login": {"token": "none"},
}


def routes(router: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Method and template of each, hidden ones too."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            for method in sorted(route.methods or ()):
                yield method, prefix + route.path
        elif inner := getattr(route, "original_router", None):  # included since FastAPI 0.160
            yield from routes(inner, prefix + route.include_context.prefix)


def unsafe(app: Guard) -> Iterator[tuple[str, str, str]]:
    """Method, template and address of everything that acts."""
    for method, path in routes(app.app):
        if method not in ("GET", "HEAD"):
            yield method, path, filled(path)


def filled(path: str) -> str:
    values = {"lane": "render", "act": "hold", "name:path": "app.css"}
    return re.sub(r"\{([^}]+)\}", lambda name: values.get(name[1], "1"), path)


def is_form(path: str) -> bool:
    return not path.startswith("/api/")


def everything(queue: Queue) -> Any:
    return queue.last_seq(), queue.jobs(hidden=True), queue.lanes(), Tokens(queue.files).all()


def proper(path: str) -> dict[str, Any]:
    """What the page itself sends."""
    if is_form(path):
        return {"content": "", "headers": {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}}
    return {
        "json": BODIES.get(path, {}),
        "headers": {
            **ACTING,
            "Sec-Fetch-Site": "same-origin",
            "Origin": "http://localhost",
        },
    }


def changed(path: str, **headers: str | None) -> dict[str, Any]:
    sent = proper(path)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in sent["headers"].items() if name not in named}
    return {**sent, "headers": {**kept, **{n: v for n, v in named.items() if v is not None}}}


@pytest.fixture
def filled_queue(queue: Queue) -> Queue:
    for name in ("Dune", "Solaris", "Emma"):
        queue.submit("render", {"name": name})
    return queue


def test_what_the_page_itself_sends_passes(filled_queue: Queue) -> None:
    """Else the refusals below would prove nothing."""
    app = lineclear.page(filled_queue)
    page = Page(app)
    asked = list(unsafe(app))
    documented = app.app.openapi()["paths"].items()
    named = {(method.upper(), path) for path, known in documented for method in known}
    assert len(named) > 30
    assert named <= set(routes(app.app))
    for method, path, address in asked:
        answer = page.ask(method, address, **proper(path))
        assert answer.status_code not in (403, 405, 415, 500), f"{path}: {answer.text}"
        assert answer.status_code != 401 or path in SIGNING


FOREIGN: dict[str, tuple[int, dict[str, str | None]]] = {
    "another name for this server": (403, {"Host": "evil.example"}),
    "another name with our port": (403, {"Host": "evil.example:8765"}),
    "our name at its beginning": (403, {"Host": "localhost.evil.example"}),
    "another site's address": (403, {"Origin": "http://evil.example"}),
    "another port of this machine": (403, {"Origin": "http://localhost:1"}),
    "no site at all": (403, {"Origin": "null"}),
    "another site": (403, {"Sec_Fetch_Site": "cross-site"}),
    "a sibling": (403, {"Sec_Fetch_Site": "same-site"}),
    "typed in": (403, {"Sec_Fetch_Site": "none"}),
    "text": (415, {"Content_Type": "text/plain"}),
    "a file": (415, {"Content_Type": "multipart/form-data; boundary=x"}),
}


@pytest.mark.parametrize("how", FOREIGN)
def test_e29_a_foreign_request_changes_nothing_on_any_route(how: str, filled_queue: Queue) -> None:
    status, headers = FOREIGN[how]
    app = lineclear.page(filled_queue)
    page, before = Page(app), everything(filled_queue)
    for method, path, address in unsafe(app):
        answer = page.ask(method, address, **changed(path, **headers))
        assert answer.status_code == status, f"{path}: {answer.text}"
        assert answer.headers["content-type"] == "application/problem+json"
        assert everything(filled_queue) == before, path


def test_e29_without_the_header_nothing_is_done(filled_queue: Queue) -> None:
    app = lineclear.page(filled_queue)
    page, before = Page(app), everything(filled_queue)
    for method, path, address in unsafe(app):
        if is_form(path):  # it has no header of its own, so the browser has to vouch for it
            sent = changed(path, Sec_Fetch_Site=None)
        else:
            sent = changed(path, Lineclear_Request=None)
        answer = page.ask(method, address, **sent)
        assert answer.status_code == 403, f"{path}: {answer.text}"
    assert everything(filled_queue) == before


def test_json_is_no_form_and_a_form_is_no_json(filled_queue: Queue) -> None:
    app = lineclear.page(filled_queue)
    page, before = Page(app), everything(filled_queue)
    for method, path, address in unsafe(app):
        other = "application/json" if is_form(path) else FORM
        answer = page.ask(method, address, **changed(path, Content_Type=other))
        assert answer.status_code == 415, f"{path}: {answer.text}"
    assert everything(filled_queue) == before


def test_e29_a_view_token_acts_on_no_route(filled_queue: Queue) -> None:
    text = Tokens(filled_queue.files).add("phone", "view", now_ms=0)
    app = lineclear.page(filled_queue)
    page, before = Page(app), everything(filled_queue)
    for method, path, address in unsafe(app):
        answer = page.ask(method, address, **changed(path, Authorization=f"Bearer {text}"))
        if path in SIGNING:
            assert answer.status_code != 403
            continue
        assert answer.status_code == 403, f"{path}: {answer.text}"
        assert answer.json()["detail"] == "The token phone may look, not act. Nothing was done."
    assert everything(filled_queue) == before


def test_e29_without_a_token_nothing_is_told_or_done(filled_queue: Queue) -> None:
    Tokens(filled_queue.files).add("phone", "control", now_ms=0)
    filled_queue.submit("render", {"name": "The Secret"})
    app = lineclear.page(filled_queue)
    page, before = Page(app), everything(filled_queue)
    for method, path, address in unsafe(app):
        for token in (None, "Bearer wrong", "Basic eDp5", "Bearer "):
            answer = page.ask(method, address, **changed(path, Authorization=token))
            assert answer.status_code in (401, 422 if path in SIGNING else 401), path
    assert everything(filled_queue) == before
    for method, path in routes(app.app):
        if method == "GET":
            answer = page.get(filled(path))
            assert "Secret" not in answer.text
            open_to_all = path in ("/login", "/-/health", "/static/{name:path}")
            assert (answer.status_code == 401) != open_to_all, path


def test_reading_is_not_for_other_sites(page: Page) -> None:
    for path in ("/api/v1/lanes", "/api/v1/stream", "/-/metrics"):
        for site in ("cross-site", "same-site"):
            assert page.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert page.get("/api/v1/lanes", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    # A link from elsewhere may lead to a page.
    assert page.get("/history", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_e29_a_foreign_name_reads_nothing_either(page: Page) -> None:
    for path in ("/", "/static/app.css", "/api/v1/lanes", "/-/health", "/plain"):
        for host in ("evil.example", "localhost.evil.example", "", "192.168.7.7", "[::2]:80"):
            answer = page.get(path, headers={"Host": host})
            assert answer.status_code == 403, (path, host)
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1:8765", "[::1]:8765", "localhost."):
        assert page.get("/api/v1/lanes", headers={"Host": host}).status_code == 200, host


def test_names_are_ours_where_they_were_said(queue: Queue) -> None:
    page = Page(lineclear.page(queue, hosts=["Box.lan"]))
    assert page.get("/", headers={"Host": "box.lan:8765"}).status_code == 200
    assert page.get("/", headers={"Host": "192.168.7.7"}).status_code == 403
    everywhere = Page(lineclear.page(queue, hosts=["0.0.0.0"]))
    assert everywhere.get("/", headers={"Host": "192.168.7.7:80"}).status_code == 200
    assert everywhere.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_two_names_are_none(served: Ground) -> None:
    head = "GET /api/v1/lanes HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert raw(served, head).split()[1] in (b"403", b"400")


def test_acts_are_written_down_with_who_did_them(filled_queue: Queue) -> None:
    job = filled_queue.jobs()[0].id
    page = Page(lineclear.page(filled_queue))
    assert page.act(f"/api/v1/jobs/{job}/hold").status_code == 200
    text = Tokens(filled_queue.files).add("phone", "control", now_ms=0)
    assert page.act(f"/api/v1/jobs/{job}/release", Authorization=f"Bearer {text}").is_success
    assert [event.by for event in filled_queue.events(job)[-2:]] == ["ada@box", "phone"]


def test_who_comes_over_a_trusted_network_is_known_by_address(filled_queue: Queue) -> None:
    Tokens(filled_queue.files).add("phone", "view", now_ms=0)
    app = lineclear.page(filled_queue, hosts=["0.0.0.0"], trust_network=True)
    there = Page(app, client="192.168.7.9")
    assert there.get("/api/v1/me").json()["name"] == "192.168.7.9"
    assert Page(app).get("/api/v1/me").json()["name"] == "ada@box"


def test_a_body_over_the_limit_is_refused_before_it_is_read(served: Ground) -> None:
    for told in (f"Content-Length: {BODY_LIMIT + 1}", "Content-Length: " + "9" * 30):
        head = (
            "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nLineclear-Request: 1\r\n"
            f"Content-Type: application/json\r\n{told}\r\n\r\n"
        )
        assert raw(served, head).split()[1] in (b"413", b"400")


def test_a_body_without_a_length_ends_at_the_limit(page: Page) -> None:
    async def endless() -> Any:
        piece = b" " * (BODY_LIMIT // 8)
        for _ in range(10):
            yield piece

    headers = {**ACTING, "Content-Type": "application/json"}
    answer = page.ask("POST", "/api/v1/jobs", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert "over" in answer.json()["detail"]


def test_half_a_request_holds_nobody_up(served: Ground) -> None:
    address = (served.server.host, served.server.port)
    halves = [socket.create_connection(address) for _ in range(60)]
    try:
        for half in halves[:30]:
            half.sendall(b"GET /api/v1/lanes HT")
        for half in halves[30:]:
            half.sendall(
                b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nLineclear-Request: 1\r\n"
                b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
            )
        whole = "GET /api/v1/lanes HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert raw(served, whole).split()[1] == b"200"
    finally:
        for half in halves:
            half.close()


def raw(ground: Ground, head: str, *, encoding: str = "latin-1") -> bytes:
    """The answer to what no client library would send."""
    with socket.create_connection((ground.server.host, ground.server.port), timeout=5) as sent:
        sent.sendall(head.encode(encoding))
        sent.settimeout(5)
        answer = sent.recv(65_536)
        while b"\r\n\r\n" not in answer and (more := sent.recv(65_536)):
            answer += more
        return answer


CLIMBING = [
    "../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%252f..%252f..%252fetc%252fpasswd",
    "..\\..\\..\\etc\\passwd",
    "..%5c..%5cetc%5cpasswd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "file:///etc/passwd",
    "app.css%00.js",
    "%00",
    "../guard.py",
    "..%2fguard.py",
    "./index.html/../../guard.py",
    "....//....//guard.py",
    "..%c0%af..%c0%afguard.py",
]
INSIDE = (b"root:x:", b"class Guard", b"SQLite format 3", b"sha256")


def test_e29_no_path_comes_from_a_request(served: Ground) -> None:
    """In the place of each part of each address, and of each value that may be asked with."""
    document = lineclear.page(served.queue).app.openapi()
    places = ["/{}", "/static/{}", "/jobs/{}", "/jobs/{}/log.txt", "/jobs/1/{}", "/plain/{}"]
    for path, operations in document["paths"].items():
        if path == "/api/v1/stream" or "get" not in operations:
            continue
        for part in operations["get"].get("parameters", []):
            if part["in"] == "path":
                places.append(path.replace(f"{{{part['name']}}}", "{}"))
            elif part["in"] == "query":
                places.append(f"{filled(path)}?{part['name']}={{}}")
    assert len(places) > 20
    for place in places:
        for climb in CLIMBING:
            target = filled(place.replace("{}", climb))
            head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            answer = raw(served, head)
            assert not any(one in answer for one in INSIDE), target
            assert int(answer.split()[1]) < 500, target


def test_static_files_are_those_of_the_page_alone(page: Page) -> None:
    assert page.get("/static/app.css").headers["content-type"] == "text/css; charset=utf-8"
    for name in ("nothing.js", "", "screens", "screens/", "APP.CSS"):
        answer = page.get(f"/static/{name}")
        assert answer.status_code == 404, name
        assert answer.headers["content-type"] == "application/problem+json"
