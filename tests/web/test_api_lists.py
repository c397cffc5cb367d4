"""Lists and looks of the API: pages, cut payloads, rows that cannot be decoded, honest counts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.web.api import Api

from lineclear import Context, Queue
from lineclear.web import models


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path / "q.db", by="tester")

    @made.task(lane="render", title="{text}", unit="pages")
    def render(ctx: Context, text: str, voice: str = "joe") -> None:
        """Render a text.

        Slowly.
        """

    yield made
    made.close()


@pytest.fixture
def api(queue: Queue) -> Api:
    return Api(queue)


def sql(queue: Queue, text: str, *values: object) -> None:
    with closing(sqlite3.connect(queue.database, isolation_level=None)) as database:
        database.execute(text, values)


def paged(api: Api, path: str, cursor: str, **params: Any) -> list[dict[str, Any]]:
    """Every row there is, a page at a time."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = api.get(path, **params, **more)
        found += page["jobs"]
        if page["next"] is None:
            return found
        more = {cursor: page["next"]}


def copies(queue: Queue, count: int, changes: str, *values: object) -> None:
    """Job 1 again, this often, with these columns set otherwise."""
    queue.close()
    with closing(sqlite3.connect(queue.database, isolation_level=None)) as database:
        given = dict(pair.split("=", 1) for pair in changes.split(";"))
        columns = [row[1] for row in database.execute("PRAGMA table_info(job)")]
        columns = [name for name in columns if name not in ("id", *given)]
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            f"INSERT INTO job ({', '.join([*given, *columns])}) "
            f"SELECT {', '.join([*given.values(), *columns])} FROM n, job WHERE id = 1",
            (count, *values),
        )
        database.execute("PRAGMA journal_mode = WAL")


def test_every_answer_is_what_its_model_says(queue: Queue, api: Api) -> None:
    job = queue.submit("render", {"text": "a"})
    queue.submit("render", {"text": "b"}, held=True, by="somebody")
    queue.lane("render").pause("night", until_ms=queue.now_ms() + 60_000)
    for path, model in (
        ("/jobs", models.Jobs),
        (f"/jobs/{job.id}", models.Whole),
        (f"/jobs/{job.id}/steps", models.Steps),
        (f"/jobs/{job.id}/events", models.Events),
        (f"/jobs/{job.id}/pace", models.Pace),
        ("/lanes", models.Lanes),
        ("/lanes/render", models.Lane),
        ("/lanes/render/waiting", models.Waiting),
        ("/counts", models.Counts),
        ("/metrics", models.Stats),
    ):
        answer = api.get(path)
        assert model.model_validate(answer).model_dump(by_alias=True, mode="json") == answer


def test_pages_of_what_waits_follow_the_line_and_lose_nothing(queue: Queue, api: Api) -> None:
    ids = [queue.submit("render", {"text": str(number)}).id for number in range(12)]
    queue.hold(ids[3])
    queue.move(ids[9], "top")
    later = queue.submit("render", {"text": "later"}, run_at_ms=queue.now_ms() + 60_000).id
    rows = paged(api, "/lanes/render/waiting", "after", limit=5)
    assert [row["id"] for row in rows] == [ids[9], *ids[:9], *ids[10:], later]
    assert [row["place"] for row in rows] == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, None]
    assert api.get("/lanes/render/waiting", limit=1)["total"] == 13


def test_filters_of_the_history(queue: Queue, api: Api) -> None:
    for text in ("Dune", "Emma", "100%_sure"):
        queue.submit("render", {"text": text})
    queue.remove(1)

    def titles(**params: Any) -> list[str]:
        return [row["title"] for row in api.get("/jobs", **params)["jobs"]]

    assert titles() == ["100%_sure", "Emma", "Dune"]
    assert titles(q="mm") == ["Emma"]
    assert titles(q="%_") == ["100%_sure"]
    assert titles(state="cancelled") == ["Dune"]
    assert titles(state="queued", lane="render", task="render", since="1h") == ["100%_sure", "Emma"]
    assert titles(task="nothing") == []
    assert len(paged(api, "/jobs", "before", limit=1)) == 3


def test_case_d1_a_row_that_cannot_be_decoded_harms_no_other(queue: Queue, api: Api) -> None:
    broken = [
        "{",
        "NaN",
        '{"a": NaN}',
        "\\x80\\x04\\x95",
        '{"a": "\\ud800"}',
        "[" * 100_000,
        "1e999",
    ]
    ids = [queue.submit("render", {"text": str(number)}).id for number in range(len(broken) + 1)]
    for job_id, text in zip(ids, broken, strict=False):
        sql(queue, "UPDATE job SET args = ?, options = '[', title = ? WHERE id = ?", text,
            f"job {job_id} \ud7ff", job_id)  # fmt: skip
    sql(queue, "UPDATE job SET args = CAST(x'80fffe00' AS TEXT), task = 'gone', unit = ?"
        " WHERE id = ?", "\x00", ids[0])  # fmt: skip
    sql(queue, "UPDATE job SET done = 9e999, total = 1, error = ? WHERE id = ?", "\x1b[2J", ids[1])
    rows = {row["id"]: row for row in paged(api, "/jobs", "before", limit=3)}
    assert sorted(rows) == ids
    assert rows[ids[-1]]["args"] == {"text": str(len(broken)), "voice": "joe"}
    for job_id in ids[:-1]:
        shown = rows[job_id]["args"]
        assert "cannot be shown" in shown or "cut" in shown, shown
        whole = api.get(f"/jobs/{job_id}")
        assert "cannot be shown" in whole["args"], whole["args"]
        api.get(f"/jobs/{job_id}/events")
        api.act(f"/jobs/{job_id}/hold")
    assert len(api.get("/lanes/render/waiting")["jobs"]) == len(ids)


def test_case_d2_every_count_is_the_number_of_rows_that_can_be_paged_through(
    queue: Queue, api: Api
) -> None:
    queue.submit("render", {"text": "first"})
    sql(queue, "UPDATE job SET ended_ms = submitted_ms, state = 'failed', attempt = 1")
    copies(queue, 100, "error=?;title='x' || i", "tr\u00e4cebäck \udcff"[:9])
    sql(queue, "UPDATE job SET error = CAST(x'ff00fe' AS TEXT) WHERE id % 7 = 0")
    sql(queue, "UPDATE job SET hidden_ms = 1 WHERE id % 10 = 0")
    sql(queue, "DELETE FROM job WHERE id % 13 = 0")
    for state in ("done", "failed", "cancelled"):
        shown = paged(api, "/jobs", "before", state=state, limit=7)
        assert len(shown) == api.get("/counts")[state] == api.get("/counts", lane="render")[state]
    assert api.get("/counts")["failed"] == 84
    cleared = api.act("/clear", {"states": ["failed"], "expect": 84})
    assert (cleared["cleared"], api.get("/counts")["failed"]) == (84, 0)


@pytest.mark.timeout(300)
def test_case_d4_huge_arguments_make_no_list_large(queue: Queue, api: Api) -> None:
    queue.submit("render", {"text": "a"})
    copies(queue, 999, "args=?", '{"text":"' + "x" * 1_000_000 + '"}')
    copies(
        queue, 10_000,
        "state='done';ended_ms=submitted_ms + i;attempt=1;error=?;result=?",
        "e" * 500, '"' + "r" * 2_000 + '"',
    )  # fmt: skip
    for path in ("/jobs", "/lanes/render/waiting", "/jobs?state=done", "/lanes", "/counts"):
        began = time.perf_counter()
        answer = api.ask("GET", path)
        took_ms = (time.perf_counter() - began) * 1000
        print(f"{path}: {len(answer.content):,} bytes in {took_ms:.0f} ms")
        assert answer.status_code == 200 and len(answer.content) < 300_000, path
    (row,) = api.get("/lanes/render/waiting", limit=2)["jobs"][1:]
    assert row["args"] == {"cut": '{"text":"' + "x" * 191, "size": 1_000_011}
    assert len(api.get(f"/jobs/{row['id']}")["args"]["text"]) == 1_000_000
    assert api.act(f"/jobs/{row['id']}/hold")["args"]["size"] == 1_000_011


def test_a_dry_run_says_what_adding_would_do_and_adds_nothing(queue: Queue, api: Api) -> None:
    queue.submit("render", {"text": "first"}, key="k")
    seq = queue.last_seq()
    told = api.act("/jobs", {"task": "render", "args": {"text": "x"}, "dry_run": True})
    assert (told["job"], told["new"], told["place"]) == (None, True, 2)
    assert told["starts"] == "2nd, no worker serves its lane"
    assert told["takes"].startswith("How long it takes is not known")
    first = api.act(
        "/jobs", {"task": "render", "args": {"text": "x"}, "dry_run": True, "first": True}
    )
    assert first["place"] == 1
    same = {"task": "render", "args": {"text": "x"}, "key": "k", "dry_run": True}
    assert (api.act("/jobs", same)["new"], api.act("/jobs", same)["place"]) == (False, 1)
    assert (queue.last_seq(), len(queue.jobs())) == (seq, 1)
    real = api.act("/jobs", {"task": "render", "args": {"text": "x"}}, status=201)
    assert real["job"]["id"] == 2, "no id was used up"


def test_tasks_come_with_the_schema_of_their_form(queue: Queue, api: Api) -> None:
    @queue.task(lane="odd")
    def odd(thing: Context) -> None:
        """Has a type that no schema can tell."""

    told = {task["name"]: task for task in api.get("/tasks")}
    assert models.TaskAbout.model_validate(told["render"])
    assert told["render"]["schema"]["required"] == ["text"]
    assert told["render"]["schema"]["properties"]["voice"]["default"] == "joe"
    assert told["render"]["doc"] == "Render a text.\n\nSlowly."
    assert told["odd"]["schema"]["type"] == "object"


def test_markup_and_control_characters_stay_text(queue: Queue, api: Api) -> None:
    bad = "<img src=x onerror=alert(1)>\x1b\x02\x03"
    job = queue.submit("render", {"text": bad}, by=bad)
    answer = api.ask("GET", f"/jobs/{job.id}?marks=1")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["title"] == bad
    events = api.get(f"/jobs/{job.id}/events", marks=1)["events"]
    assert events[0]["text"].count("\x02") == 1, "a name cannot forge a mark"
