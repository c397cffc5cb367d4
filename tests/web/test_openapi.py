"""What the OpenAPI document says is what the API does: whatever is sent, no server error and no
answer that is not documented. The acts reach real jobs in every state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.web.api import Api

import lineclear
from lineclear import Queue

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    made = Queue(tmp_path_factory.mktemp("api") / "q.db", by="tester")

    @made.task(lane="render", title="{book}", key="{book}", unit="pages")
    def render(book: int, voice: str = "joe") -> None:
        """Render a book."""

    for number in range(40):
        made.submit("render", {"book": number})
    made.hold(2)
    made.remove(3)
    set_state(made, "running", 4, 5, 6)
    set_state(made, "done", 7, 8)
    set_state(made, "failed", 9, 10)
    yield made
    made.close()


def set_state(queue: Queue, state: str, *ids: int) -> None:
    """As a worker would have left them, so that an act finds jobs in every state."""
    with closing(sqlite3.connect(queue.database)) as database:
        for job_id in ids:
            if state == "running":
                more = "slot = id, lease = 'x' || id, attempt = 1, started_ms = submitted_ms"
            else:
                more = "ended_ms = submitted_ms, ended_by = 'tester', attempt = 1"
            database.execute(f"UPDATE job SET state = ?, {more} WHERE id = ?", (state, job_id))
        database.commit()


EXAMPLES = 16
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def test_e28_no_server_error_and_no_undocumented_answer(queue: Queue) -> None:
    app = lineclear.page(queue, hosts=["testserver"])
    document: Any = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    document = document.exclude(path_regex="/stream$")  # has no end; it has tests of its own
    answered: dict[str, set[int]] = {}
    for found in document.get_all_operations():
        operation = found.ok()
        for mode in MODES:
            with suppress(Unsatisfiable):  # nothing in it can be wrong
                strategy = operation.as_strategy(generation_mode=mode)
                try_all(strategy, answered.setdefault(operation.label, set()))
    assert len(answered) >= 35
    acts = {name: seen for name, seen in answered.items() if "POST" in name and "job_id" in name}
    assert acts
    missed = [name for name, seen in acts.items() if not {200, 409} & seen]
    assert missed == [], "an act that reached no job proves nothing"


def try_all(strategy: SearchStrategy[Any], answered: set[int]) -> None:
    @given(strategy)
    @settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def one(case: Any) -> None:
        aim(case)
        answered.add(case.call_and_validate(checks=CHECKS).status_code)

    one()


EVERY_JOB = cycle(range(1, 41))


def aim(case: Any) -> None:
    """Ids and lanes that could be there become ones that are."""
    given = case.path_parameters
    if isinstance(job := given.get("job_id"), int) and job > 0:
        given["job_id"] = next(EVERY_JOB)
    if isinstance(given.get("lane"), str) and given["lane"].isalnum():
        given["lane"] = "render"
    body = case.body
    if isinstance(body, dict):
        if isinstance(body.get("task"), str):
            body["task"] = "render"
        if isinstance(body.get("args"), dict):
            body["args"] = {"book": len(str(body["args"]))}
        if isinstance(body.get("ids"), list):
            body["ids"] = [one % 40 + 1 if isinstance(one, int) else one for one in body["ids"]]


def test_every_refusal_is_documented_as_a_problem(queue: Queue) -> None:
    document = Api(queue).get("/openapi.json")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            statuses = {int(status) for status in operation["responses"]}
            assert {401, 403, 503} <= statuses, (path, method)
            assert method == "get" or {409, 413, 415, 422} <= statuses, (path, method)
            assert "500" not in operation["responses"]
    assert "HTTPValidationError" not in document["components"]["schemas"]
