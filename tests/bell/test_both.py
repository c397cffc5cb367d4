"""What every bell does, whatever it is made of: one suite over both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lineclear.bell import Bell, Room
from lineclear.bell.local import LocalBell
from lineclear.bell.unix import UnixBell

Make = Callable[[], Bell]


@pytest.fixture(params=["unix", "local"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    first = LocalBell()
    if request.param == "local":
        return lambda: LocalBell(beside=first)
    return lambda: UnixBell(tmp_path / "q.db")


def ring(bell: Bell, *rooms: Room) -> None:
    rope = bell.take(rooms)
    rope.after_commit()
    rope.let_go()


def test_p15_a_ring_comes_when_the_rope_is_let_go(make: Make) -> None:
    listener = make().listen("work")
    rope = make().take({"work"})
    rope.after_commit()
    assert not listener.wait(0.02)
    rope.let_go()
    assert listener.wait(10)
    assert not listener.wait(0.02)
    rope.let_go()
    assert not listener.wait(0.02)
    listener.close()
    listener.close()


def test_p15_e19_ten_rings_before_the_wake_are_one(make: Make) -> None:
    listener = make().listen("work")
    for _ in range(10):
        ring(make(), "work")
    assert listener.drain()
    assert not listener.drain()
    assert not listener.wait(0.02)
    listener.close()


def test_p15_rooms_do_not_hear_each_other(make: Make) -> None:
    work, watch = make().listen("work"), make().listen("watch")
    ring(make(), "watch")
    assert watch.wait(10) and not work.drain()
    ring(make(), "work")
    assert work.wait(10) and not watch.drain()
    ring(make(), "work", "watch")
    assert work.wait(10) and watch.wait(10)
    ring(make())
    assert not work.drain() and not watch.drain()
    work.close()
    watch.close()


def test_p15_a_worker_is_deaf_to_its_own_writes_and_a_watcher_is_not(make: Make) -> None:
    own, other = make(), make()
    worker, watcher = own.listen("work"), own.listen("watch")
    ring(own, "work", "watch")
    assert watcher.wait(10) and not worker.drain()
    ring(other, "work")
    assert worker.wait(10)
    worker.close()
    watcher.close()


def test_p15_a_rolled_back_change_rings_nobody(make: Make) -> None:
    listener = make().listen("work")
    rope = make().take({"work"})
    rope.drop()
    rope.drop()
    assert not listener.wait(0.02)
    rope.let_go()
    assert not listener.wait(0.02)
    rope = make().take({"work"})
    assert not listener.wait(0.02)
    rope.drop()
    assert not listener.wait(0.02)
    listener.close()


def test_p15_rings_with_nobody_there(make: Make) -> None:
    ring(make(), "work", "watch")
    make().listen("work").close()
    ring(make(), "work", "watch")


def test_p15_a_listener_serves_an_event_loop(make: Make) -> None:
    listener = make().listen("work")

    async def heard() -> bool:
        loop = asyncio.get_running_loop()
        rung = asyncio.Event()

        def come() -> None:
            if listener.drain():
                rung.set()

        loop.add_reader(listener.fileno(), come)
        rope = make().take({"work"})
        await asyncio.sleep(0)
        rope.let_go()
        try:
            return await asyncio.wait_for(rung.wait(), 10)
        finally:
            loop.remove_reader(listener.fileno())

    assert asyncio.run(heard())
    listener.close()
