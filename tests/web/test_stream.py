"""The live stream over HTTP: a real server, real workers, and readers that come and go."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.web.streams import Public, Server, Watcher, server, shown
from tests.workers import Site, site

from lineclear.errors import Refused
from lineclear.web.changes import AGES, MOVING

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

@queue.task(lane="other")
def other(ctx: Context, n: int = 0):
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


FAST = "hub.Hub.tick_s = 0.2"


def told(seen: Public) -> Public:
    """What two looks at the same queue agree on: all but ages and what a run says of itself."""

    def settled(row: Public) -> Public:
        drop = {*AGES, *(MOVING if row["state"] == "running" else ())}
        return {key: value for key, value in row.items() if key not in drop}

    return {
        **seen,
        "running": [settled(row) for row in seen["running"]],
        "ended": [settled(row) for row in seen["ended"]],
        "waiting": {lane: [settled(row) for row in rows] for lane, rows in seen["waiting"].items()},
    }


def same(served: Server, seen: Watcher, **where: str) -> bool:
    return told(seen.fold.shown()) == told(shown(served.state(**where)))


def after_hello(seen: Watcher) -> list[Any]:
    return seen.events[1:]


def act(ground: Site, rng: random.Random) -> None:
    """One of everything a person may do, to a random job or lane; refusals are part of it."""
    queue = ground.queue
    job = max(1, queue.jobs(limit=1, hidden=True)[0].id - rng.randrange(40))
    lane = queue.lane(rng.choice(("render", "other")))
    acts: list[Callable[[], object]] = [
        lambda: queue.submit("quick", {"n": 1}, held=rng.random() < 0.2),
        lambda: queue.submit("other", {"n": 1}, first=rng.random() < 0.3),
        lambda: queue.submit("other", {"n": 2}, run_at_ms=queue.now_ms() + 3_600_000),
        lambda: queue.hold(job),
        lambda: queue.release(job),
        lambda: queue.remove(job),
        lambda: queue.move(job, rng.choice(("top", "bottom", "up", "down"))),
        lambda: queue.retry(job),
        lambda: queue.cancel(job),
        lambda: queue.prioritize(job, rng.randint(-2, 2)),
        lambda: queue.force(job),
        queue.undo,
        lambda: lane.pause("why not"),
        lane.resume,
        lambda: lane.set_delay(rng.choice((0, 0, 60_000))),
        lambda: lane.set_concurrency(rng.randint(1, 3)),
    ]
    rare: list[Callable[[], object]] = [
        queue.clear,
        lane.remove_waiting,
        lambda: [queue.submit("other", {"n": n}) for n in range(20)],
    ]
    with suppress(Refused):
        rng.choice(rare if rng.random() < 0.03 else acts)()


@pytest.mark.parametrize("seed", [1, 2])
def test_e23_a_reader_that_comes_and_goes_misses_nothing(ground: Site, seed: int) -> None:
    rng = random.Random(seed)
    for task in ("quick", "other", "other"):
        ground.submit(task)
    ground.worker()
    with server(ground.queue.database, patch=FAST) as served:
        steady, lane = served.open().begun(), served.open(lane="other").begun()
        moving = served.open().begun()
        resumed = 0
        for _ in range(500):
            act(ground, rng)
            if rng.random() < 0.05:
                moving.close()
                fold, cursor = moving.fold, moving.cursor
                for _ in range(rng.choice((0, 0, 1, 30))):
                    act(ground, rng)
                if rng.random() < 0.5:
                    moving = served.open(fold=fold, after=cursor)
                else:
                    moving = served.open(fold=fold, headers={"Last-Event-ID": cursor})
                moving.until(partial(after_hello, moving), what="what was missed")
                resumed += moving.events[1][0] != "snapshot"
        for watcher, where in ((steady, {}), (lane, {"lane": "other"}), (moving, {})):
            watcher.until(partial(same, served, watcher, **where), what="a fresh snapshot's state")
            watcher.close()
            assert not watcher.trouble
    assert resumed > 5
