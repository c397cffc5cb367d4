"""The shape of the project: its public names, the size of its files, a test for each promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import lineclear

ROOT = Path(__file__).parents[2]
LONGEST = 400
PUBLIC = """
    AsyncContext BadInput Cancelled Context Interrupted Job Lane LeaseLost LineClearError NoSuchJob
    Queue Refused State Stopped StoreBusy StoreError StoreFull StoreRefused Task TaskLoadError
    TooLarge UnknownLane UnknownTask WrongState page
"""
PROMISE = re.compile(r"^\| ([EBACDGHIp]\d+) \|", re.MULTILINE)


def test_public_names_are_these() -> None:
    assert sorted(lineclear.__all__) == PUBLIC.split()
    for name in lineclear.__all__:
        assert getattr(lineclear, name).__name__ == name


def test_importing_the_package_loads_none_of_it() -> None:
    heavy = "lineclear.store lineclear.web pydantic sqlite3 asyncio typer rich"
    code = f"import sys, lineclear; print([n for n in {heavy.split()} if n in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "[]\n"


def test_apps_name_only_what_is_public() -> None:
    inside = []
    for file in ROOT.glob("apps/*/src/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = node.names if isinstance(node, ast.ImportFrom | ast.Import) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            taken = [f"{module}.{name.name}".strip(".") for name in names]
            known = ["lineclear", *(f"lineclear.{name}" for name in lineclear.__all__)]
            inside += [
                f"{file.relative_to(ROOT)}: {name}"
                for name in taken
                if name.split(".")[0] == "lineclear" and name not in known
            ]
    assert inside == []


def test_no_file_is_too_long_to_read_at_once() -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("apps/*/src/**/*.py")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_every_promise_is_named_by_a_test() -> None:
    """E02 of docs/reference/promises.md is ``e02`` in a test's name, A1 ``case_a1``, p5 ``p5``."""
    page = (ROOT / "docs/reference/promises.md").read_text()
    promised = {
        f"case_{one.lower()}" if len(one) == 2 and one[0] != "p" else one.lower()
        for one in PROMISE.findall(page)
    }
    tests = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("apps/*/tests/**/test_*.py")]
    named: set[str] = set()
    for file in tests:
        for name in re.findall(r"def test_(\w+)", file.read_text()):
            named |= set(re.findall(r"(?<![a-z0-9])(?:case_[a-i]\d|[eb]\d\d|p\d+)(?=_|$)", name))
    named = {re.sub(r"^p0", "p", one) for one in named}
    assert len(promised) > 80
    assert sorted(promised - named) == []
