"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.ground import HandClock

from lineclear.store.sqlite import SqliteStore


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store(tmp_path: Path, clock: HandClock) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "q.db", clock=clock)
    yield opened
    opened.close()
