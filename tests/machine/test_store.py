"""Any order of acts, by people and by workers, against the real store: ``moves`` says what comes
of each.

The model below is the jobs as ``moves`` leaves them, pauses, delays and steps, and the order seen
last. It decides nothing itself: a job's next state is always what ``moves`` answers for the state
before. Held here: E02 slots, E03 leases, E12 keys, E14 held jobs, E18 order, E23 the journal.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.store.ground import HandClock, new

from lineclear import Queue, moves
from lineclear.endings import write_outcome
from lineclear.errors import WrongState
from lineclear.job import ENDED, Cause, Ending, Job, NewJob, Options, Outcome, State, Wish
from lineclear.lanes import LaneHandle
from lineclear.looks import next_start_ms
from lineclear.store import runs
from lineclear.store.places import To

MEMORY = Path("/dev/shm")
LANES = ("a", "b")
WORKERS = st.sampled_from(["w1", "w2", "w3"])
LANE = st.sampled_from(LANES)
PICK = st.integers(0, 40)
WHO = "ann"
ENDINGS = st.sampled_from(
    [
        Ending(exit_code=0),
        Ending(exit_code=3),
        Ending(signal=9),
        Ending(signal=9, out_of_memory=True),
        Ending("interrupt"),
        Ending("lost", sentence="Its worker was lost."),
        Ending("timeout", exit_code=1),
        Ending("not started", sentence="No such file."),
        Ending("wish", signal=15),
    ]
)
OUTCOMES = st.sampled_from(
    [
        Outcome("done", result="[1]"),
        Outcome("failed", error="It broke.", cause=Cause.RAISED),
        Outcome("cancelled"),
        Outcome("interrupted"),
        Outcome("timed out"),
    ]
)
OPTIONS = st.sampled_from([Options(), Options(retries=2), Options(max_interruptions=1)])
RETRIED = tuple(
    moves.retry(
        Job(**dict.fromkeys(Job.__slots__) | {"id": 1, "state": State.DONE, "revision": 1}),  # type: ignore[arg-type]
        by=WHO, start_over=True, priority=0, position=0,
    ).changes
)  # fmt: skip
"""The columns that a retry sets."""
ENDS = {"ended", "back in line", "to retry"}


@dataclass
class Undoable:
    """One act that can be taken back: when, after which line of the journal, the jobs before it."""

    at_ms: int
    seq: int
    before: dict[int, Job]


class Jobs(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # In memory where that can be had: what a disk does has tests of its own.
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.clock = HandClock()
        self.queue = Queue(self.folder / "q.db", by=WHO, clock=self.clock)
        self.jobs: dict[int, Job] = {}
        self.stale: list[Job] = []
        self.steps: dict[int, dict[str, int]] = {}
        self.order: dict[str, list[int]] = {lane: [] for lane in LANES}
        self.touched: set[int] = set()
        self.pauses: dict[str, dict[str, int | None]] = {lane: {} for lane in LANES}
        self.slots = dict.fromkeys(LANES, 1)
        self.delays = dict.fromkeys(LANES, 0)
        self.rows: list[Job] = []
        self.seq = 0
        self.told: dict[int, str] = {}
        self.ends: dict[tuple[int, int], int] = {}
        self.last_end: dict[str, int | None] = dict.fromkeys(LANES)
        self.undoable: dict[int, Undoable] = {}

    @initialize()
    def lanes(self) -> None:
        for lane in LANES:
            self.submit(lane=lane, key=None, priority=0, options=Options(), later=None, held=False)

    def teardown(self) -> None:
        connection = self.queue.store._writer
        assert connection is not None
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        self.queue.close()
        shutil.rmtree(self.folder)

    # What people do

    @rule(
        lane=LANE,
        key=st.sampled_from([None, None, "k1", "k2"]),
        priority=st.sampled_from([0, 0, 0, 5]),
        options=OPTIONS,
        later=st.sampled_from([None, None, None, -5, 5_000]),
        held=st.sampled_from([False, False, False, True]),
    )
    def submit(
        self, *, lane: str, key: str | None, priority: int, options: Options, later: int | None,
        held: bool,
    ) -> None:  # fmt: skip
        self.put(lane=lane, key=key, priority=priority, options=options, later=later, held=held)

    @rule(lane=LANE)
    def submit_first(self, *, lane: str) -> None:
        job = self.put(lane=lane, first=True)
        assert self.line(lane)[0] == job.id

    def put(self, *, lane: str, later: int | None = None, held: bool = False, **fields: Any) -> Job:
        asked: NewJob = new(
            lane=lane, held_by=WHO if held else None,
            run_at_ms=None if later is None else self.clock.now_ms() + later, **fields,
        )  # fmt: skip
        live = [
            j for j in self.jobs.values() if j.lane == lane and j.key == asked.key and not j.ended
        ]
        holder = live[0] if live and asked.key is not None else None
        added = self.queue.put(asked)
        if holder is None:
            assert added.new and added.job.id not in self.jobs
            assert added.job.state is State.QUEUED
            self.jobs[added.job.id] = added.job
            self.steps[added.job.id] = {}
            self.touched.add(added.job.id)
            if not held and not added.job.run_at_ms and not asked.first:
                line = [j for j in self.line(lane) if self.jobs[j].priority == added.job.priority]
                assert line[-1] == added.job.id
        else:
            assert not added.new and added.job.id == holder.id
            if holder.wish in (Wish.CANCEL, Wish.KILL):
                move = moves.resubmit(holder, args=asked.args, title=asked.title, by=asked.by)
                self.apply(holder, move)
        return added.job

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK, act=st.sampled_from(["hold", "release", "cancel", "kill", "force", "remove"]))
    def act(self, *, pick: int, act: str) -> None:
        job = self.job(pick)
        now_ms = self.clock.now_ms()
        decide: dict[str, Callable[[], moves.Move | None]] = {
            "hold": lambda: moves.hold(job, by=WHO, now_ms=now_ms),
            "release": lambda: moves.release(job, by=WHO),
            "cancel": lambda: moves.cancel(job, by=WHO, now_ms=now_ms),
            "kill": lambda: moves.kill(job, by=WHO, now_ms=now_ms),
            "force": lambda: moves.force(job, by=WHO, now_ms=now_ms),
            "remove": lambda: moves.remove(job, by=WHO, now_ms=now_ms),
        }
        with pytest.raises(WrongState):
            getattr(self.queue, act)(job.id, if_version=job.version - 1)
        with self.undoing(job):
            self.same_refusal(job, decide[act], lambda: getattr(self.queue, act)(job.id))

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK, priority=st.sampled_from([0, 5, -3]))
    def prioritize(self, *, pick: int, priority: int) -> None:
        job = self.job(pick)
        self.touched.add(job.id)
        self.same_refusal(
            job,
            lambda: moves.place(job, priority=priority, position=job.position, by=WHO),
            lambda: self.queue.prioritize(job.id, priority),
        )

    @precondition(lambda self: self.jobs)
    @rule(
        pick=PICK,
        other=PICK,
        to=st.sampled_from(["top", "bottom", "up", "down", "before", "after", 1, 2, 5]),
    )
    def move(self, *, pick: int, other: int, to: str | int) -> None:
        job, beside = self.job(pick), self.job(other)
        where: To = (to, beside.id) if to in ("before", "after") else to
        waits = [j for j in (job, beside) if j.state is State.QUEUED and j.lane == job.lane]
        before = self.line(job.lane)
        self.touched.add(job.id)
        if job not in waits or (isinstance(where, tuple) and beside not in waits):
            with pytest.raises(WrongState):
                self.queue.move(job.id, where)
            return
        with self.undoing(job):
            after = self.queue.move(job.id, where)
        self.jobs[job.id] = replace(
            job, priority=after.priority, position=after.position, version=after.version
        )
        assert after.version - job.version in (0, 1)
        if job.id not in before:
            return
        line = self.line(job.lane)
        place, was, last = line.index(job.id), before.index(job.id), len(line) - 1
        match to:
            case "top" | "bottom":
                assert place == (0 if to == "top" else last)
            case "up" | "down":
                assert place == (max(0, was - 1) if to == "up" else min(last, was + 1))
            case int():
                assert place == min(to - 1, last)
            case _ if beside.id in line and beside is not job:
                assert place == line.index(beside.id) + (1 if to == "after" else -1)

    @rule(lane=LANE)
    def remove_waiting(self, *, lane: str) -> None:
        waiting = [j for j in self.jobs.values() if j.lane == lane and j.state is State.QUEUED]
        handle = self.queue.lane(lane)
        with pytest.raises(WrongState, match=f"{len(waiting)} job"):
            handle.remove_waiting(expect=len(waiting) + 1)
        with self.undoing(*waiting):
            assert handle.remove_waiting(expect=len(waiting)) == len(waiting)
        for job in waiting:
            self.apply(job, moves.remove(job, by=WHO, now_ms=self.clock.now_ms()))

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK)
    def remove_and_undo(self, *, pick: int) -> None:
        job = self.job(pick)
        if job.state is not State.QUEUED:
            return
        before = self.line(job.lane)
        self.queue.remove(job.id)
        assert job.id not in self.line(job.lane)
        done = self.queue.undo()
        assert done is not None and done.kind == "removed" and done.jobs == (job.id,)
        assert self.line(job.lane) == before
        removed = moves.remove(job, by=WHO, now_ms=self.clock.now_ms())
        gone = self.apply(job, removed)
        self.apply(gone, moves.unremove(gone, by=WHO))

    @precondition(lambda self: self.undoable)
    @rule(pick=st.sampled_from([None, 0, 1, 2, 3]))
    def undo(self, *, pick: int | None) -> None:
        """That act alone, and of it what has not changed since."""
        numbers = sorted(self.undoable)
        which = None if pick is None else numbers[pick % len(numbers)]
        act = self.undoable.pop(numbers[-1] if which is None else which)
        done = self.queue.undo(which)
        assert done is not None and done.at_ms == act.at_ms
        assert set(done.jobs) <= set(act.before)
        assert self.queue.undo(which) is None if which is not None else True
        for job_id, before in act.before.items():
            job = self.jobs[job_id]
            move: moves.Move | None = None
            match done.kind:
                case "moved":
                    if job_id in done.jobs:
                        after = self.queue.get(job_id)
                        assert job.state is State.QUEUED and after.version == job.version + 1
                        move = moves.place(
                            replace(job, position=-1), by=WHO,
                            priority=after.priority, position=after.position,
                        )  # fmt: skip
                case "hidden":
                    move = moves.show(by=WHO) if job.hidden_ms == act.at_ms else None
                case "retried":
                    since = [e.kind for e in self.queue.events(job_id, after=act.seq)]
                    since = [kind for kind in since if kind != "retry undone"]
                    was = {name: getattr(before, name) for name in RETRIED}
                    move = moves.unretry(job, was, since=since, by=WHO)
                case _:
                    gone = job.cause is Cause.REMOVED and job.ended_ms == act.at_ms
                    live = [
                        j for j in self.jobs.values()
                        if (j.lane, j.key) == (job.lane, job.key) and not j.ended
                    ]  # fmt: skip
                    if gone and job.ended and (job.key is None or not live):
                        move = moves.unremove(job, by=WHO)
            assert (job_id in done.jobs) == (move is not None)
            if move is not None:
                self.touched.add(job_id)
                self.apply(job, move)

    @contextmanager
    def undoing(self, *jobs: Job) -> Iterator[None]:
        """An act that may be undone later, on these jobs as they were."""
        with self.queue.once(None) as request:
            yield
        if request.undo is not None:
            before = {job.id: job for job in jobs if job.id in request.jobs}
            assert set(before) == set(request.jobs)
            seq = self.queue.last_seq()
            self.undoable[request.undo] = Undoable(self.clock.now_ms(), seq, before)

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK, start_over=st.booleans(), first=st.booleans())
    def retry(self, *, pick: int, start_over: bool, first: bool) -> None:
        job = self.job(pick)
        live = [
            j for j in self.jobs.values() if (j.lane, j.key) == (job.lane, job.key) and not j.ended
        ]
        if not job.ended or (job.key is not None and live):
            with pytest.raises(WrongState):
                self.queue.retry(job.id, start_over=start_over, first=first)
            return
        with self.undoing(job):
            after = self.queue.retry(job.id, start_over=start_over, first=first)
        self.touched.add(job.id)
        self.apply(
            job,
            moves.retry(
                job, by=WHO, start_over=start_over, priority=after.priority, position=after.position
            ),
        )
        if first:
            assert self.line(job.lane)[0] == job.id

    @rule(lane=st.sampled_from([None, *LANES]), state=st.sampled_from(ENDED))
    def clear(self, *, lane: str | None, state: State) -> None:
        shown = [
            job
            for job in self.jobs.values()
            if job.state is state and job.hidden_ms is None and lane in (None, job.lane)
        ]
        with pytest.raises(WrongState, match=f"{len(shown)} job"):
            self.queue.clear(states=[state], lane=lane, expect=len(shown) + 1)
        with self.undoing(*shown):
            assert self.queue.clear(states=[state], lane=lane) == len(shown)
        for job in shown:
            self.apply(job, moves.hide(job, by=WHO, now_ms=self.clock.now_ms()))

    @rule(
        lane=LANE, source=st.sampled_from(["person", "disk"]), ends=st.sampled_from([None, 3_000])
    )
    def pause(self, *, lane: str, source: str, ends: int | None) -> None:
        until = None if ends is None else self.clock.now_ms() + ends
        self.handle(lane).pause("tea", source=source, until_ms=until)
        self.pauses[lane][source] = until

    @rule(lane=LANE, source=st.sampled_from([None, None, "person", "disk"]))
    def resume(self, *, lane: str, source: str | None) -> None:
        self.handle(lane).resume(source)
        for each in [source] if source else list(self.pauses[lane]):
            self.pauses[lane].pop(each, None)

    @rule(lane=LANE, delay=st.sampled_from([0, 0, 4_000]))
    def delay(self, *, lane: str, delay: int) -> None:
        assert self.handle(lane).set_delay(delay).delay_ms == delay
        self.delays[lane] = delay

    @rule(lane=LANE, slots=st.integers(1, 3))
    def set_slots(self, *, lane: str, slots: int) -> None:
        assert self.handle(lane).set_concurrency(slots).concurrency == slots
        self.slots[lane] = slots

    @rule(lane=LANE)
    def stop_now(self, *, lane: str) -> None:
        running = self.running(lane)
        assert {job.id for job in self.handle(lane).stop_now()} == {job.id for job in running}
        for job in running:
            want = Wish.KILL if job.wish is Wish.CANCEL else Wish.REQUEUE
            move = moves.wish(job, want, by=WHO, now_ms=self.clock.now_ms())
            if move is not None:
                self.apply(job, move)
        if running:
            self.pauses[lane]["person"] = None

    # What workers do

    @rule(lane=LANE, worker=WORKERS)
    def claim(self, *, lane: str, worker: str) -> None:
        expected = self.next_to_run(lane)
        with self.queue.store.write(durable=False) as tx:
            job = runs.claim(tx, lane, worker)
        assert (job and job.id) == expected
        if job is not None:
            self.taken(job, worker)

    @precondition(lambda self: self.jobs)
    @rule(pick=PICK, worker=WORKERS)
    def claim_by_hand(self, *, pick: int, worker: str) -> None:
        before = self.job(pick)
        with self.queue.store.write() as tx:
            if before.state is not State.QUEUED:
                with pytest.raises(WrongState):
                    runs.claim_by_hand(tx, before.id, worker)
                return
            job = runs.claim_by_hand(tx, before.id, worker)
        assert (job is not None) == (len(self.running(before.lane)) < self.slots[before.lane])
        if job is not None:
            self.taken(job, worker)

    @precondition(lambda self: self.running())
    @rule(pick=PICK, done=st.sampled_from([None, 3.0]))
    def beat(self, *, pick: int, done: float | None) -> None:
        job, tick = self.run_of(pick), self.clock.tick_ms()
        moved = int(done is not None)
        beat = runs.Beat(job.id, job.lease or "", moved, moved, tick, done, 9.0 if moved else None)
        with self.queue.store.write(durable=False) as tx:
            assert runs.beat(tx, [beat]) == {job.id: (job.wish, job.wish_by or "")}
        self.jobs[job.id] = job = replace(job, beat_tick=tick, moves=job.moves + moved)
        if moved:
            self.jobs[job.id] = replace(job, moved_tick=tick, done=done, total=9.0)

    @precondition(lambda self: self.running())
    @rule(pick=PICK, name=st.sampled_from(["one", "two"]))
    def keep_step(self, *, pick: int, name: str) -> None:
        job = self.run_of(pick)
        with self.queue.store.write() as tx:
            kept = runs.keep_step(tx, job, name=name, weight=1.0, result="1", started_ms=tx.now_ms)
        assert kept == (job.outcome is None)
        if kept:
            more = 0.0 if name in self.steps[job.id] else 1.0
            self.steps[job.id][name] = job.run_revision
            tick = self.clock.tick_ms()
            self.jobs[job.id] = replace(job, interruptions=0, moved_tick=tick, kept=job.kept + more)

    @precondition(lambda self: self.running())
    @rule(pick=PICK, outcome=OUTCOMES)
    def set_outcome(self, *, pick: int, outcome: Outcome) -> None:
        job = self.run_of(pick)
        with self.queue.store.write() as tx:
            kept = runs.set_outcome(tx, job, outcome)
        assert kept == (job.outcome is None)
        if kept:
            text = write_outcome(outcome)
            self.jobs[job.id] = replace(job, outcome=text, version=job.version + 1)

    @precondition(lambda self: self.running())
    @rule(pick=PICK, ending=ENDINGS)
    def finish(self, *, pick: int, ending: Ending) -> None:
        job = self.run_of(pick)
        with self.queue.store.write() as tx:
            assert runs.finish(tx, job, ending, by="w1") is not None
        self.stale.append(job)
        self.apply(job, moves.finish(job, ending, by="w1", now_ms=self.clock.now_ms()))
        if ending.why != "lost" and job.child_pid is not None:
            self.last_end[job.lane] = self.clock.now_ms()

    @precondition(lambda self: self.running())
    @rule(pick=PICK)
    def spawn(self, *, pick: int) -> None:
        job = self.run_of(pick)
        with self.queue.store.write() as tx:
            assert runs.set_child(tx, job, pid=7, start=8)
        self.jobs[job.id] = replace(job, child_pid=7, child_start=8)

    @precondition(lambda self: self.running())
    @rule(pick=PICK)
    def take_lease(self, *, pick: int) -> None:
        job = self.run_of(pick)
        with self.queue.store.write() as tx:
            mine = runs.take_lease(tx, job)
        assert mine is not None and mine.lease not in {old.lease for old in [*self.stale, job]}
        self.stale.append(job)
        self.jobs[job.id] = replace(job, lease=mine.lease, version=job.version + 1)

    @precondition(lambda self: self.stale)
    @rule(pick=PICK, ending=ENDINGS, outcome=OUTCOMES)
    def write_with_a_lost_lease(self, *, pick: int, ending: Ending, outcome: Outcome) -> None:
        job = self.stale[pick % len(self.stale)]
        with self.queue.store.write() as tx:
            assert not runs.keep_step(tx, job, name="late", weight=1, result=None, started_ms=1)
            assert not runs.set_outcome(tx, job, outcome)
            assert not runs.set_publishing(tx, job, "/shelf/.file.1")
            assert not runs.set_child(tx, job, pid=1, start=1)
            assert runs.beat(tx, [runs.Beat(job.id, job.lease or "", 1, 1, 1, 99.0)]) == {}
            assert runs.take_lease(tx, job) is None
            assert runs.finish(tx, job, ending, by="w2") is None

    @rule(ms=st.sampled_from([1, 2_500, 10_000, 70_000, -6_000]))
    def let_time_pass(self, *, ms: int) -> None:
        self.clock.wall_ms += ms
        self.clock.lease_ms += max(0, ms)

    # What must be true whenever one looks

    @invariant()
    def all_of_it_is_true(self) -> None:
        self.rows = self.queue.jobs(limit=1000, hidden=True)
        self.rows_are_what_moves_say()
        self.slots_and_keys_are_held_once()
        self.order_changes_only_for_what_was_moved()
        self.the_journal_tells_the_same_story()
        self.counts_are_the_rows()

    def rows_are_what_moves_say(self) -> None:
        assert len(self.rows) == len(self.jobs)
        for row in self.rows:
            job = self.jobs[row.id]
            # Renumbering a line changes places, never the order, which is looked at below.
            seen = replace(row, position=job.position, beat_age_ms=None, moved_age_ms=None)
            size = None if row.result is None else len(row.result)
            known = replace(job, worker_alive=None, args_size=len(row.args), result_size=size)
            assert seen == known
            assert row.ended or row.kept == sum(
                revision >= row.revision for revision in self.steps[row.id].values()
            )
        connection = self.queue.store._writer
        assert connection is not None
        kept = {tuple(row) for row in connection.execute("SELECT job, name FROM step")}
        assert kept == {(job, name) for job, names in self.steps.items() for name in names}

    def slots_and_keys_are_held_once(self) -> None:
        live = [job for job in self.rows if not job.ended]
        slots = Counter((job.lane, job.slot) for job in live if job.state is State.RUNNING)
        keys = Counter((job.lane, job.key) for job in live if job.key is not None)
        assert all(count == 1 for count in [*slots.values(), *keys.values()])

    def order_changes_only_for_what_was_moved(self) -> None:
        for lane in LANES:
            live = [job for job in self.rows if job.lane == lane and not job.ended]
            order = [j.id for j in sorted(live, key=lambda j: (-j.priority, j.position, j.id))]
            stayed = (set(order) & set(self.order[lane])) - self.touched
            assert [i for i in order if i in stayed] == [i for i in self.order[lane] if i in stayed]
            self.order[lane] = order
        self.touched.clear()

    def the_journal_tells_the_same_story(self) -> None:
        for event in self.queue.events(after=self.seq, limit=100_000):
            self.seq = event.seq
            if event.job is None or event.attempt is None:
                continue
            was, run = self.told.get(event.job), (event.job, event.attempt)
            if event.kind == "claimed":
                assert was == State.QUEUED and run not in self.ends
                self.ends[run] = 0
            if event.kind in ENDS and was == State.RUNNING:
                self.ends[run] += 1
            self.told[event.job] = replayed(event.kind, event.detail, was)
        assert self.told == {job.id: job.state for job in self.jobs.values()}
        going = {(job.id, job.attempt) for job in self.running()}
        assert self.ends == {run: int(run not in going) for run in self.ends}

    def counts_are_the_rows(self) -> None:
        for lane in self.queue.lanes():
            here = Counter(job.state for job in self.jobs.values() if job.lane == lane.name)
            assert (lane.running, lane.waiting) == (here[State.RUNNING], here[State.QUEUED])
            line = self.queue.waiting(lane.name, limit=1000)
            assert len(line) == lane.waiting
            pages: list[tuple[Job, int | None]] = []
            cursor = None
            while True:
                page = self.queue.waiting_after(lane.name, cursor, limit=3)
                pages += zip(page.jobs, page.places, strict=True)
                cursor = page.next
                if cursor is None:
                    break
            assert [job.id for job, _ in pages] == [job.id for job in line]
            for job, place in pages[:4]:
                assert place == self.queue.place(job.id)
            counts = self.queue.counts(lane.name)
            listed = Counter(
                job.state
                for job in self.jobs.values()
                if job.lane == lane.name and job.hidden_ms is None
            )
            told = (counts.done, counts.failed, counts.cancelled, counts.waiting, counts.running)
            assert told == tuple(listed[s] for s in (*ENDED, State.QUEUED, State.RUNNING))
            for state in ENDED:
                assert len(self.queue.jobs(lane=lane.name, state=state)) == listed[state]

    # Inside

    def handle(self, lane: str) -> LaneHandle:
        return self.queue.lane(lane)

    def job(self, pick: int) -> Job:
        ids = sorted(self.jobs)
        return self.jobs[ids[pick % len(ids)]]

    def running(self, lane: str | None = None) -> list[Job]:
        return [
            job
            for job in self.jobs.values()
            if job.state is State.RUNNING and lane in (None, job.lane)
        ]

    def run_of(self, pick: int) -> Job:
        running = self.running()
        return running[pick % len(running)]

    def line(self, lane: str) -> list[int]:
        """The line as it is shown, without what is held or due later."""
        shown = self.queue.waiting(lane, limit=1000)
        return [job.id for job in shown if job.held_ms is None and job.run_at_ms is None]

    def apply(self, job: Job, move: moves.Move) -> Job:
        after = replace(job, **move.changes, version=job.version + 1)
        self.jobs[job.id] = after
        return after

    def same_refusal(
        self, job: Job, decide: Callable[[], moves.Move | None], ask: Callable[[], Any]
    ) -> None:
        try:
            move = decide()
        except WrongState:
            with pytest.raises(WrongState):
                ask()
            return
        ask()
        if move is not None:
            self.apply(job, move)

    def next_to_run(self, lane: str) -> int | None:
        """What the next claim has to take; promotes what is due, as each claim does."""
        now_ms = self.clock.now_ms()
        for job in list(self.jobs.values()):
            due = (
                job.state is State.QUEUED and job.run_at_ms is not None and job.run_at_ms <= now_ms
            )
            if job.lane == lane and due:
                self.jobs[job.id] = replace(job, run_at_ms=None)
        if len(self.running(lane)) >= self.slots[lane]:
            return None
        queued = [j for j in self.jobs.values() if j.lane == lane and j.state is State.QUEUED]
        forced = [(j.forced_ms, j.id) for j in queued if j.forced_ms is not None]
        if forced:
            return min(forced)[1]
        pauses = self.pauses[lane] = {
            source: until
            for source, until in self.pauses[lane].items()
            if until is None or until > now_ms
        }
        if pauses:
            return None
        end = self.last_end[lane]
        self.last_end[lane] = None if end is None else min(end, now_ms)
        if next_start_ms(self.last_end[lane], self.delays[lane], now_ms=now_ms) > now_ms:
            return None
        ready = {j.id for j in queued if j.held_ms is None and j.run_at_ms is None}
        return next((i for i in self.order[lane] if i in ready), None)

    def taken(self, job: Job, worker: str) -> None:
        before = self.jobs[job.id]
        assert job.slot is not None and job.lease is not None
        move = moves.claim(
            before, slot=job.slot, lease=job.lease, worker=worker,
            now_ms=self.clock.now_ms(), tick_ms=self.clock.tick_ms(),
        )  # fmt: skip
        slots = {other.slot for other in self.running(job.lane)}
        assert job.slot == min(set(range(len(slots) + 1)) - slots)
        assert len(slots) < self.slots[job.lane]
        after = self.apply(before, move)
        kept = self.steps[job.id]
        self.steps[job.id] = {n: r for n, r in kept.items() if r >= after.revision}


def replayed(kind: str, detail: dict[str, Any], was: str | None) -> str:
    match kind:
        case "added" | "retried" | "restored" | "back in line" | "to retry":
            return State.QUEUED
        case "claimed":
            return State.RUNNING
        case "removed":
            return State.CANCELLED
        case "retry undone":
            return str(detail["state"])
        case "ended":
            return State.QUEUED if "again" in detail else str(detail["state"])
        case _:
            assert was is not None
            return was


Jobs.TestCase.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None, derandomize=True, database=None
)


TestE02E03E12E14E18E23 = pytest.mark.timeout(600)(Jobs.TestCase)
