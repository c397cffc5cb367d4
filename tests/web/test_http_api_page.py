"""The reference page of the API says what the API does: its examples run, its tables are whole."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

from tests.docs.test_examples import NAMED, blocks, commands
from tests.web.api import ROOT, Api, server

from lineclear import Queue
from lineclear.web import bodies, models

PAGE = Path(__file__).parents[2] / "docs/reference/http-api.md"
ROUTE = re.compile(r"^\| `(GET|POST|PATCH) (/[^`]*)` \|([^|]*)\|", re.MULTILINE)
EVERYWHERE = {"marks", "If-Match", "Idempotency-Key", "Lineclear-Request", "last-event-id"}


def test_the_examples_run_as_printed(tmp_path: Path) -> None:
    for block in blocks(PAGE):
        if block.kind == "python":
            named = NAMED.match(block.text)
            assert named is not None
            (tmp_path / named[1]).write_text(block.text)
    with server(tmp_path / "shelf.db", f"{tmp_path}/shelf.py:queue") as address:
        for block in blocks(PAGE):
            for command, wanted in commands(block.text) if block.kind == "console" else ():
                here = command.replace(f"http://127.0.0.1:8765{ROOT}", address)
                done = subprocess.run(
                    ["bash", "-c", here], capture_output=True, text=True, timeout=30, check=True
                )
                flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                same = doctest.OutputChecker().check_output(wanted, done.stdout, flags)
                assert same, f"$ {command}\n{wanted}\nIt printed:\n{done.stdout}{done.stderr}"


def test_every_route_with_its_parameters_is_on_the_page_and_no_other(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "q.db")
    document = Api(queue).get("/openapi.json")
    queue.close()
    there = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path.startswith(ROOT):
                names = {each["name"] for each in operation["parameters"]}
                inside = set(re.findall(r"{(\w+)}", path))
                there[method.upper(), path.removeprefix(ROOT)] = names - inside - EVERYWHERE
    text = PAGE.read_text()
    told = {(method, path): set(re.findall(r"`(\w+)`", query)) for method, path, query in
            ROUTE.findall(text)}  # fmt: skip
    assert told.keys() == there.keys()
    looks = {route: names for route, names in told.items() if route[0] == "GET"}
    assert looks == {route: names for route, names in there.items() if route[0] == "GET"}


def test_every_field_of_a_row_is_on_the_page() -> None:
    row = PAGE.read_text().partition("## A row")[2]
    fields = {field.alias or name for name, field in models.Whole.model_fields.items()}
    assert fields - set(re.findall(r"`(\w+)`", row)) == set()


def test_every_field_of_a_request_is_on_the_page() -> None:
    text = PAGE.read_text().partition("## Acting")[2].partition("## A row")[0]
    named = set(re.findall(r"[`\"](\w+)[`\"]", text))
    for model in (bodies.Adding, bodies.Moving, bodies.Retrying, bodies.RetryingAll, bodies.Hiding,
                  bodies.Undoing, bodies.LaneChange, bodies.Pausing, bodies.Clearing):  # fmt: skip
        assert set(model.model_fields) - named == set(), model
