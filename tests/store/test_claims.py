"""Claims, leases and ends in the store: what the protocol's items say of SQLite."""

from __future__ import annotations

import sqlite3

import pytest
from tests.store.ground import DONE, FAILED, LANE, HandClock, add, claim, claimed, finish, new, sign

from lineclear import moves
from lineclear.errors import BadInput, NoSuchJob, WrongState
from lineclear.job import Cause, Ending, Options, Outcome, State, Wish
from lineclear.store import acts, reads, runs
from lineclear.store.sqlite import SqliteStore


def test_p01_slots_lowered_while_three_run_start_nothing_until_one_is_free(
    store: SqliteStore,
) -> None:
    for _ in range(5):
        add(store)
    with store.write() as tx:
        acts.set_concurrency(tx, LANE, 3, by="ann")
    taken = [claimed(store) for _ in range(3)]
    assert [job.slot for job in taken] == [0, 1, 2]
    with store.write() as tx:
        acts.set_concurrency(tx, LANE, 1, by="ann")
    for job in taken:
        assert claim(store) is None
        finish(store, job, outcome=DONE)
    assert claimed(store).slot == 0


def test_p01_the_lowest_free_slot_is_taken(store: SqliteStore) -> None:
    for _ in range(4):
        add(store)
    with store.write() as tx:
        acts.set_concurrency(tx, LANE, 3, by="ann")
    taken = [claimed(store) for _ in range(3)]
    finish(store, taken[1], outcome=DONE)
    assert claimed(store).slot == 1


@pytest.mark.parametrize("missing", ["slot", "lease"])
def test_p01_e02_no_running_job_without_slot_and_lease(store: SqliteStore, missing: str) -> None:
    add(store)
    claimed(store)
    with sqlite3.connect(store.path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"UPDATE job SET {missing} = NULL")
    connection.close()


def test_p01_e02_two_in_one_slot_are_refused_by_the_database_itself(store: SqliteStore) -> None:
    add(store)
    add(store)
    claimed(store)
    with sqlite3.connect(store.path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "UPDATE job SET state = 'running', slot = 0, lease = 'x' WHERE state = 'queued'"
        )
    connection.close()


def test_e12_two_live_jobs_of_one_key_are_refused_by_the_database_itself(
    store: SqliteStore,
) -> None:
    add(store, key="271")
    other = add(store, key="272")
    with sqlite3.connect(store.path) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE job SET key = '271' WHERE id = ?", (other.id,))
    connection.close()


def test_e02_a_job_run_by_hand_takes_the_same_claim(store: SqliteStore) -> None:
    first, second = add(store), add(store)
    with store.write() as tx:
        acts.pause(tx, LANE, by="ann", why="", until_ms=None, source="person")
        job = runs.claim_by_hand(tx, second.id, "hand")
        assert job is not None and job.slot == 0
        assert runs.claim_by_hand(tx, first.id, "hand") is None, "past the pause, not the slots"
        with pytest.raises(WrongState):
            runs.claim_by_hand(tx, second.id, "hand")
        with pytest.raises(NoSuchJob):
            runs.claim_by_hand(tx, 99, "hand")


def test_e03_a_lease_is_random_and_made_for_one_claim(store: SqliteStore) -> None:
    seen = set()
    add(store)
    for _ in range(2):
        job = claimed(store)
        assert job.lease is not None and len(bytes.fromhex(job.lease)) == 16
        seen.add(job.lease)
        finish(store, job, Ending("interrupt"))
    assert len(seen) == 2


def test_p03_a_forced_job_passes_pause_and_delay_and_opens_the_lane_for_no_other(
    store: SqliteStore, clock: HandClock
) -> None:
    add(store)
    forced = add(store)
    with store.write() as tx:
        acts.set_delay(tx, LANE, 60_000, by="ann")
    finish(store, claimed(store), Ending(exit_code=1))
    add(store)
    with store.write() as tx:
        acts.pause(tx, LANE, by="ann", why="", until_ms=None, source="person")
        acts.act(tx, forced.id, lambda job: moves.force(job, by="ann", now_ms=tx.now_ms))
    job = claimed(store)
    assert job.id == forced.id and claim(store) is None
    after = finish(store, job, Ending("interrupt"))
    assert after is not None and (after.state, after.forced_ms) == (State.QUEUED, None)
    assert claim(store) is None, "an end clears the force"


def test_p04_the_delay_counts_from_the_last_end_of_a_started_job(
    store: SqliteStore, clock: HandClock
) -> None:
    for _ in range(4):
        add(store)
    with store.write() as tx:
        acts.set_delay(tx, LANE, 10_000, by="ann")
    job = claimed(store)
    clock.advance(3_000)
    finish(store, job, outcome=DONE)
    clock.advance(9_999)
    assert claim(store) is None
    clock.advance(1)
    job = claimed(store)
    finish(store, job, Ending("lost"))
    assert claimed(store).id == job.id, "a take-back is no end that delays"


def test_p04_case_b6_an_end_in_the_future_counts_as_now(
    store: SqliteStore, clock: HandClock
) -> None:
    add(store)
    add(store)
    with store.write() as tx:
        acts.set_delay(tx, LANE, 10_000, by="ann")
    finish(store, claimed(store), outcome=DONE)
    clock.wall_ms -= 3_600_000
    assert claim(store) is None
    clock.advance(10_000)
    assert claim(store) is not None


def test_p04_a_run_that_never_started_delays_nothing(store: SqliteStore) -> None:
    add(store)
    job = add(store)
    with store.write() as tx:
        acts.set_delay(tx, LANE, 10_000, by="ann")
        first = runs.claim(tx, LANE, "w1")
        assert first is not None
        runs.finish(tx, first, Ending("not started", sentence="No such file."), by="w1")
    assert claimed(store).id == job.id


def test_e17_a_changed_delay_is_in_force_at_once(store: SqliteStore) -> None:
    add(store)
    add(store)
    with store.write() as tx:
        acts.set_delay(tx, LANE, 60_000, by="ann")
    finish(store, claimed(store), outcome=DONE)
    assert claim(store) is None
    with store.write() as tx:
        acts.set_delay(tx, LANE, 0, by="ann")
    assert claim(store) is not None


def test_p05_e19_a_due_job_without_a_slot_is_in_line_and_wakes_nobody_again(
    store: SqliteStore, clock: HandClock
) -> None:
    add(store)
    later = add(store, run_at_ms=clock.now_ms() + 5_000)
    running = claimed(store)
    with store.read() as tx:
        assert runs.next_wall_ms(tx, [LANE]) == later.run_at_ms
    clock.advance(6_000)
    assert claim(store) is None
    with store.read() as tx:
        assert runs.next_wall_ms(tx, [LANE]) is None
        assert reads.place(tx, reads.job(tx, later.id)) == 1
    finish(store, running, outcome=DONE)
    assert claimed(store).id == later.id


def test_p06_each_source_sets_and_clears_its_own_pause(
    store: SqliteStore, clock: HandClock
) -> None:
    add(store)

    def pause(source: str, until_ms: int | None = None) -> None:
        with store.write() as tx:
            acts.pause(tx, LANE, by=source, why="because", until_ms=until_ms, source=source)

    def resume(source: str | None) -> None:
        with store.write() as tx:
            acts.resume(tx, LANE, by="ann", source=source)

    pause("person")
    pause("disk guard")
    resume("disk guard")
    assert claim(store) is None, "the person's own pause stands"
    pause("hours", clock.now_ms() + 1_000)
    resume("person")
    assert claim(store) is None
    with store.read() as tx:
        assert runs.next_wall_ms(tx, [LANE]) == clock.now_ms() + 1_000
    clock.advance(1_000)
    assert claim(store) is not None, "a pause ends at its time"


def test_e13_case_c8_pause_is_stored_and_holds_for_whoever_comes(store: SqliteStore) -> None:
    add(store)
    add(store)
    running = claimed(store)
    with store.write() as tx:
        acts.pause(tx, LANE, by="ann", why="", until_ms=None, source="person")
    finish(store, running, Ending("lost"))
    fresh = SqliteStore(store.path)
    assert [claim(fresh, worker=f"w{n}") for n in range(3)] == [None] * 3
    with fresh.write() as tx:
        assert acts.resume(tx, LANE, by="ann", source=None)
    assert claimed(fresh).id == running.id
    fresh.close()


def test_p06_ids_and_journal_numbers_are_never_used_again(store: SqliteStore) -> None:
    last = [add(store) for _ in range(3)][-1]
    with store.read() as tx:
        seq = reads.last_seq(tx)
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM job WHERE id = ?", (last.id,))
        connection.execute("DELETE FROM event WHERE seq = ?", (seq,))
    connection.close()
    assert add(store).id == last.id + 1
    with store.read() as tx:
        assert reads.last_seq(tx) == seq + 1


def test_p06_the_journal_has_no_index(store: SqliteStore) -> None:
    with sqlite3.connect(store.path) as connection:
        indexes = connection.execute("PRAGMA index_list(event)").fetchall()
    connection.close()
    assert indexes == []


def test_p07_version_grows_with_each_change_and_a_stale_one_is_refused(store: SqliteStore) -> None:
    job = add(store)

    def hold(version: int) -> int:
        with store.write() as tx:
            decide = lambda j: moves.hold(j, by="ann", now_ms=1)  # noqa: E731  as acts has it
            return acts.act(tx, job.id, decide, if_version=version).version

    assert hold(job.version) == job.version + 1
    with pytest.raises(WrongState, match="has changed"):
        hold(job.version)
    with pytest.raises(WrongState, match="has changed"), store.write() as tx:
        acts.act(tx, job.id, lambda _: None, if_state=State.RUNNING)


def test_p07_retries_count_failures_not_attempts(store: SqliteStore, clock: HandClock) -> None:
    options = Options(retries=1, retry_delay_s=1)
    add(store, options=options)
    for _ in range(2):
        finish(store, claimed(store), Ending("interrupt"))
    failed = finish(store, claimed(store), outcome=FAILED)
    assert failed is not None and (failed.attempt, failed.failures) == (3, 1)
    assert failed.state is State.QUEUED and claim(store) is None
    clock.advance(1_000)
    again = finish(store, claimed(store), outcome=FAILED)
    assert again is not None and again.state is State.FAILED


def test_p11_a_requeue_clears_the_wish(store: SqliteStore) -> None:
    job = add(store)
    claimed(store)
    with store.write() as tx:
        (asked,) = acts.stop_now(tx, LANE, by="ann", why="")
    assert asked.wish is Wish.REQUEUE
    after = finish(store, asked, Ending("wish", signal=9))
    assert after is not None and after.id == job.id
    assert (after.state, after.wish, after.wish_by) == (State.QUEUED, None, None)


def test_e16_stop_now_ends_what_a_cancel_has_not_as_cancelled(store: SqliteStore) -> None:
    job = add(store)
    claimed(store)
    with store.write() as tx:
        acts.act(tx, job.id, lambda j: moves.cancel(j, by="ann", now_ms=1))
        (asked,) = acts.stop_now(tx, LANE, by="bob", why="")
    assert asked.wish is Wish.KILL
    after = finish(store, asked, Ending("wish", signal=9))
    assert after is not None and after.state is State.CANCELLED


def test_p12_a_submit_during_a_cancel_runs_afresh_without_the_older_steps(
    store: SqliteStore,
) -> None:
    first = add(store, key="271", args='{"n": 1}')
    job = claimed(store)
    with store.write() as tx:
        assert runs.keep_step(tx, job, name="one", weight=1, result="1", started_ms=1)
        acts.act(tx, job.id, lambda j: moves.cancel(j, by="ann", now_ms=1))
    again = add(store, key="271", args='{"n": 2}', title="anew")
    assert again.id == first.id and again.revision == 2
    with store.write() as tx:
        assert runs.set_outcome(tx, job, Outcome("cancelled"))
    after = finish(store, again)
    assert after is not None and after.state is State.QUEUED and after.cause is Cause.SUPERSEDED
    with store.read() as tx:
        ended = reads.events(tx, job.id, after=0, limit=9)[-1]
        assert (ended.kind, ended.detail["state"]) == ("ended", "cancelled")
    fresh = claimed(store)
    assert (fresh.args, fresh.title, fresh.attempt) == ('{"n": 2}', "anew", 2)
    with store.read() as tx:
        assert runs.steps_of(tx, job.id) == {}


def test_p13_a_kept_step_sets_the_count_of_interruptions_back(store: SqliteStore) -> None:
    add(store)
    for number in range(4):
        job = claimed(store)
        with store.write() as tx:
            assert runs.keep_step(tx, job, name=f"{number}", weight=1, result=None, started_ms=1)
        after = finish(store, job, Ending("interrupt"))
        assert after is not None and (after.state, after.interruptions) == (State.QUEUED, 1)


def test_e08_a_step_recorded_again_replaces_the_first(store: SqliteStore) -> None:
    add(store)
    job = claimed(store)
    with store.write() as tx:
        for result in ("1", "2"):
            assert runs.keep_step(tx, job, name="one", weight=2, result=result, started_ms=1)
        assert runs.steps_of(tx, job.id) == {"one": {"weight": 2.0, "result": "2"}}


def test_p08_e21_take_over_replaces_the_lease_and_keeps_the_slot(store: SqliteStore) -> None:
    add(store)
    add(store)
    old = claimed(store)
    with store.write() as tx:
        mine = runs.take_lease(tx, old)
    assert mine is not None and (mine.slot, mine.state) == (old.slot, State.RUNNING)
    assert claim(store) is None, "the slot is not free before the processes are gone"
    assert finish(store, old) is None
    after = finish(store, mine, Ending("lost", sentence="Its worker was lost."))
    assert after is not None and after.state is State.QUEUED
    with store.read() as tx:
        kinds = [event.kind for event in reads.events(tx, old.id, after=0, limit=20)]
    assert kinds == ["added", "claimed", "taken over", "back in line"]


def test_e23_a_jobs_history_has_its_steps_too(store: SqliteStore) -> None:
    job = add(store)
    run = claimed(store)
    with store.write() as tx:
        for name in ("one", "two"):
            runs.keep_step(tx, run, name=name, weight=1, result=None, started_ms=1)
    finish(store, run, outcome=DONE)
    with store.read() as tx:
        events = reads.events(tx, job.id, after=0, limit=20)
        assert [event.kind for event in events] == ["added", "claimed", "step", "step", "ended"]
        assert reads.events(tx, job.id, after=events[2].seq, limit=20) == events[3:]
        assert reads.events(tx, None, after=0, limit=20) == events


def test_e04_one_statement_beats_for_all_and_names_who_lost_their_lease(
    store: SqliteStore, clock: HandClock
) -> None:
    for _ in range(3):
        add(store)
    with store.write() as tx:
        acts.set_concurrency(tx, LANE, 3, by="ann")
    one, two, three = (claimed(store) for _ in range(3))
    with store.write() as tx:
        runs.take_lease(tx, two)
        acts.act(tx, three.id, lambda j: moves.kill(j, by="bob", now_ms=1))
    clock.advance(10_000)
    run = (one, two, three)
    with store.write() as tx:
        answers = runs.beat(
            tx, [runs.Beat(j.id, j.lease or "", 1, 2, 7, 0.5, 1.0, "kg", "half") for j in run]
        )  # fmt: skip
    assert answers == {one.id: (None, ""), three.id: (Wish.KILL, "bob")}
    with store.read() as tx:
        beaten, lost = reads.job(tx, one.id), reads.job(tx, two.id)
    assert (beaten.beat_tick, beaten.moves) == (clock.tick_ms(), 2)
    assert (beaten.done, beaten.unit, beaten.note) == (0.5, "kg", "half")
    assert (lost.beat_tick, lost.moves, lost.done) == (two.beat_tick, 0, None)


def test_case_e6_a_beat_without_news_keeps_what_was_known(store: SqliteStore) -> None:
    add(store)
    job = claimed(store)
    with store.write(durable=False) as tx:
        runs.beat(tx, [runs.Beat(job.id, job.lease or "", 1, 1, 9, 3.0, 8.0, "pages", "on it")])
        runs.beat(tx, [runs.Beat(job.id, job.lease or "")])
    with store.read() as tx:
        after = reads.job(tx, job.id)
    assert (after.done, after.total, after.unit, after.note) == (3.0, 8.0, "pages", "on it")


def test_case_b7_case_b8_one_attempt_ends_once(store: SqliteStore) -> None:
    add(store)
    job = claimed(store)
    assert finish(store, job, Ending("lost")) is not None
    assert finish(store, job, outcome=None) is None
    with store.write() as tx:
        assert not runs.set_outcome(tx, job, DONE)
    with store.read() as tx:
        kinds = [event.kind for event in reads.events(tx, job.id, after=0, limit=9)]
    assert kinds == ["added", "claimed", "back in line"]


def test_case_a8_every_running_job_is_looked_at_whatever_their_number(store: SqliteStore) -> None:
    with store.write() as tx:
        for _ in range(300):
            acts.submit(tx, new())
        acts.set_concurrency(tx, LANE, 300, by="ann")
        for _ in range(300):
            assert runs.claim(tx, LANE, "w1")
        assert len(runs.every_run(tx)) == 300


def test_p25_cancelling_a_parent_ends_its_waiting_children_and_it_may_submit_no_more(
    store: SqliteStore,
) -> None:
    add(store)
    parent = claimed(store)
    child = add(store, lane="other", parent=parent.id, ordinal="1")
    assert add(store, lane="other", parent=parent.id, ordinal="1").id == child.id
    running_child = add(store, lane="third", parent=parent.id, ordinal="2")
    claimed(store, lane="third")
    with store.write() as tx:
        acts.act(tx, parent.id, lambda j: moves.cancel(j, by="ann", now_ms=1))
    with pytest.raises(WrongState, match="can submit no more"):
        add(store, lane="other", parent=parent.id, ordinal="3")
    finish(store, parent)
    with store.read() as tx:
        ended = reads.job(tx, child.id)
        assert (ended.state, ended.cause) == (State.CANCELLED, Cause.PARENT_CANCELLED)
        assert ended.error == f"Stopped with job {parent.id}, which submitted it."
        assert reads.job(tx, running_child.id).state is State.RUNNING


@pytest.mark.parametrize("slots", [0, -1, 1001, 2**70])
def test_e28_slots_out_of_range_change_nothing(store: SqliteStore, slots: int) -> None:
    add(store)
    with pytest.raises(BadInput) as caught, store.write() as tx:
        acts.set_concurrency(tx, LANE, slots, by="ann")
    assert caught.value.field == "slots"


def test_e28_numbers_no_database_holds_are_bad_input(store: SqliteStore) -> None:
    add(store)
    with pytest.raises(BadInput, match="too large"), store.write() as tx:
        acts.set_delay(tx, LANE, 2**70, by="ann")
    with pytest.raises(BadInput, match="cannot be negative"), store.write() as tx:
        acts.set_delay(tx, LANE, -1, by="ann")
    with pytest.raises(BadInput, match="too large"):
        add(store, priority=2**63)


def test_e18_a_line_without_room_between_two_is_renumbered_and_keeps_its_order(
    store: SqliteStore,
) -> None:
    jobs = [add(store) for _ in range(4)]
    running = claimed(store)
    for number in range(60):
        mover = jobs[2 + number % 2]
        with store.write() as tx:
            acts.move_to(tx, mover.id, ("after", jobs[1].id), by="ann")
        with store.read() as tx:
            line = [job.id for job in reads.waiting(tx, LANE, 9)]
        assert line == [jobs[1].id, mover.id, jobs[3 - number % 2].id]
    finish(store, running, Ending("interrupt"))
    assert claimed(store).id == running.id, "it is back at its own place, before all of them"


@pytest.mark.parametrize(("side", "order"), [("before", [1, 4, 2, 3]), ("after", [1, 2, 4, 3])])
def test_e18_two_at_one_place_are_told_apart(
    store: SqliteStore, side: str, order: list[int]
) -> None:
    jobs = [add(store) for _ in range(4)]
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE job SET position = 5 WHERE id < 4")
    connection.close()
    with store.write() as tx:
        acts.move_to(tx, jobs[3].id, (side, jobs[1].id), by="ann")
    with store.read() as tx:
        assert [job.id for job in reads.waiting(tx, LANE, 9)] == order


def test_e18_places_do_not_depend_on_the_clock(store: SqliteStore, clock: HandClock) -> None:
    first = add(store)
    add(store)
    claimed(store)
    clock.wall_ms -= 86_400_000
    last = add(store)
    with store.read() as tx:
        line = [job.id for job in reads.waiting(tx, LANE, 9)]
    assert line[-1] == last.id and first.id not in line


def test_e25_a_worker_that_serves_every_lane_serves_this_one(store: SqliteStore) -> None:
    with store.write() as tx:
        runs.add_worker(tx, sign("w1", lanes=("*",)))
        runs.add_worker(tx, sign("w2", lanes=("other",)))
        assert [s.serves(LANE) for s in runs.signs(tx)] == [True, False]
        runs.drop_worker(tx, sign("w1"))
        assert [s.id for s in runs.signs(tx)] == ["w2"]
