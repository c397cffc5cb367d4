"""Acts on many jobs: as many statements as for few, and still an event for each job."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.store.ground import LANE, add, new

from lineclear.job import State
from lineclear.store import acts, reads, undo
from lineclear.store.base import Tx
from lineclear.store.sqlite import SqliteStore, SqliteTx

ACTS: list[Callable[[Tx], object]] = [
    lambda tx: acts.remove_waiting(tx, LANE, by="ann"),
    lambda tx: acts.clear(tx, states=[State.CANCELLED], lane=None, before_ms=None, by="ann"),
    lambda tx: undo.undo(tx, by="ann"),
    lambda tx: undo.undo(tx, by="ann"),
]


def test_acts_on_many_jobs_take_as_many_statements_as_on_few(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    real = SqliteTx._run

    def counted(tx: SqliteTx, text: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
        nonlocal count
        count += 1
        return real(tx, text, parameters)

    monkeypatch.setattr(SqliteTx, "_run", counted)
    counts = []
    for many in (3, 300):
        with store.write() as tx:
            for _ in range(many):
                acts.submit(tx, new())
        for act in ACTS:
            count = 0
            with store.write() as tx:
                act(tx)
            counts.append(count)
    assert counts[: len(ACTS)] == counts[len(ACTS) :]
    with store.read() as tx:
        assert len(reads.waiting(tx, LANE, 999)) == 303


def test_each_of_many_jobs_has_its_own_event_and_history(store: SqliteStore) -> None:
    jobs = [add(store, key=str(n)) for n in range(3)]
    with store.read() as tx:
        before = reads.last_seq(tx)
    for act in ACTS:
        with store.write() as tx:
            act(tx)
    kinds = ["removed", "hidden", "shown again", "restored"]
    with store.read() as tx:
        told = [(event.kind, event.job) for event in reads.events(tx, None, after=before, limit=99)]
        assert told == [(kind, job.id) for kind in kinds for job in jobs]
        for job in jobs:
            history = [event.kind for event in reads.events(tx, job.id, after=0, limit=99)]
            assert history == ["added", *kinds]
            after = reads.job(tx, job.id)
            assert (after.state, after.version) == (State.QUEUED, job.version + len(kinds))


def test_undo_of_many_leaves_alone_whose_key_is_taken(store: SqliteStore) -> None:
    add(store, key="one")
    two = add(store, key="two")
    with store.write() as tx:
        acts.remove_waiting(tx, LANE, by="ann")
    add(store, key="one")
    with store.write() as tx:
        assert undo.undo(tx, by="ann") == ("cleared waiting", [two.id], tx.now_ms)
