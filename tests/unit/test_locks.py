"""The lock of a worker's life: the kernel frees it, nobody else can be taken for its holder."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest
from tests.helpers import python, said, wait_until

from lineclear import locks

HOLDER = """
import sys, time
from pathlib import Path
from lineclear import locks
held = locks.take(Path(sys.argv[1]), mode=0o640)
print("held", flush=True)
sys.stdin.readline()
"""


def test_p08_e20_held_while_the_process_lives_and_free_at_its_death(tmp_path: Path) -> None:
    path = tmp_path / "w1.lock"
    with python(HOLDER, path) as holder:
        assert said(holder) == "held"
        assert locks.is_held(path) is True
        os.kill(holder.pid, signal.SIGSTOP)
        assert locks.is_held(path) is True, "stopped is not dead"
        os.kill(holder.pid, signal.SIGKILL)
        wait_until(lambda: locks.is_held(path) is False, what="the kernel to free the lock")


def test_p08_probers_make_no_file_and_a_missing_one_proves_nothing(tmp_path: Path) -> None:
    assert locks.is_held(tmp_path / "none.lock") is None
    assert list(tmp_path.iterdir()) == []


def test_p08_probers_do_not_take_each_other_for_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "w1.lock"
    os.close(locks.take(path, mode=0o600))
    prober = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(prober, fcntl.LOCK_SH)
        assert locks.is_held(path) is False
    finally:
        os.close(prober)


def test_the_lock_has_the_rights_it_is_given_and_one_name_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "w1.lock"
    held = locks.take(path, mode=0o640)
    try:
        assert path.stat().st_mode & 0o777 == 0o640
        assert not os.get_inheritable(held)
        assert [each.name for each in tmp_path.iterdir()] == ["w1.lock"]
    finally:
        os.close(held)


def test_p08_no_prober_meets_the_lock_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w1.lock"
    real, seen = fcntl.flock, []

    def watched(descriptor: int, how: int) -> None:
        seen.append([each.name for each in tmp_path.glob("*.lock")])
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", watched)
    os.close(locks.take(path, mode=0o600))
    assert seen == [[]], "probers look at every such name, hidden ones too"
