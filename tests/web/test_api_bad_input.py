"""Bad input: the field is named, the sentence is for people, and nothing changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from tests.web.api import ACTING, Api

from lineclear import Queue


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    made = Queue(tmp_path_factory.mktemp("bad") / "q.db", by="tester")

    @made.task(lane="render", title="{book}")
    def render(book: int, voice: Literal["joe", "amy"] = "joe", anything: Any = None) -> None:
        """Render a book."""

    made.submit("render", {"book": 1})
    yield made
    made.close()


@pytest.fixture(scope="module")
def api(queue: Queue) -> Api:
    return Api(queue)


def unchanged(queue: Queue) -> tuple[int, int, object]:
    return queue.last_seq(), len(queue.jobs(limit=1000)), queue.lanes()


DEEP = "[" * 10_000 + "]" * 10_000
ADD = [
    ('{"task": "nothing"}', 422, "task"),
    ("{}", 422, "task"),
    ('{"task": 5}', 422, "task"),
    ('{"task": "render"}', 422, "book"),
    ('{"task": "render", "args": {"book": "x"}}', 422, "book"),
    ('{"task": "render", "args": {"book": 1, "voice": "eve"}}', 422, "voice"),
    ('{"task": "render", "args": {"book": 1, "extra": 1}}', 422, "extra"),
    ('{"task": "render", "args": [1]}', 422, "args"),
    ('{"task": "render", "args": {"book": NaN}}', 422, "body"),
    ('{"task": "render", "args": {"book": -Infinity}}', 422, "body"),
    ('{"task": "render", "args": {"book": 1, "anything": 1e999}}', 422, "anything"),
    ('{"task": "render", "args": {"book": 1' + "0" * 5000 + "}}", 422, "body"),
    ('{"task": "render", "args": {"book": 1, "anything": ' + DEEP + "}}", 422, "body"),
    ('{"task": "render", "args": {"book": 1}, "lane": "nowhere"}', 404, "lane"),
    ('{"task": "render", "args": {"book": 1}, "lane": "a b"}', 422, "lane"),
    ('{"task": "render", "args": {"book": 1}, "lane": "\\ud800"}', 422, "lane"),
    ('{"task": "render", "args": {"book": 1}, "key": ""}', 422, "key"),
    ('{"task": "render", "args": {"book": 1}, "priority": 1e3}', 422, "priority"),
    ('{"task": "render", "args": {"book": 1}, "priority": 99999999999999999999}', 422, "priority"),
    ('{"task": "render", "args": {"book": 1}, "first": 1}', 422, "first"),
    ('{"task": "render", "args": {"book": 1}, "not_before": "soon"}', 422, "not_before"),
    ('{"task": "render", "args": {"book": 1}, "unknown": 1}', 422, "unknown"),
    ("[]", 422, "body"),
    ("null", 422, "body"),
    ("", 422, "body"),
    ("{", 422, "body"),
    ("\x00", 422, "body"),
    (b"\xff\xfe", 422, "body"),
]


@pytest.mark.parametrize(("body", "status", "field"), ADD, ids=lambda value: str(value)[:60])
def test_e28_adding(queue: Queue, api: Api, body: str | bytes, status: int, field: str) -> None:
    before = unchanged(queue)
    for dry in (False, True):
        text = body
        if dry and isinstance(body, str) and body.startswith('{"'):
            text = '{"dry_run": true, ' + body[1:]
        answer = api.raw("/jobs", text)
        problem = answer.json()
        assert answer.status_code == status, problem
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["field"] == field
        assert problem["detail"].endswith((".", "?")) or field in problem["detail"], problem
        assert unchanged(queue) == before


def test_e28_arguments_that_are_too_large(queue: Queue, api: Api) -> None:
    before = unchanged(queue)
    text = json.dumps({"task": "render", "args": {"book": 1, "anything": "x" * (17 * 1024**2)}})
    answer = api.raw("/jobs", text)
    assert (answer.status_code, answer.json()["field"]) == (413, "anything")
    assert unchanged(queue) == before


ACTS = [
    ("PATCH", "/lanes/render", {"delay_s": -1}, 422, "delay_s"),
    ("PATCH", "/lanes/render", {"delay_s": "5"}, 422, "delay_s"),
    ("PATCH", "/lanes/render", {"delay_s": 1e300}, 422, "delay_s"),
    ("PATCH", "/lanes/render", {"delay_s": True}, 422, "delay_s"),
    ("PATCH", "/lanes/render", {"slots": 0}, 422, "slots"),
    ("PATCH", "/lanes/render", {"slots": 1.5}, 422, "slots"),
    ("PATCH", "/lanes/render", {"slots": 2, "delay_s": -1}, 422, "delay_s"),
    ("PATCH", "/lanes/nowhere", {"slots": 2}, 404, "lane"),
    ("PATCH", "/lanes/no%20where", {"slots": 2}, 422, "lane"),
    ("POST", "/lanes/render/pause", {"until": "2001-01-01T00:00:00Z"}, 422, "until"),
    ("POST", "/lanes/render/pause", {"until": "whenever"}, 422, "until"),
    ("POST", "/lanes/render/pause", {"until": "07:00", "for_s": 5}, 422, "until"),
    ("POST", "/lanes/render/pause", {"for_s": 0}, 422, "for_s"),
    ("POST", "/lanes/render/pause", {"why": "x" * 501}, 422, "why"),
    ("POST", "/lanes/render/pause", {"why": 5}, 422, "why"),
    ("POST", "/lanes/nowhere/pause", {}, 404, "lane"),
    ("POST", "/pause", {"until": "1999-01-01"}, 422, "until"),
    ("POST", "/lanes/render/clear", {}, 422, "expect"),
    ("POST", "/lanes/render/clear", {"expect": -1}, 422, "expect"),
    ("POST", "/clear", {"states": ["queued"]}, 422, "states.0"),
    ("POST", "/clear", {"states": []}, 422, "states"),
    ("POST", "/clear", {"lane": "nowhere"}, 404, "lane"),
    ("POST", "/undo", {"undo": 0}, 422, "undo"),
    ("POST", "/undo", {"undo": "last"}, 422, "undo"),
    ("POST", "/jobs/1/move", {"to": "sideways"}, 422, "to"),
    ("POST", "/jobs/1/move", {"to": 0}, 422, "to"),
    ("POST", "/jobs/1/move", {}, 422, "to"),
    ("POST", "/jobs/1/hold", {"who": "me"}, 422, "who"),
    ("POST", "/jobs/abc/hold", {}, 422, "job_id"),
    ("POST", "/jobs/-1/hold", {}, 422, "job_id"),
    ("POST", "/jobs/99999999999999999999999/hold", {}, 422, "job_id"),
    ("POST", "/jobs/77/hold", {}, 404, None),
    ("POST", "/jobs/retry", {"ids": []}, 422, "ids"),
    ("POST", "/jobs/retry", {"ids": ["1"]}, 422, "ids.0"),
    ("POST", "/jobs/retry", {"ids": list(range(1, 1_100))}, 422, "ids"),
    ("POST", "/nowhere", {}, 404, None),
    ("PATCH", "/jobs", {}, 405, None),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "field"), ACTS)
def test_e28_acting(
    queue: Queue, api: Api, method: str, path: str, body: Any, status: int, field: str | None
) -> None:
    before = unchanged(queue)
    problem = api.act(path, body, method=method, status=status)
    assert problem.get("field") == field
    assert problem["detail"]
    assert unchanged(queue) == before


@pytest.mark.parametrize(
    ("header", "value"),
    [("If-Match", "abc"), ("If-Match", "-1"), ("Idempotency-Key", "x" * 201),
     ("Idempotency-Key", "a b"), ("Idempotency-Key", "")],
)  # fmt: skip
def test_e28_headers(queue: Queue, api: Api, header: str, value: str) -> None:
    before = unchanged(queue)
    answer = api.ask("POST", "/jobs/1/hold", json={}, headers={**ACTING, header: value})
    assert (answer.status_code, answer.json()["field"]) == (422, header)
    assert unchanged(queue) == before


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/jobs?limit=0", 422, "limit"),
        ("/jobs?limit=201", 422, "limit"),
        ("/jobs?limit=ten", 422, "limit"),
        ("/jobs?before=next", 422, "before"),
        ("/jobs?before=-5", 422, "before"),
        ("/jobs?before=%D9%A3", 422, "before"),
        ("/jobs?state=held", 422, "state"),
        ("/jobs?lane=nowhere", 404, "lane"),
        ("/jobs?since=yesterday", 422, "since"),
        ("/jobs?since=999999999999d", 422, "since"),
        ("/jobs?marks=2", 422, "marks"),
        ("/jobs/0", 422, "job_id"),
        ("/jobs/1.5", 422, "job_id"),
        ("/jobs/12345", 404, None),
        ("/jobs/12345/steps", 404, None),
        ("/jobs/12345/events", 404, None),
        ("/jobs/12345/pace", 404, None),
        ("/jobs/1/events?after=x", 422, "after"),
        ("/lanes/nowhere", 404, "lane"),
        ("/lanes/nowhere/waiting", 404, "lane"),
        ("/lanes/render/waiting?after=line.x", 422, "after"),
        ("/lanes/render/waiting?after=line.1.2", 422, "after"),
        ("/lanes/render/waiting?after=line.1.2." + "9" * 100, 422, "after"),
        ("/counts?lane=nowhere", 404, "lane"),
        ("/jobs/1/nothing", 404, None),
        ("/%00", 404, None),
        ("/jobs/..%2f..%2fetc%2fpasswd", 404, None),
        ("/lanes/..%2f..%2fetc", 404, None),
    ],
)
def test_e28_looking(queue: Queue, api: Api, path: str, status: int, field: str | None) -> None:
    problem = api.get(path, status=status)
    assert problem.get("field") == field
    assert problem["detail"]


def test_what_no_database_stores_is_stored_so_that_it_can_be_shown(queue: Queue, api: Api) -> None:
    odd = '{"task": "render", "args": {"book": 1, "anything": "\\ud800\\u0000<b>"}}'
    row = api.raw("/jobs", odd).json()["job"]
    assert "\\ud800" in row["args"]["cannot be shown"]
    assert api.get(f"/jobs/{row['id']}")["id"] == row["id"]
    assert len(api.get("/jobs", q="\0\ud7ff%_")["jobs"]) == 0


def test_an_unknown_error_shows_nothing_of_its_inside(
    queue: Queue, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    api.get("/lanes")
    queue.__dict__["store"].close()
    queue.__dict__["store"] = None  # as no code of ours leaves it
    problem = api.get("/lanes", status=500)
    assert problem["detail"] == "Something went wrong in the server; its own output says what."
    assert "AttributeError" in capsys.readouterr().err
    del queue.__dict__["store"]


def test_e26_a_database_that_cannot_be_used_is_said_with_when_to_ask_again(
    queue: Queue, api: Api
) -> None:
    job = queue.submit("render", {"book": 1})
    queue.close()
    aside = queue.database.rename(queue.database.with_suffix(".aside"))
    queue.database.mkdir()
    answer = api.ask("POST", f"/jobs/{job.id}/hold", json={}, headers=ACTING)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert str(queue.database) in answer.json()["detail"]
    queue.database.rmdir()
    aside.rename(queue.database)
    assert api.act(f"/jobs/{job.id}/hold")["look"] == "held"
