"""The page without JavaScript, through the whole application: what it shows, what its forms do."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

import lineclear
from lineclear import Context, Queue
from lineclear.job import State

MARKUP = "<img src=x onerror=alert(1)>\"'&"
SAME = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}


class Seen(HTMLParser):
    """What a browser makes of a page: its elements and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.forms: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"], attrs
        if tag == "form":
            found = dict(attrs)
            self.forms.append(f"{found['method']} {found['action']}")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    queue = Queue(tmp_path / "jobs.db", by="ada")

    @queue.task(lane="render", title="{name}")
    def render(ctx: Context, name: str, pages: int = 3) -> None:
        raise NotImplementedError

    yield queue
    queue.close()


class Browser:
    """One that follows nothing by itself."""

    def __init__(self, queue: Queue) -> None:
        self.app = lineclear.page(queue)

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def post(self, path: str, *, headers: dict[str, str], data: dict[str, str]) -> httpx.Response:
        return self.send("POST", path, headers=headers, data=data)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, **more)

        return asyncio.run(sent())


@pytest.fixture
def browser(queue: Queue) -> Browser:
    return Browser(queue)


def post(browser: Browser, path: str, **fields: object) -> httpx.Response:
    given = {name: str(value) for name, value in fields.items()}
    answer = browser.post(path, data=given, headers=SAME)
    assert answer.status_code in (303, 404, 409, 422), answer.text
    return answer


def version(queue: Queue, job_id: int) -> int:
    return queue.get(job_id).version


def test_the_sentence_the_lines_and_a_form_for_every_act(queue: Queue, browser: Browser) -> None:
    dune = queue.submit("render", {"name": "Dune"})
    emma = queue.submit("render", {"name": "Emma"})
    queue.hold(emma.id)
    page = browser.get("/plain")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in page.headers["content-security-policy"].replace("script-src 'self'", "")
    seen = Seen(page.text)
    assert "Nobody serves lane render." in seen.text
    assert "Waiting (2)" in seen.text
    assert "2nd when resumed, by" in seen.text
    assert not {"script", "style", "img"} & set(seen.tags)
    assert seen.text.index("Dune") < seen.text.index("Emma")
    acts = {form.removeprefix("post plain/jobs/") for form in seen.forms}
    assert {f"{dune.id}/{act}" for act in ("hold", "move", "force", "remove")} <= acts
    assert f"{emma.id}/release" in acts
    assert {"post plain/pause", "post plain/resume", "post plain/undo"} <= set(seen.forms)
    assert {f"{verb} plain/lanes/render/{act}" for verb, act in (
        ("post", "pause"), ("post", "set"), ("get", "stop-now"), ("get", "clear"),
    )} <= set(seen.forms)  # fmt: skip


def test_its_forms_act_in_the_readers_name(queue: Queue, browser: Browser) -> None:
    ids = [queue.submit("render", {"name": name}).id for name in ("a", "b", "c")]

    def act(job_id: int, name: str, **fields: str) -> httpx.Response:
        return post(
            browser, f"/plain/jobs/{job_id}/{name}", version=version(queue, job_id), **fields
        )

    answer = act(ids[2], "move", to="top")
    assert answer.headers["location"] == "../../../plain"
    assert [job.id for job in queue.waiting("render")] == [ids[2], ids[0], ids[1]]
    act(ids[0], "hold")
    assert queue.get(ids[0]).held_by == "ada"
    act(ids[0], "release")
    assert queue.get(ids[0]).held_ms is None
    act(ids[1], "force")
    assert queue.get(ids[1]).forced_ms is not None
    act(ids[1], "remove")
    assert queue.get(ids[1]).state is State.CANCELLED
    post(browser, "/plain/undo")
    assert queue.get(ids[1]).state is State.QUEUED
    act(ids[1], "remove")
    act(ids[1], "retry", first="1")
    assert queue.place(ids[1]) == 1


def test_an_act_on_a_version_that_is_gone_changes_nothing(queue: Queue, browser: Browser) -> None:
    job = queue.submit("render", {"name": "a"})
    queue.hold(job.id)
    for act in ("release", "force", "remove", "stop", "kill"):
        answer = post(browser, f"/plain/jobs/{job.id}/{act}", version=job.version)
        assert answer.status_code == 409, act
    assert queue.get(job.id).held_by == "ada"


def test_stopping_takes_two_steps(queue: Queue, browser: Browser) -> None:
    job = queue.submit("render", {"name": "a"})
    first = browser.get(f"/plain/jobs/{job.id}/stop")
    assert queue.get(job.id).state is State.QUEUED
    assert "post stop" in Seen(first.text).forms
    post(browser, f"/plain/jobs/{job.id}/stop", version=job.version)
    assert queue.get(job.id).state is State.CANCELLED
    for name in ("b", "c"):
        queue.submit("render", {"name": name})
    first = browser.get("/plain/lanes/render/clear")
    assert "Remove 2 jobs" in Seen(first.text).text
    assert post(browser, "/plain/lanes/render/clear", expect=3).status_code == 409
    post(browser, "/plain/lanes/render/clear", expect=2)
    assert queue.waiting("render") == []
    post(browser, "/plain/lanes/render/stop-now")


def test_lanes_are_paused_and_set(queue: Queue, browser: Browser) -> None:
    queue.submit("render", {"name": "a"})
    post(browser, "/plain/lanes/render/pause")
    assert "Paused by" in Seen(browser.get("/plain").text).text
    post(browser, "/plain/lanes/render/resume")
    post(browser, "/plain/pause")
    assert queue.lane("render").get().pauses
    post(browser, "/plain/resume")
    assert not queue.lane("render").get().pauses
    post(browser, "/plain/lanes/render/set", delay_s="90", slots="2")
    lane = queue.lane("render").get()
    assert (lane.delay_ms, lane.concurrency) == (90_000, 2)
    assert post(browser, "/plain/lanes/render/set", delay_s="x", slots="2").status_code == 422
    assert post(browser, "/plain/lanes/render/set", delay_s="-1", slots="2").status_code == 422


def test_a_job_is_added_once_and_typing_is_kept(queue: Queue, browser: Browser) -> None:
    once = re.findall(r'name="once" value="([^"]+)"', browser.get("/plain/add").text)[0]
    wrong = post(browser, "/plain/add", task="render", args='{"name": 7}', once=once)
    assert wrong.status_code == 422
    assert "name:" in Seen(wrong.text).text
    assert "{&quot;name&quot;: 7}" in wrong.text
    fields = {"task": "render", "args": '{"name": "Dune"}', "paused": "on", "once": once}
    added = post(browser, "/plain/add", **fields)
    assert added.headers["location"] == "../plain/jobs/1"
    assert post(browser, "/plain/add", **fields).headers["location"] == "../plain/jobs/1"
    assert [(job.title, job.held_by) for job in queue.jobs()] == [("Dune", "ada")]
    assert post(browser, "/plain/add", task="render", args="no").status_code == 422


def test_case_d3_markup_is_shown_never_run(queue: Queue, browser: Browser) -> None:
    job = queue.submit("render", {"name": MARKUP}, key=MARKUP)
    queue.lane("render").pause(why=MARKUP, by=MARKUP)
    queue.cancel(job.id, by=MARKUP, why=MARKUP)
    log = queue.log_path(job.id, 1)
    assert MARKUP not in html.unescape(str(log))
    for path in ("/plain", "/plain/history", f"/plain/jobs/{job.id}", f"/plain/jobs/{job.id}/stop"):
        page = browser.get(path)
        assert "img" not in Seen(page.text).tags, path
        assert MARKUP in Seen(page.text).text, path
    broken = post(browser, f"/plain/jobs/{job.id}/{'<img>'}")
    assert "img" not in Seen(broken.text).tags


def test_what_is_not_there_is_a_page_too(queue: Queue, browser: Browser) -> None:
    for path in (
        "/plain/jobs/9",
        "/plain/jobs/x",
        f"/plain/jobs/{2**70}",
        "/plain/lanes/none/clear",
    ):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (
            404,
            "text/html; charset=utf-8",
        )
    assert browser.get("/plain/jobs/1/hold").status_code == 404


def test_no_other_page_can_press_its_buttons(queue: Queue, browser: Browser) -> None:
    job = queue.submit("render", {"name": "a"})
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://elsewhere.example"}):
        answer = browser.post(
            f"/plain/jobs/{job.id}/remove", data={"version": "1"}, headers=headers
        )
        assert answer.status_code == 403
    assert browser.get(f"/plain/jobs/{job.id}/remove").status_code == 404
    assert queue.get(job.id).state is State.QUEUED
