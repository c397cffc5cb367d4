"""Acts that are asked twice happen once: by key, by two presses, by twenty programs at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.helpers import SOURCES, python, said, tell
from tests.web.api import ACTING, Api, server

from lineclear import Queue
from lineclear.tasks import load_app

APP = """
from lineclear import Queue
queue = Queue({database!r}, by="tester")

@queue.task(lane="render", key="{{book}}", title="{{book}}")
def render(book: int):
    pass
"""
PROGRAM = "import sys; from lineclear.cli import main; sys.exit(main())"
SUBMIT = """
import sys
from lineclear.tasks import load_app
queue = load_app(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
added = queue.add("render", {"book": 7})
print(added.job.id, added.new, flush=True)
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    file = tmp_path / f"once_{os.getpid()}_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(APP.format(database=str(tmp_path / "q.db")))
    return file


@pytest.fixture
def queue(app: Path) -> Iterator[Queue]:
    found = load_app(f"{app}:queue")
    assert isinstance(found, Queue)
    _ = found.store
    yield found
    found.close()


def test_case_h6_twenty_submits_with_one_key_by_every_way_make_one_job(
    app: Path, queue: Queue
) -> None:
    command = [sys.executable, "-c", PROGRAM, "--app", f"{app}:queue", "add", "render", "book=7"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}

    def by_program(_: int) -> tuple[int, bool]:
        done = subprocess.run(
            [*command, "-q"],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=60,
        )  # fmt: skip
        return int(done.stdout), False

    with ExitStack() as stack:
        address = stack.enter_context(server(queue.database, f"{app}:queue"))
        client = stack.enter_context(httpx.Client(base_url=address, headers=ACTING, timeout=60))
        own = [stack.enter_context(python(SUBMIT, f"{app}:queue")) for _ in range(3)]
        assert [said(process) for process in own] == ["ready"] * 3

        def by_api(_: int) -> tuple[int, bool]:
            answer = client.post("jobs", json={"task": "render", "args": {"book": 7}})
            assert answer.status_code == (201 if answer.json()["new"] else 200), answer.text
            return answer.json()["job"]["id"], answer.json()["new"]

        with ThreadPoolExecutor(20) as pool:
            asked = [pool.submit(by_program, number) for number in range(4)]
            for process in own:
                tell(process)
            asked += [pool.submit(by_api, number) for number in range(13)]
            answers = [each.result() for each in asked]
        lines = [said(process).split() for process in own]
        answers += [(int(job_id), new == "True") for job_id, new in lines]
    assert len(answers) == 20
    assert {job_id for job_id, _ in answers} == {1}
    assert sum(new for _, new in answers) <= 1
    assert len(queue.jobs()) == 1
    assert [event.kind for event in queue.events(1)] == ["added"]


def test_case_h6_start_pressed_twice_changes_the_order_only(queue: Queue) -> None:
    api = Api(queue)
    ids = [queue.submit("render", {"book": number}).id for number in range(3)]
    for _ in range(2):
        row = api.act(f"/jobs/{ids[2]}/force")
        assert (row["state"], row["id"]) == ("queued", ids[2])
    assert [job.id for job in queue.waiting("render")] == ids
    for _ in range(2):
        api.act(f"/jobs/{ids[1]}/move", {"to": "top"})
    assert [job.id for job in queue.waiting("render")] == [ids[1], ids[0], ids[2]]
    kinds = [event.kind for event in queue.events()]
    assert kinds.count("forced") == 1 and kinds.count("added") == 3
    assert len(queue.jobs()) == 3


def test_an_act_sent_again_with_its_key_is_answered_and_not_done_again(queue: Queue) -> None:
    api = Api(queue)
    key = {"Idempotency-Key": "press-1"}
    body = {"task": "render", "args": {"book": 1}}
    answers = [api.ask("POST", "/jobs", json=body, headers={**ACTING, **key}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert [answer.json()["job"]["id"] for answer in answers] == [1, 1]
    assert ["Idempotency-Replayed" in answer.headers for answer in answers] == [False, True]

    def again(path: str, body: object, key: str, method: str = "POST") -> httpx.Response:
        headers = {**ACTING, "Idempotency-Key": key}
        first = api.ask(method, path, json=body, headers=headers)
        seq = queue.last_seq()
        second = api.ask(method, path, json=body, headers=headers)
        assert (first.status_code, second.status_code) == (200, 200), second.text
        assert second.headers["Idempotency-Replayed"] == "true"
        assert queue.last_seq() == seq
        assert first.json().get("undo") == second.json().get("undo")
        return second

    queue.submit("render", {"book": 2})
    again("/jobs/2/move", {"to": "top"}, "a")
    again("/jobs/1/hold", {}, "b")
    again("/lanes/render", {"delay_s": 5}, "c", "PATCH")
    again("/lanes/render/pause", {}, "d")
    again("/pause", {}, "e")
    again("/resume", {}, "f")
    assert again("/lanes/render/clear", {"expect": 2}, "g").json()["removed"] == 2
    assert again("/undo", {}, "h").json()["ids"] == [1, 2]
    assert [row["id"] for row in again("/jobs/remove", {"ids": [1, 2]}, "i").json()["jobs"]] == [
        1,
        2,
    ]
    other = api.ask("POST", "/jobs/2/hold", json={}, headers={**ACTING, "Idempotency-Key": "a"})
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")


def test_a_key_used_by_twenty_at_once_acts_once(app: Path, queue: Queue) -> None:
    queue.submit("render", {"book": 1})
    with (
        server(queue.database, f"{app}:queue") as address,
        httpx.Client(
            base_url=address, headers={**ACTING, "Idempotency-Key": "same"}, timeout=60
        ) as client,
        ThreadPoolExecutor(20) as pool,
    ):
        asked = [
            pool.submit(client.post, "jobs/1/move", json={"to": "top", "why": "now"})
            for _ in range(20)
        ]
        answers = [each.result() for each in asked]
    assert {answer.status_code for answer in answers} == {200}
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


def test_two_people_at_once_with_one_version_one_is_told(queue: Queue) -> None:
    api = Api(queue)
    queue.submit("render", {"book": 1})
    version = str(api.get("/jobs/1")["version"])
    assert api.act("/jobs/1/hold", If_Match=version)["look"] == "held"
    refused = api.act("/jobs/1/remove", status=409, If_Match=version)
    assert refused["detail"] == "Nothing was removed: it has changed meanwhile (Paused)."
    assert (refused["job"]["look"], refused["job"]["state"]) == ("held", "queued")
