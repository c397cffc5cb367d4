"""What the tests of a whole worker share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.workers import Site, site

MakeSite = Callable[..., Site]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeSite]:
    """Makes a database with a module of tasks, and ends everything that was started on it."""
    with ExitStack() as stack:
        yield lambda source, **env: stack.enter_context(site(tmp_path, source, **env))
