"""The live stream over HTTP: a real server, real workers, and readers that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.web.streams import Server, server, shown
from tests.workers import Site, site

TASKS = """
@queue.task(lane="render", title="{name}")
def step(ctx: Context, name: str = "book"):
    for number in range(10_000):
        ctx.progress(number, 10_000, unit="pages")
        ctx.safe_point()
        time.sleep(0.01)
        if (HERE / f"{name}.end").exists():
            return

@queue.task(lane="render")
def quick(ctx: Context, n: int = 0):
    pass
"""


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, TASKS) as made:
        made.queue.check_store()
        yield made


@pytest.fixture
def served(ground: Site) -> Iterator[Server]:
    with server(ground.queue.database) as made:
        yield made


def test_a_stream_begins_with_hello_and_a_snapshot(ground: Site, served: Server) -> None:
    job = ground.submit("quick")
    with served.watch() as seen:
        seen.until_event("snapshot")
        hello, snapshot = seen.events[:2]
        assert hello[0] == "hello"
        assert snapshot[1] == snapshot[2]["cursor"]
        assert [row["id"] for row in snapshot[2]["waiting"]] == [job]
        assert seen.headers["content-type"].startswith("text/event-stream")
        assert seen.headers["cache-control"] == "no-store"
        ground.queue.hold(job)
        seen.until_event("job", id=job, look="held")
