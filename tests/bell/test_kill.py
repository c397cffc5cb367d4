"""PROTOCOL 15 and E19: a ringer killed at any instruction after its commit loses no wake-up.

The ringer commits to a real SQLite file and kills itself (SIGKILL) at the n-th bytecode instruction
after the rope was taken. The listener follows the written order: it listens (binds a dot name,
listens, renames), scans once as a writer, and then scans only when it is woken.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.helpers import python, said, tell

from lineclear.bell import Listener
from lineclear.bell.unix import UnixBell

RINGER = """
import os, signal, sqlite3, sys
from lineclear.bell.unix import UnixBell

database, row, point = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = sqlite3.connect(database, timeout=60, isolation_level=None)
bell = UnixBell(database)
done = 0

def step(frame, event, arg):
    global done
    frame.f_trace_opcodes = True
    if event == "opcode":
        done += 1
        if done == point:
            os.kill(os.getpid(), signal.SIGKILL)
    return step

print("ready", flush=True)
input()
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO job VALUES (?)", (row,))
rope = bell.take({"work"})
print("taken", flush=True)
if len(sys.argv) > 4:
    input()

def rest():
    connection.execute("COMMIT")
    rope.after_commit()
    rope.let_go()

sys.settrace(step)
rest()
sys.settrace(None)
print("whole", done, flush=True)
input()  # lives on, so that its end is no ring
"""

NEVER = 10**9


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "q.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE job (row INTEGER)")
    connection.close()
    return path


def scan(database: Path, row: int) -> bool:
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute("SELECT 1 FROM job WHERE row = ?", (row,)).fetchall()
        connection.execute("COMMIT")
    finally:
        connection.close()
    return bool(rows)


def sees(listener: Listener, database: Path, row: int) -> bool:
    """Scan only when woken; false when the wake-up was lost."""
    while listener.wait(20):
        if scan(database, row):
            return True
    return False


def instructions(database: Path) -> int:
    """How many there are between COMMIT and the end of the ring, with one listener."""
    listener = UnixBell(database).listen("work")
    try:
        with python(RINGER, database, 0, NEVER) as ringer:
            assert said(ringer) == "ready"
            tell(ringer)
            assert said(ringer) == "taken"
            return int(said(ringer).split()[1])
    finally:
        listener.close()


def test_p15_e19_a_ringer_killed_after_its_commit_loses_no_wake_up(database: Path) -> None:
    """The listener is there before; the ringer dies at 40 points spread over all instructions."""
    total = instructions(database)
    assert total > 100
    committed = 0
    for point in sorted({1 + total * n // 39 for n in range(40)}):
        listener = UnixBell(database).listen("work")
        scan(database, point)
        with python(RINGER, database, point, point) as ringer:
            tell(ringer)
            assert said(ringer) == "ready"
            assert said(ringer) == "taken"
            if point <= total:
                assert ringer.wait(20) == -signal.SIGKILL
            if scan(database, point):  # the truth, from outside
                committed += 1
                assert sees(listener, database, point), f"lost at instruction {point} of {total}"
        listener.close()
    assert committed > 30


@pytest.mark.parametrize("seed", range(4))
def test_p15_e19_a_listener_that_comes_meanwhile_loses_no_wake_up(
    database: Path, seed: int
) -> None:
    """The listener begins to listen at any moment while the ringer commits and dies."""
    chance = random.Random(seed)
    for row in range(8):
        point, spin = chance.randrange(10, 90), chance.randrange(20_000)
        with python(RINGER, database, row, point) as ringer:
            heard: list[bool] = []

            def come(spin: int = spin, row: int = row, heard: list[bool] = heard) -> None:
                for _ in range(spin):
                    pass
                listener = UnixBell(database).listen("work")
                heard.append(scan(database, row) or sees(listener, database, row))
                listener.close()

            assert said(ringer) == "ready"
            thread = threading.Thread(target=come)
            tell(ringer)
            thread.start()
            assert ringer.wait(20) == -signal.SIGKILL
            thread.join(60)
            assert heard == [True], f"lost at instruction {point}"
            assert scan(database, row)


def test_p15_the_first_scan_waits_for_a_commit_whose_rope_was_taken_before(database: Path) -> None:
    """The rope is taken while nobody listens; the listener comes before COMMIT, and sees it."""
    with python(RINGER, database, 1, NEVER, "wait") as ringer:
        assert said(ringer) == "ready"
        tell(ringer)
        assert said(ringer) == "taken"
        listener = UnixBell(database).listen("work")
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(scan(database, 1)))
        thread.start()
        tell(ringer)
        thread.join(60)
        assert seen == [True]
        listener.close()
