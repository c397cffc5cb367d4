"""Tokens: kept as hashes, asked for on every way in, and gone when they are removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from tests.web.conftest import ACTING, Page
from tests.web.streams import server

import lineclear
from lineclear import BadInput, Queue
from lineclear.cli import main
from lineclear.errors import StoreRefused
from lineclear.web.tokens import Tokens

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def tokens(queue: Queue) -> Tokens:
    return Tokens(queue.files)


@pytest.fixture
def control(tokens: Tokens) -> str:
    return tokens.add("desk", "control", now_ms=1)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_token_is_kept_as_a_hash_that_only_its_owner_can_read(
    tokens: Tokens, control: str
) -> None:
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert control not in tokens.path.read_text()
    assert len(control) >= 40
    found = tokens.find(control)
    assert found is not None
    assert (found.name, found.role) == ("desk", "control")
    for wrong in ("", control[:-1], f"{control} ", control.swapcase(), found.sha256):
        assert tokens.find(wrong) is None
    assert [path.name for path in tokens.path.parent.iterdir() if "tokens" in path.name] == [
        "tokens.json"
    ]


def test_a_name_is_given_once(tokens: Tokens, control: str) -> None:
    with pytest.raises(BadInput, match="already"):
        tokens.add("desk", "view", now_ms=1)
    for name in ("", "two words", "../x", "x" * 65, "\n"):
        with pytest.raises(BadInput):
            tokens.add(name, "view", now_ms=1)
    with pytest.raises(BadInput, match="no token"):
        tokens.remove("phone")
    assert tokens.find(control)


def test_tokens_made_at_once_are_all_kept(queue: Queue) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(
            pool.map(lambda n: Tokens(queue.files).add(f"t{n}", "view", now_ms=n), range(24))
        )
    assert all(Tokens(queue.files).find(text) for text in made)


def test_a_token_is_asked_for_as_soon_as_there_is_one(
    queue: Queue, page: Page, tokens: Tokens
) -> None:
    me = page.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["signed_in"], me["tokens"]) == (
        "ada@box", "control", False, False,
    )  # fmt: skip
    text = tokens.add("phone", "view", now_ms=1)
    answer = page.get("/api/v1/me")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    me = page.get("/api/v1/me", headers=bearer(text)).json()
    assert (me["name"], me["role"], me["signed_in"], me["tokens"]) == ("phone", "view", True, True)
    tokens.remove("phone")
    assert page.get("/api/v1/me", headers=bearer(text)).json()["role"] == "control"  # none is left


def test_a_removed_token_opens_nothing_at_once(page: Page, tokens: Tokens, control: str) -> None:
    text = tokens.add("phone", "view", now_ms=1)
    assert page.get("/api/v1/lanes", headers=bearer(text)).status_code == 200
    tokens.remove("phone")
    assert page.get("/api/v1/lanes", headers=bearer(text)).status_code == 401
    assert page.get("/api/v1/lanes", headers=bearer(control)).status_code == 200


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"tokens": 1}', '{"tokens": [{"a": 1}]}'])
def test_a_file_that_cannot_be_read_opens_nothing(
    text: str, page: Page, tokens: Tokens, control: str
) -> None:
    tokens.path.write_text(text)
    with pytest.raises(StoreRefused, match="Nobody is let in"):
        tokens.all()
    for headers in ({}, bearer(control)):
        answer = page.get("/api/v1/lanes", headers=headers)
        assert answer.status_code == 503
        assert str(tokens.path.parent) not in answer.text


def test_signing_in_sets_a_cookie_that_no_script_reads(page: Page, control: str) -> None:
    answer = page.act("/api/v1/login", {"token": control})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    kept = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= kept
    assert "secure" not in kept
    name, _, value = cookie.partition(";")[0].partition("=")
    signed = {"Cookie": f"{name}={value}"}
    assert page.get("/api/v1/me", headers=signed).json()["name"] == "desk"
    out = page.ask("POST", "/api/v1/logout", headers={**ACTING, **signed})
    assert out.status_code == 204
    assert 'lineclear=""' in out.headers["set-cookie"]
    assert "Max-Age=0" in out.headers["set-cookie"]


def test_a_wrong_token_signs_nobody_in(page: Page, control: str) -> None:
    for wrong in ("", "wrong", control[1:], "\ud800", "é"):
        answer = page.ask(
            "POST", "/api/v1/login", content=json.dumps({"token": wrong}),
            headers={**ACTING, "Content-Type": "application/json"},
        )  # fmt: skip
        assert answer.status_code in (401, 422)
        assert "set-cookie" not in answer.headers
    for cookie in ("lineclear=wrong", "lineclear", "lineclear=é", 'lineclear="', ";;;"):
        answer = page.get("/api/v1/lanes", headers={"Cookie": cookie.encode()})
        assert answer.status_code == 401


def test_the_cookie_is_for_https_and_for_the_place_alone(queue: Queue, control: str) -> None:
    outer = FastAPI()
    outer.mount("/queue", lineclear.page(queue))
    page = Page(outer, base="https://localhost")
    cookie = page.act("/queue/api/v1/login", {"token": control}).headers["set-cookie"]
    assert "; Path=/queue;" in cookie
    assert "; Secure" in cookie
    # A proxy that speaks https: the server itself sees none, but the browser says so.
    behind = Page(lineclear.page(queue))
    answer = behind.act("/api/v1/login", {"token": control}, Origin="https://localhost")
    assert "; Secure" in answer.headers["set-cookie"]


def test_every_page_asks_who_is_not_signed_in_for_a_token(page: Page, control: str) -> None:
    for path in ("/", "/history", "/jobs/1", "/jobs/1/log", "/add", "/settings", "/metrics"):
        answer = page.get(path)
        assert (answer.status_code, "main.js" in answer.text) == (401, True), path
        assert page.get(path, headers=bearer(control)).status_code == 200
    assert page.get("/login").status_code == 200
    assert page.get("/static/app.css").status_code == 200


def test_without_javascript_a_form_signs_in(page: Page, control: str) -> None:
    asked = page.get("/plain")
    assert asked.status_code == 401
    assert 'action="./login"' in asked.text
    assert asked.headers["referrer-policy"] == "same-origin"
    answer = page.ask("POST", "/login", content=f"token={control}", headers=FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "plain")
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert page.get("/plain", headers=cookie).status_code == 200
    wrong = page.ask("POST", "/login", content="token=wrong", headers=FORM)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)


def test_two_servers_of_one_host_do_not_sign_each_other_out(tmp_path: Path) -> None:
    """Browsers send what one port gave to every port of its host."""
    kept: dict[str, str] = {}
    pages = []
    for port in (8100, 8101):
        queue = Queue(tmp_path / f"{port}.db")
        queue.check_store()
        text = Tokens(queue.files).add("desk", "control", now_ms=1)
        page = Page(lineclear.page(queue), base=f"http://localhost:{port}")
        answer = page.act("/api/v1/login", {"token": text})
        name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
        kept[name] = value
        pages.append(page)
    sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())}
    assert [page.get("/api/v1/state", headers=sent).status_code for page in pages] == [200, 200]


def test_a_stream_ends_when_its_token_is_removed(queue: Queue, tokens: Tokens) -> None:
    text = tokens.add("phone", "view", now_ms=1)
    other = tokens.add("desk", "view", now_ms=1)
    with server(queue.database, patch="hub.Hub.tick_s = 0.2") as served:
        with (
            served.watch(headers=bearer(text)) as gone,
            served.watch(headers=bearer(other)) as stays,
        ):
            gone.until_event("snapshot")
            stays.until_event("snapshot")
            tokens.remove("phone")
            gone.until(lambda: gone.over, what="the stream ends")
            seen = len(stays.of("tick"))
            stays.until(lambda: len(stays.of("tick")) > seen)
            assert not stays.over
        with served.watch(headers=bearer(text)) as again:
            again.until(lambda: again.status)
            assert again.status == 401


def test_a_stream_ends_when_the_first_token_is_made(queue: Queue, tokens: Tokens) -> None:
    with server(queue.database, patch="hub.Hub.tick_s = 0.2") as served, served.watch() as open_:
        open_.until_event("snapshot")
        tokens.add("desk", "control", now_ms=1)
        open_.until(lambda: open_.over, what="the stream ends")


def test_a_form_of_an_unknown_page_signs_nobody_in(page: Page, control: str) -> None:
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}, {}):
        sent = {"Content-Type": FORM["Content-Type"], **headers}
        answer = page.ask("POST", "/login", content=f"token={control}", headers=sent)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_the_command_line_makes_lists_and_removes_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "jobs.db"

    def said(*words: str) -> tuple[int, str]:
        try:
            code = main(["--database", str(database), "token", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out: Callable[[], tuple[str, str]] = capsys.readouterr
        return code, out()[0]

    code, text = said("add", "phone", "--view")
    assert code == 0
    tokens = Tokens(Queue(database).files)
    found = tokens.find(text.strip())
    assert found is not None
    assert found.role == "view"
    assert said("add", "desk")[0] == 0
    code, listed = said("list")
    assert [line.split()[:2] for line in listed.splitlines()] == [
        ["phone", "view"],
        ["desk", "control"],
    ]
    assert text.strip() not in listed
    assert said("add", "desk")[0] == 2
    assert said("add")[0] == 2
    assert said("remove", "phone")[0] == 0
    assert said("remove", "phone")[0] == 2
    assert [one.name for one in tokens.all()] == ["desk"]
