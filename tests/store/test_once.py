"""Acts with a key are done once, by whoever and however often they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers import python, said, tell

from lineclear import BadInput, Queue
from lineclear.store import requests

MOVE = """
import os, sys
from lineclear import Queue
queue = Queue(sys.argv[1], by="tester")
_ = queue.store
print("ready", flush=True)
sys.stdin.readline()
with queue.once("press", "move 3") as request:
    queue.move(3, "top")
    if len(sys.argv) > 2:
        os.kill(os.getpid(), 9)  # it is on disk, and nobody was told
print(request.replayed, *request.jobs, request.undo, flush=True)
"""


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path / "q.db", by="ann")

    @made.task(lane="render")
    def render(number: int) -> None:
        raise NotImplementedError

    for number in range(3):
        render.submit(number)
    yield made
    made.close()


def moves_of(queue: Queue) -> int:
    return [event.kind for event in queue.events()].count("moved")


def test_a_key_belongs_to_one_act(queue: Queue) -> None:
    with queue.once("press", "hold 1"):
        queue.hold(1)
    before = queue.last_seq()
    with pytest.raises(BadInput, match="used for something else"), queue.once("press", "hold 2"):
        queue.hold(2)
    assert queue.last_seq() == before
    assert queue.get(2).held_ms is None


@pytest.mark.parametrize("key", ["", "x" * 201, "\u00e9", "\ud800"])
def test_what_is_no_key_is_refused_before_anything_is_done(queue: Queue, key: str) -> None:
    with pytest.raises(BadInput, match="1 to 200 ASCII"), queue.once(key, "hold 1"):
        queue.hold(1)
    assert queue.get(1).held_ms is None


def test_an_act_that_was_refused_leaves_its_key_free(queue: Queue) -> None:
    with pytest.raises(BadInput), queue.once("press", "pause"):
        queue.change(_refuse)
    with queue.once("press", "hold 1") as request:
        queue.hold(1)
    assert not request.replayed


def _refuse(*_: object) -> None:
    raise BadInput("field", "Refused.")


def test_two_processes_at_one_moment_do_it_once(queue: Queue) -> None:
    with python(MOVE, queue.database) as one, python(MOVE, queue.database) as two:
        assert [said(one), said(two)] == ["ready", "ready"]
        tell(one)
        tell(two)
        answers = [said(one).split(), said(two).split()]
    assert sorted(answer[0] for answer in answers) == ["False", "True"]
    assert answers[0][1:] == answers[1][1:]
    assert moves_of(queue) == 1


def test_asked_again_after_a_kill_between_commit_and_answer_nothing_is_done_again(
    queue: Queue,
) -> None:
    with python(MOVE, queue.database, "die") as killed:
        assert said(killed) == "ready"
        tell(killed)
        assert said(killed) == ""
        assert killed.wait(30) == -9
    assert moves_of(queue) == 1
    before = queue.last_seq()
    with queue.once("press", "move 3") as request:
        queue.move(3, "top")
    assert (request.replayed, request.jobs, queue.last_seq()) == (True, (3,), before)
    undone = queue.undo(request.undo)
    assert undone is not None
    assert undone.jobs == (3,)


def test_the_oldest_keys_are_forgotten(queue: Queue) -> None:
    def nothing() -> list[int]:
        return []

    with queue.store.write(durable=False) as tx:
        for number in range(10_003):
            requests.once(tx, nothing, key=str(number), what="x", ids=list)
        kept = [number for number in range(10_003) if tx.all("request_of", key=str(number))]
    assert (kept[0], kept[-1], len(kept)) == (3, 10_002, 10_000)


@pytest.mark.parametrize(
    ("job", "to"),
    [(1, "top"), (1, "up"), (1, 1), (2, 2), (3, "bottom"), (3, "down"), (3, 3), (3, 9)],
)
def test_a_move_to_where_it_is_writes_nothing(queue: Queue, job: int, to: str | int) -> None:
    before = queue.last_seq()
    with queue.once(None) as request:
        queue.move(job, to)
    assert (queue.last_seq(), request.undo) == (before, None)


def test_a_move_is_undone_after_the_line_was_renumbered(queue: Queue) -> None:
    with queue.store.write() as tx:  # no room between the first two
        tx.update_job(queue.get(2), {"position": queue.get(1).position + 1})
    with queue.once(None) as request:
        queue.move(3, ("after", 1))
    assert [job.id for job in queue.waiting("render")] == [1, 3, 2]
    undone = queue.undo(request.undo)
    assert undone is not None
    assert undone.jobs == (3,)
    assert [job.id for job in queue.waiting("render")] == [1, 2, 3]
