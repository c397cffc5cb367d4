"""Whose run is dead, where the worker's lock file is gone: nothing shows it but a person's word."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.store.ground import sign
from tests.unit.jobs import running

from lineclear import locks
from lineclear.clock import Place
from lineclear.files import Files
from lineclear.job import Wish
from lineclear.worker.leases import Leases, State

ELSEWHERE = replace(sign("w1"), place=Place("another boot", "another clock", "another namespace"))


@pytest.mark.parametrize(
    ("wish", "known", "state"),
    [
        (None, ELSEWHERE, State.ALIVE),
        (Wish.CANCEL, ELSEWHERE, State.ALIVE),
        (Wish.KILL, ELSEWHERE, State.DEAD),
        (Wish.KILL, None, State.DEAD),
        (Wish.KILL, sign("w1"), State.ALIVE),
    ],
)
def test_p08_where_no_lock_file_is_left_a_kill_frees_what_cannot_be_judged(
    tmp_path: Path, wish: Wish | None, known: Any, state: State
) -> None:
    files = Files(tmp_path / "q.db")
    nobody: Any = None  # judging writes nothing
    leases = Leases(files, nobody, "me")
    assert leases.judge(running(wish=wish), known, tick_ms=7_000).state is state
    files.workers.mkdir(parents=True)
    held = locks.take(files.lock("w1"), mode=0o600)
    try:
        assert leases.judge(running(wish=wish), known, tick_ms=7_000).state is State.ALIVE
    finally:
        os.close(held)
