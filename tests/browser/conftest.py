"""One browser for all tests of the page; a server for each test, or for each module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser import harness
from tests.browser.harness import Ground, Visit

Browse = Callable[..., Visit]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    # Not for the session: while Playwright runs, no other test could run an event loop.
    with harness.browser() as started:
        yield started


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Ground]:
    """A database, its tasks and a server of its own; no worker before ``served.site.worker()``."""
    with harness.ground(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The same, once for all tests of a module."""
    with harness.ground(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Ground]]:
    """Makes a ground with options of ``serve``, tasks or settings of its own."""
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(
            harness.ground(tmp_path, *options, **more)
        )


@pytest.fixture
def browse(chromium: Browser) -> Iterator[Browse]:
    """Opens windows at a ground's page. The test fails on any error of the console or of the page,
    any violated policy and any request that leaves the origin, unless ``Visit.expect`` named it.
    """
    visits: list[Visit] = []

    def opened(ground: Ground, path: str = "", **more: Any) -> Visit:
        visits.append(harness.open_visit(chromium, ground.server, path, **more))
        return visits[-1]

    yield opened
    try:
        for visit in visits:
            print(visit.shown())  # seen where the test fails
            visit.check()
    finally:
        for context in {visit.context for visit in visits}:
            context.close()
