"""What the page is told, whatever stands in the database: marks, broken rows, and at what cost."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.store.ground import claimed, finish
from tests.web.conftest import Page

from lineclear import Queue
from lineclear.job import Outcome
from lineclear.store.sqlite import SqliteTx
from lineclear.web import state
from lineclear.web.changes import PROSE

EVIL = "\x02@eve\x03 \x02123\x03"
MARK = re.compile("\x02([^\x02\x03]*)\x03")


def prose(value: Any, *, inside: bool = False) -> Iterator[str]:
    """Every text in which the page looks for marks."""
    match value:
        case str() if inside:
            yield value
        case dict():
            for key, each in value.items():
                yield from prose(each, inside=key in PROSE)
        case list():
            for each in value:
                yield from prose(each, inside=inside)


@pytest.fixture
def evil(queue: Queue) -> Queue:
    """Whatever a person or a job can say says marks."""
    for _ in range(5):
        queue.add("render", {"name": EVIL}, by=EVIL)
    queue.hold(4, by=EVIL, why=EVIL)
    queue.remove(3, by=EVIL, why=EVIL)
    job = claimed(queue.store, lane="render", worker=EVIL)
    finish(queue.store, job, outcome=Outcome("failed", error=EVIL))
    running = claimed(queue.store, lane="render", worker=EVIL)
    queue.cancel(running.id, by=EVIL, why=EVIL)
    with queue.store.write() as tx:
        job = queue.get(running.id)
        tx.update_job(job, {"note": EVIL, "unit": EVIL, "total": 7.0, "done": 2.0})
    queue.lane("render").pause(EVIL, source=EVIL, by=EVIL)
    return queue


def test_no_text_of_a_job_or_a_person_makes_a_mark(evil: Queue, page: Page) -> None:
    told = [state.of(evil, None)]
    told += [page.get(f"/api/v1/jobs/{job}?marks=1").json() for job in range(1, 6)]
    marks = {mark for each in told for text in prose(each) for mark in MARK.findall(text)}
    assert marks, "times and names are marks"
    assert {mark for mark in marks if mark == "@eve" or mark == "123"} == set()
    assert all(mark.isdecimal() or mark.startswith("@") for mark in marks), marks


def test_without_marks_no_control_character_is_told(evil: Queue, page: Page) -> None:
    for path in ("state", *(f"jobs/{job}" for job in range(1, 6))):
        answer = page.get(f"/api/v1/{path}").json()
        assert not [text for text in prose(answer) if "\x02" in text or "\x03" in text]
    for path in ("plain", "plain/jobs/2"):
        shown = page.get(f"/{path}").text
        assert "\x02" not in shown and "\x03" not in shown


TEXTS = """
    lane task app key title held_by lease worker publishing wish wish_by outcome unit note error
    cause ordinal submitted_by ended_by options args result
"""


@pytest.mark.parametrize("column", TEXTS.split())
@pytest.mark.parametrize("how", ["waiting", "running"])
def test_case_d1_what_is_no_text_in_one_column_harms_no_other_row(
    queue: Queue, page: Page, column: str, how: str
) -> None:
    ids = [queue.submit("render", {"name": str(number)}).id for number in range(2)]
    if how == "running":
        claimed(queue.store, lane="render")
    with closing(sqlite3.connect(queue.database)) as database, database:
        known = {row[1] for row in database.execute("PRAGMA table_xinfo(job)") if row[2] == "TEXT"}
        assert known - set(TEXTS.split()) == {"state", "args_brief", "result_brief"}
        database.execute(f"UPDATE job SET {column} = CAST(x'ff41fe' AS TEXT) WHERE id = 1")
    answer = page.get("/api/v1/jobs")
    assert answer.status_code == 200, answer.text
    rows = answer.json()["jobs"]
    assert sorted(row["id"] for row in rows) == ids
    good = next(row for row in rows if row["id"] == 2)
    assert (good["title"], good["args"]) == ("1", {"name": "1", "pages": 3})
    for path in ("state", "metrics", "lanes", "jobs/1", "jobs/2", "jobs/1/events"):
        answer = page.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
    if column in ("args", "result"):
        assert "cannot be shown" in json.dumps(page.get("/api/v1/jobs/1").json()[column])
    for path in ("plain", "plain/jobs/1", "-/metrics"):
        assert page.get(f"/{path}").status_code == 200, path


def test_what_runs_is_read_once_however_many_jobs_changed(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(120):
        queue.submit("render", {"name": str(number)})
    claimed(queue.store, lane="render")
    asked: list[str] = []
    real = SqliteTx.all

    def counted(self: SqliteTx, name: str, /, **parameters: Any) -> Any:
        asked.append(name)
        return real(self, name, **parameters)

    def statements(changed: int) -> dict[str, int]:
        since = queue.last_seq()
        for job in range(120 - changed, 120):  # behind what the page lists
            queue.prioritize(job, queue.get(job).priority - 1)
        asked.clear()
        with monkeypatch.context() as counting:
            counting.setattr(SqliteTx, "all", counted)
            looked = state.look(queue, [None], since, 500)
        assert looked.named is not None
        assert len(looked.named) == changed
        return {name: asked.count(name) for name in set(asked)}

    few, many = statements(2), statements(40)
    for name in ("job_running", "lane_get", "job_usual", "worker_all"):
        assert many.get(name, 0) == few.get(name, 0), name
    assert few["job_running"] > 0


def test_case_h1_pauses_of_each_source_are_told_and_end_alone(queue: Queue, page: Page) -> None:
    """H1: a person's pause outlives the disk's, and the other way round."""
    queue.submit("render", {"name": "Dune"})
    lane = queue.lane("render")
    lane.pause("disk full", source="disk", by="the worker")
    lane.pause("reading", source="person", by="ann")

    def sentence() -> str:
        return str(page.get("/api/v1/state").json()["sentence"])

    assert "by the worker at" in sentence() and "(disk full)" in sentence()
    assert "by ann at" in sentence() and "(reading)" in sentence()
    lane.resume("disk")
    assert "disk full" not in sentence() and "(reading)" in sentence()
    lane.pause("disk full", source="disk", by="the worker")
    lane.resume("person")
    assert "(disk full)" in sentence() and "reading" not in sentence()
    lane.resume()
    assert "aused" not in sentence()


def test_what_threatens_the_queue_is_told(
    queue: Queue, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page.get("/api/v1/state").json()["warnings"] == queue.warnings()
    monkeypatch.setattr("lineclear.terms.LOW_DISK", 2**62)
    monkeypatch.setattr("lineclear.terms.BIG_LOG", -1)
    assert queue.wal_bytes() >= 0
    disk, log = page.get("/api/v1/state").json()["warnings"]
    assert disk.startswith("Disk almost full: ") and disk.endswith(" free. Jobs may fail.")
    assert log.startswith("The write-ahead log has ") and "holds a read open" in log
