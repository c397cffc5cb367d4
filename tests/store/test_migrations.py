"""Schema and statements: what is loaded, applied step by step, and cut off in the middle."""

from __future__ import annotations

import ast
import re
import signal
import sqlite3
from pathlib import Path

import pytest
from tests.helpers import python, said
from tests.store.ground import add

import lineclear
from lineclear.store import migrate as steps
from lineclear.store import statements
from lineclear.store.sqlite import _STATEMENTS, SqliteStore

SOURCES = Path(lineclear.__file__).parent


def shape(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    ).fetchall()


def test_migrated_step_by_step_equals_fresh(tmp_path: Path) -> None:
    known = steps.migrations()
    assert [number for number, _ in known] == list(range(1, len(known) + 1))
    slow = sqlite3.connect(tmp_path / "slow.db", isolation_level=None)
    for number, script in known:
        slow.execute("BEGIN IMMEDIATE")
        for statement in steps.statements_of(script):
            slow.execute(statement)
        slow.execute(f"PRAGMA user_version = {number}")
        slow.execute("COMMIT")
    fresh = SqliteStore(tmp_path / "fresh.db")
    at_once = sqlite3.connect(tmp_path / "fresh.db")
    assert shape(slow) == shape(at_once)
    wanted = {"user_version": known[-1][0], "application_id": steps.APPLICATION_ID}
    for pragma, value in wanted.items():
        assert at_once.execute(f"PRAGMA {pragma}").fetchone()[0] == value
    slow.close()
    at_once.close()
    fresh.close()


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "q.db")
    job = add(store)
    store.close()
    again = SqliteStore(tmp_path / "q.db")
    assert add(again).id == job.id + 1
    again.close()


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from lineclear.store import migrate, sqlite

real, left = migrate.statements_of, int(sys.argv[2])

def dying(script):
    global left
    for statement in real(script):
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        yield statement
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

migrate.statements_of = dying
sqlite.SqliteStore(Path(sys.argv[1])).close()
print("whole", flush=True)
"""


def test_killed_at_each_statement_of_a_migration_it_is_as_before(tmp_path: Path) -> None:
    count = sum(len(list(steps.statements_of(script))) + 1 for _, script in steps.migrations())
    points = sorted({*range(0, count, 5), count - 1})
    for point in points:
        database = tmp_path / f"{point}.db"
        with python(KILLED, database, point) as process:
            assert said(process) == ""
            assert process.wait() == -signal.SIGKILL
        left = sqlite3.connect(database)
        assert left.execute("PRAGMA user_version").fetchone()[0] == 0
        assert shape(left) == []
        assert left.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        left.close()
        store = SqliteStore(database)
        add(store)
        store.close()
    with python(KILLED, tmp_path / "whole.db", count) as process:
        assert said(process) == "whole"


def test_a_failing_step_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = steps.migrations()
    broken = [
        *known,
        (known[-1][0] + 1, "CREATE TABLE extra (x);\nINSERT INTO nowhere VALUES (1);"),
    ]
    store = SqliteStore(tmp_path / "q.db")
    add(store)
    store.close()
    monkeypatch.setattr(steps, "migrations", lambda: broken)
    with pytest.raises(lineclear.StoreError, match="nowhere"):
        SqliteStore(tmp_path / "q.db")
    monkeypatch.undo()
    store = SqliteStore(tmp_path / "q.db")
    assert add(store).id == 2
    store.close()


def test_a_script_is_cut_where_sqlite_says_a_statement_is_complete() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a\nBEGIN\n  DELETE FROM a;\nEND;\n"
    script = f"-- first; really\nCREATE TABLE a (x TEXT DEFAULT ';');\n{trigger}-- end\n"
    assert [text.split()[-1] for text in steps.statements_of(script)] == ["';');", "END;"]
    with pytest.raises(ValueError, match="in the middle"):
        list(steps.statements_of("CREATE TABLE a ("))


# Statements


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, str]:
    (tmp_path / "statements.sql").write_text(text)
    monkeypatch.setattr(statements, "files", lambda _: tmp_path)
    return statements.load_statements({"lock": "FOR UPDATE"})


def test_statements_are_loaded_by_name_with_the_fragments_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "-- about\n-- name: one\nSELECT 1 {lock}\n\n-- name: two\n-- why\nSELECT\n  {brief}\n"
    loaded = load(tmp_path, monkeypatch, text)
    assert loaded["one"] == "SELECT 1 FOR UPDATE"
    assert "args_brief AS args" in loaded["two"] and "why" not in loaded["two"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("-- name: one\nSELECT 1\n-- name: one\nSELECT 2\n", "twice"),
        ("-- name: one\nSELECT {nothing}\n", "unknown fragment {nothing}"),
    ],
)
def test_statements_that_cannot_be_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        load(tmp_path, monkeypatch, text)


def strings(path: Path) -> set[str]:
    nodes = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)]
    return {node.value for node in nodes if isinstance(node.value, str)}


def test_every_statement_prepares_and_is_used_and_every_name_used_exists(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "q.db")
    connection = sqlite3.connect(tmp_path / "q.db")
    for name, text in _STATEMENTS.items():
        parameters = dict.fromkeys(re.findall(r":([a-z_]+)", text), 1)
        assert connection.execute(f"EXPLAIN {text}", parameters).fetchall(), name
    connection.close()
    store.close()
    said_somewhere = set().union(*(strings(path) for path in SOURCES.glob("**/*.py")))
    assert set(_STATEMENTS) - said_somewhere == set()
    called = set()
    for path in SOURCES.glob("**/*.py"):
        called |= set(re.findall(r'(?:\.all|\bone|_row)\(\s*(?:tx, )?"(\w+)"', path.read_text()))
    assert len(called) > 40 and called - set(_STATEMENTS) == set()
