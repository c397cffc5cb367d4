"""The queue as programs hold it: submitting, looking, waiting, undoing. No worker runs here."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.helpers import python, said, wait_until
from tests.store.ground import DONE, FAILED, HandClock, claim, claimed, finish, new, sign

from lineclear import doctor, locks
from lineclear.context import Context
from lineclear.errors import (
    BadInput,
    NoSuchJob,
    TooLarge,
    UnknownLane,
    UnknownTask,
    WrongState,
)
from lineclear.job import Cause, Job, State
from lineclear.looks import Look, look
from lineclear.queue import Queue
from lineclear.store import runs, undo


@pytest.fixture
def queue(tmp_path: Path, clock: HandClock) -> Iterator[Queue]:
    made = Queue(tmp_path / "q.db", by="ann", clock=clock)

    @made.task(lane="render", key="{book}", title="Render {book}")
    def render(ctx: Context, book: int, voice: str = "joe") -> None:
        raise AssertionError("nothing runs where it is submitted")

    yield made
    made.close()


def rows(queue: Queue) -> list[tuple[object, ...]]:
    """Everything that is stored, to see whether anything has changed."""
    with sqlite3.connect(queue.database) as connection:
        text = list(connection.iterdump())
    connection.close()
    return [(line,) for line in text]


def test_e01_submitting_writes_a_row_and_starts_nothing_here(queue: Queue) -> None:
    before = psutil.Process().children(recursive=True)
    threads = threading.active_count()
    added = queue.add("render", {"book": 271})
    assert added.new and added.place == 1 and added.job.state is State.QUEUED
    assert json.loads(added.job.args) == {"book": 271, "voice": "joe"}
    assert (added.job.key, added.job.title, added.job.submitted_by) == ("271", "Render 271", "ann")
    assert psutil.Process().children(recursive=True) == before
    assert threading.active_count() == threads
    assert queue.get(added.job.id).attempt == 0


def test_e12_one_live_job_per_key_and_lane(queue: Queue) -> None:
    first = queue.submit("render", {"book": 271})
    again = queue.add("render", {"book": 271, "voice": "amy"})
    assert not again.new and again.job == first
    assert queue.add("render", {"book": 272}).new
    run = claimed(queue.store, lane="render")
    assert queue.submit("render", {"book": 271}).id == first.id, "also while it runs"
    finish(queue.store, run, outcome=DONE)
    assert queue.add("render", {"book": 271}).new


def test_e12_twenty_submits_at_once_with_one_key_are_one_job(queue: Queue) -> None:
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(queue.add, "render", {"book": 271}) for _ in range(20)]
        added = [each.result() for each in asked]
    assert len({each.job.id for each in added}) == 1
    assert sum(each.new for each in added) == 1


def test_e28_bad_input_names_the_field_and_changes_nothing(queue: Queue) -> None:
    queue.submit("render", {"book": 1})
    before = rows(queue)
    for error, field, ask in (
        (UnknownTask, "task", lambda: queue.submit("rendr", {"book": 2})),
        (BadInput, "book", lambda: queue.submit("render", {"book": "two"})),
        (BadInput, "book", lambda: queue.submit("render", {})),
        (BadInput, "pages", lambda: queue.submit("render", {"book": 2, "pages": 3})),
        (UnknownLane, "lane", lambda: queue.submit("render", {"book": 2}, lane="rendr")),
        (BadInput, "lane", lambda: queue.lane("no/lane")),
        (UnknownLane, "lane", lambda: queue.lane("rendr")),
        (BadInput, "key", lambda: queue.submit("render", {"book": 2}, key="")),
        (BadInput, "key", lambda: queue.submit("render", {"book": 2}, key="x" * 501)),
        (TooLarge, None, lambda: queue.submit("render", {"book": 2, "voice": "x" * 17_000_000})),
        (BadInput, "delay", lambda: queue.lane("render").set_delay(-1)),
        (BadInput, "slots", lambda: queue.lane("render").set_concurrency(0)),
        (BadInput, "until", lambda: queue.lane("render").pause(until_ms=1)),
        (BadInput, "to", lambda: queue.move(1, 0)),
        (BadInput, "to", lambda: queue.move(1, "sideways")),
        (BadInput, "until", lambda: queue.wait(1, until="tea")),
        (NoSuchJob, None, lambda: queue.get(99)),
        (NoSuchJob, None, lambda: queue.hold(99)),
        (NoSuchJob, None, lambda: queue.remove(1, 99)),
        (BadInput, None, lambda: queue.get(2**70)),
        (WrongState, None, lambda: queue.retry(1)),
    ):
        with pytest.raises(error) as caught:
            ask()
        assert field in (None, getattr(caught.value, "field", None))
    assert rows(queue) == before


def test_e15_remove_takes_all_or_none_and_never_what_runs(queue: Queue) -> None:
    ids = [queue.submit("render", {"book": n}).id for n in range(4)]
    running = claimed(queue.store, lane="render")
    with pytest.raises(WrongState, match="is running, so it cannot be removed"):
        queue.remove(ids[1], running.id)
    assert queue.get(ids[1]).state is State.QUEUED
    assert [job.id for job in queue.remove(ids[1], ids[1])] == [ids[1]]
    queue.hold(ids[2])
    assert queue.lane("render").remove_waiting() == 2
    assert [job.id for job in queue.running()] == [running.id]
    assert queue.lane("render").remove_waiting() == 0


def test_e16_stop_now_with_nothing_running_does_nothing(queue: Queue) -> None:
    queue.submit("render", {"book": 1})
    lane = queue.lane("render")
    assert lane.stop_now() == [] and lane.get().pauses == ()
    claimed(queue.store, lane="render")
    assert [job.id for job in lane.stop_now(why="quiet")] == [1]
    (pause,) = lane.get().pauses
    assert (pause.by, pause.why, pause.source) == ("ann", "quiet", "person")


# Undo


def test_undo_takes_back_the_last_removal_clear_or_move(queue: Queue, clock: HandClock) -> None:
    ids = [queue.submit("render", {"book": n}).id for n in range(3)]
    finish(queue.store, claimed(queue.store, lane="render"), outcome=DONE)
    assert queue.clear() == 1 and queue.recent() == []
    queue.move(ids[2], "top")
    queue.remove(ids[1])
    clock.advance(60_000)
    kinds = []
    while (undone := queue.undo()) is not None:
        kinds.append((undone.kind, list(undone.jobs), clock.now_ms() - undone.at_ms))
    assert kinds == [
        ("removed", [ids[1]], 60_000),
        ("moved", [ids[2]], 60_000),
        ("hidden", [ids[0]], 60_000),
    ]
    assert [job.id for job in queue.waiting()] == [ids[1], ids[2]]
    assert [job.id for job in queue.recent()] == [ids[0]]


def test_undo_brings_a_job_back_with_its_time_and_without_a_trace(
    queue: Queue, clock: HandClock
) -> None:
    job = queue.submit("render", {"book": 1}, run_at_ms=clock.now_ms() + 9_000)
    queue.remove(job.id)
    queue.undo()
    after = queue.get(job.id)
    assert replace(after, version=job.version) == job


def test_undo_leaves_alone_what_cannot_be_taken_back(queue: Queue, clock: HandClock) -> None:
    old = queue.submit("render", {"book": 1})
    queue.remove(old.id)
    queue.submit("render", {"book": 1})
    undone = queue.undo()
    assert undone is not None and undone.jobs == ()
    assert queue.get(old.id).state is State.CANCELLED
    queue.remove(queue.submit("render", {"book": 2}).id)
    clock.advance(undo.UNDO_MS + 1)
    assert queue.undo() is None


# Waiting


class Looks:
    """How often a queue has looked."""

    def __init__(self, queue: Queue, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        real = queue.get

        def counted(job_id: int) -> Job:
            self.count += 1
            return real(job_id)

        patch.setattr(queue, "get", counted)


def test_e19_wait_is_woken_by_a_ring_and_does_not_poll(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queue.submit("render", {"book": 1})
    looks = Looks(queue, monkeypatch)
    other = Queue(queue.database, by="bob")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.wait, job.id, timeout_s=30)
        wait_until(lambda: looks.count == 1, what="the first look")
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        assert looks.count == 1, "nothing happened, so nobody looked"
        other.hold(job.id)
        wait_until(lambda: looks.count == 2, what="a look after the ring")
        other.cancel(job.id)
        (ended,) = waiting.result(10)
    assert ended.state is State.CANCELLED
    other.close()


def test_wait_until_started_and_no_longer_than_it_was_told(queue: Queue) -> None:
    job = queue.submit("render", {"book": 1})
    with pytest.raises(TimeoutError, match=r"Waited 0.05 s"):
        queue.wait(job.id, timeout_s=0.05)
    with pytest.raises(NoSuchJob):
        queue.wait(job.id, 99)
    claim(queue.store, lane="render")
    assert queue.wait(job.id, until="started")[0].state is State.RUNNING


def test_e19_changes_hears_what_happens_and_nothing_else(queue: Queue) -> None:
    job = queue.submit("render", {"book": 1})
    with queue.changes() as changes:
        assert not changes.wait(0.05)
        queue.hold(job.id)
        assert changes.wait(10)
        queue.hold(job.id)
        assert not changes.wait(0.05), "held already: nothing has changed"
        queue.release(job.id)
        queue.lane("render").pause()
        assert changes.wait(10)
        assert not changes.wait(0.05), "two rings before the wake are one"


ABOUT_TO_RING = """
import os, signal, sys
from lineclear import Queue
queue = Queue(sys.argv[1], by="bob")
queue.lanes()
queue.store._sync_log = lambda: os.kill(os.getpid(), signal.SIGKILL)
queue.cancel(1)
"""


def test_e19_who_is_killed_after_its_commit_has_rung(queue: Queue) -> None:
    job = queue.submit("render", {"book": 1})
    with queue.changes() as changes, python(ABOUT_TO_RING, queue.database) as killed:
        assert killed.wait(20) == -signal.SIGKILL
        assert changes.wait(10)
    assert queue.get(job.id).state is State.CANCELLED


# Looking


WORKER = """
import sys
from pathlib import Path
from lineclear import doctor, locks
from lineclear.store import runs
from lineclear.store.sqlite import SqliteStore
from tests.store.ground import sign
store = SqliteStore(Path(sys.argv[1]))
store.files.make(store.files.workers)
lock = locks.take(store.files.lock("w9"), mode=0o600)
with store.write() as tx:
    runs.add_worker(tx, sign("w9", lanes=("render",)))
    print(runs.claim(tx, "render", "w9").id, flush=True)
print("up", flush=True)
sys.stdin.readline()
"""
ROOT = Path(__file__).parents[2]
BOTH = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}


def test_e06_e20_a_dead_worker_is_seen_without_any_worker_and_nothing_is_written(
    queue: Queue,
) -> None:
    job = queue.submit("render", {"book": 1})
    with python(WORKER, queue.database, env=BOTH) as worker:
        assert [said(worker), said(worker)] == ["1", "up"]
        assert queue.get(job.id).worker_alive is True
        assert [w.alive for w in queue.workers()] == [True]
        assert queue.lane("render").get().workers == 1
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: queue.get(job.id).worker_alive is False, what="its death")
    before = rows(queue)
    assert look(queue.get(job.id), now_ms=queue.now_ms()) is Look.WORKER_GONE
    assert [w.alive for w in queue.workers()] == [False]
    assert queue.lane("render").get().workers == 0
    assert rows(queue) == before


def test_e06_not_responding_is_computed_at_the_look(queue: Queue, clock: HandClock) -> None:
    job = queue.submit("render", {"book": 1})
    queue.files.make(queue.files.workers)
    held = locks.take(queue.files.lock("w1"), mode=0o600)
    with queue.store.write() as tx:
        runs.add_worker(tx, sign("w1"))
        runs.claim(tx, "render", "w1")
    before = rows(queue)
    clock.advance(30_000)
    assert look(queue.get(job.id), now_ms=queue.now_ms()) is Look.RUNNING
    clock.advance(1)
    seen = queue.get(job.id)
    assert look(seen, now_ms=queue.now_ms()) is Look.SILENT
    assert (seen.beat_age_ms, seen.moved_age_ms, seen.worker_alive) == (30_001, 30_001, True)
    assert [look(j, now_ms=queue.now_ms()) for j in queue.running()] == [Look.SILENT]
    assert rows(queue) == before, "stored nowhere"
    os.close(held)


def test_e06_ages_of_another_machines_clock_are_not_guessed(queue: Queue, clock: HandClock) -> None:
    job = queue.submit("render", {"book": 1})
    elsewhere = replace(sign("w1"), place=replace(sign().place, boot="another"))
    with queue.store.write() as tx:
        runs.add_worker(tx, elsewhere)
        runs.claim(tx, "render", "w1")
    clock.advance(9_000_000)
    seen = queue.get(job.id)
    assert (seen.beat_age_ms, seen.moved_age_ms, seen.worker_alive) == (None, None, None)
    assert look(seen, now_ms=queue.now_ms()) is Look.RUNNING


def test_e25_jobs_wait_and_no_worker_serves_their_lane(queue: Queue, clock: HandClock) -> None:
    job = queue.submit("render", {"book": 1})
    assert [reason.kind for reason in queue.why(job.id)] == ["no worker"]
    queue.files.make(queue.files.workers)
    with queue.store.write() as tx:
        runs.add_worker(tx, sign("w1", lanes=("other",)))
        runs.add_worker(tx, sign("w2", lanes=("render",)))
    held = locks.take(queue.files.lock("w2"), mode=0o600)
    assert [reason.kind for reason in queue.why(job.id)] == ["next"]
    os.close(held)
    (reason,) = queue.why(job.id)
    assert (reason.kind, reason.at_ms) == ("no worker", clock.now_ms())


def test_p07_place_and_why_follow_the_line(queue: Queue) -> None:
    ids = [queue.submit("render", {"book": n}).id for n in range(3)]
    with queue.store.write() as tx:
        runs.add_worker(tx, sign("w1"))
    assert [queue.place(i) for i in ids] == [1, 2, 3]
    queue.hold(ids[0])
    assert [queue.place(i) for i in ids] == [1, 1, 2]
    assert [reason.kind for reason in queue.why(ids[2])] == ["behind"]
    claim(queue.store, lane="render")
    assert queue.place(ids[1]) is None and queue.why(ids[1]) == ()
    assert [(r.kind, r.jobs) for r in queue.why(ids[2])] == [("slots", (ids[1],))]


def test_find_knows_ids_words_and_beginnings(queue: Queue) -> None:
    one, two = (queue.submit("render", {"book": n}) for n in (271, 272))
    claim(queue.store, lane="render")
    assert [j.id for j in queue.find("running")] == [one.id]
    assert [j.id for j in queue.find("last")] == [two.id]
    assert [j.id for j in queue.find("1")] == [one.id]
    assert [j.id for j in queue.find("Render 27")] == [two.id, one.id]
    with pytest.raises(NoSuchJob):
        queue.find("272")
    assert queue.find("100%") == [] and queue.find("9" * 40) == []


def test_case_d1_one_row_that_cannot_be_decoded_harms_no_other(queue: Queue) -> None:
    good, bad, worse = (queue.submit("render", {"book": n}) for n in range(3))
    with sqlite3.connect(queue.database) as connection:
        connection.execute(
            "UPDATE job SET args = '{\"book\": NaN', options = '[1', task = 'gone', cause = 'odd', "
            "wish = 'tea', title = CAST(x'ff41' AS TEXT), note = 'a' || char(0) || 'b', "
            "result = 'nan' WHERE id = ?",
            (bad.id,),
        )
        broken = json.dumps({"retries": "many", "timeout_s": [], "unknown": 1})
        connection.execute("UPDATE job SET options = ? WHERE id = ?", (broken, worse.id))
        connection.execute("UPDATE event SET detail = '{' WHERE job = ?", (bad.id,))
    connection.close()
    listed = {job.id: job for job in queue.jobs()}
    assert sorted(listed) == [good.id, bad.id, worse.id]
    assert listed[good.id] == good
    seen = listed[bad.id]
    assert (seen.args, seen.cause, seen.wish, seen.title) == ('{"book": NaN', None, None, "�A")
    assert seen.options == type(seen.options)()
    assert listed[worse.id].options.retries == 0 and listed[worse.id].options.timeout_s is None
    assert [event.detail for event in queue.events(bad.id)] == [{}]
    assert [job.id for job in queue.waiting()] == [good.id, bad.id, worse.id]
    for _ in range(3):
        ended = finish(queue.store, claimed(queue.store, lane="render"), outcome=FAILED)
        assert ended is not None and ended.state is State.FAILED


def test_case_d2_every_count_is_the_number_of_rows_that_can_be_paged(queue: Queue) -> None:
    for number in range(101):
        queue.put(new(title=f"Größe {number} \ud800"))
        failed = replace(FAILED, error=f"ошибка \udcff {number}")
        finish(queue.store, claimed(queue.store), outcome=failed)
    for _ in range(7):
        queue.put(new())

    def paged(state: State, *, hidden: bool = False) -> int:
        seen: list[int] = []
        while page := queue.jobs(
            state=state, before=seen[-1] if seen else None, limit=10, hidden=hidden
        ):
            seen += [job.id for job in page]
        assert len(set(seen)) == len(seen)
        return len(seen)

    assert paged(State.FAILED) == 101
    middle = queue.jobs(state=State.FAILED, limit=50)[-1]
    assert queue.clear(states=[State.FAILED], before_ms=middle.ended_ms) == 0
    assert queue.clear(states=[State.DONE]) == 0
    assert queue.clear(states=[State.FAILED]) == 101
    assert (paged(State.FAILED), paged(State.FAILED, hidden=True)) == (0, 101)
    lane = queue.lane("line").get()
    assert lane.waiting == paged(State.QUEUED) == len(queue.waiting("line")) == 7
    assert queue.recent(limit=200) == []


def test_p07_clear_of_ended_ones_hides_them_and_keeps_rows(queue: Queue, clock: HandClock) -> None:
    job = queue.submit("render", {"book": 1})
    finish(queue.store, claimed(queue.store, lane="render"), outcome=DONE)
    clock.wall_ms -= 3_600_000
    assert queue.clear() == 1, "also where the clock was set back since"
    assert queue.jobs() == [] and queue.get(job.id).state is State.DONE


def test_opening_is_late_and_closing_is_not_the_end(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "q.db", by="ann")
    assert list(tmp_path.iterdir()) == []
    queue.put(new())
    queue.close()
    queue.close()
    assert [job.id for job in queue.jobs()] == [1]
    queue.close()


def test_who_asks_is_told_in_the_journal(queue: Queue) -> None:
    job = queue.submit("render", {"book": 1}, by="cron")
    queue.hold(job.id, by="bob")
    queue.cancel(job.id, why="wrong book")
    assert [event.by for event in queue.events(job.id)] == ["cron", "bob", "ann"]
    assert queue.events(job.id)[-1].detail["why"] == "wrong book"
    assert queue.get(job.id).cause is Cause.ASKED


def test_doctor_says_how_to_free_what_nothing_can_judge(queue: Queue) -> None:
    job = queue.submit("render", {"book": 1})
    claimed(queue.store, lane="render")
    told = [finding.sentence for finding in doctor._workers(queue)]
    assert any(f"lineclear kill {job.id}" in text for text in told), told
