"""The state machine by itself: ends of attempts, wishes, and what each act makes of a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.jobs import NOW_MS, queued, running

from lineclear import moves
from lineclear.endings import write_outcome
from lineclear.errors import WrongState
from lineclear.job import Cause, Ending, Job, Options, Outcome, State, Wish

DONE = write_outcome(Outcome("done", result="[1]"))
BROKE = write_outcome(Outcome("failed", error="ValueError: no", cause=Cause.RAISED))


def end(job: Job, ending: Ending | None = None) -> Job:
    move = moves.finish(job, ending or Ending(exit_code=0), by="w1", now_ms=NOW_MS)
    return replace(job, **move.changes)


@pytest.mark.parametrize(
    ("ending", "cause", "words"),
    [
        (Ending(exit_code=3), Cause.EXITED, "exited with code 3"),
        (Ending(exit_code=0), Cause.EXITED, "without saying how"),
        (Ending(signal=11), Cause.SIGNALLED, "signal 11 (SIGSEGV)"),
        (Ending(signal=9), Cause.SIGNALLED, "memory killer"),
        (Ending(signal=99), Cause.SIGNALLED, "signal 99 (signal 99)"),
        (Ending(signal=9, out_of_memory=True), Cause.OUT_OF_MEMORY, "memory ran out"),
        (Ending("timeout", signal=15), Cause.TIMED_OUT, "limit of 5 s"),
        (Ending("not started", sentence="No such file."), Cause.NOT_STARTED, "No such file."),
    ],
)
def test_e10_case_c5_an_end_nobody_asked_for_is_a_failure_with_its_sentence(
    ending: Ending, cause: Cause, words: str
) -> None:
    job = end(running(options=Options(timeout_s=5)), ending)
    assert (job.state, job.cause, job.failures) == (State.FAILED, cause, 1)
    assert job.error is not None and words in job.error
    assert (job.slot, job.lease, job.worker, job.wish) == (None, None, None, None)


def test_e10_what_the_task_said_outranks_how_its_process_went() -> None:
    assert end(running(outcome=DONE), Ending(signal=9)).state is State.DONE
    broke = end(running(outcome=BROKE), Ending(exit_code=1))
    assert (broke.cause, broke.error) == (Cause.RAISED, "ValueError: no")


def test_e10_a_long_error_is_cut_to_500_characters() -> None:
    for kind in ("failed", "cancelled"):
        said = write_outcome(Outcome(kind, error="x" * 9_000))
        error = end(running(outcome=said)).error
        assert error is not None and len(error) == 500 and error.endswith("…")


def test_case_b7_case_b8_an_ended_job_cannot_end_again() -> None:
    ended = end(running(outcome=DONE))
    with pytest.raises(WrongState, match="is done, so it cannot be ended"):
        moves.finish(ended, Ending(exit_code=0), by="w2", now_ms=NOW_MS)


@pytest.mark.parametrize("why", ["lost", "interrupt"])
def test_e09_p13_three_interruptions_in_a_row_end_a_job(why: str) -> None:
    job = running()
    for number in (1, 2):
        job = end(job, Ending(why))  # type: ignore[arg-type]
        assert (job.state, job.interruptions, job.failures) == (State.QUEUED, number, 0)
        job = running(interruptions=number)
    job = end(job, Ending(why))  # type: ignore[arg-type]
    assert job.state is State.FAILED and job.error is not None and "3 times" in job.error


def test_e11_an_interruption_too_many_is_not_retried_blindly() -> None:
    job = end(running(interruptions=2, options=Options(retries=5)), Ending("lost"))
    assert job.state is State.FAILED and job.run_at_ms is None


def test_e09_stop_now_by_a_person_does_not_count() -> None:
    job = end(running(wish=Wish.REQUEUE, wish_by="ann", interruptions=2), Ending("wish", signal=9))
    assert (job.state, job.interruptions, job.cause) == (State.QUEUED, 2, Cause.STOPPED_NOW)


def test_e11_a_failure_stays_unless_retries_are_asked_for_and_waits_twice_as_long_each_time() -> (
    None
):
    assert end(running(outcome=BROKE)).state is State.FAILED
    waits = []
    for failures in range(3):
        options = Options(retries=2, retry_delay_s=10)
        job = end(running(outcome=BROKE, failures=failures, options=options))
        waits.append(None if job.run_at_ms is None else job.run_at_ms - NOW_MS)
        assert job.state is (State.QUEUED if failures < 2 else State.FAILED)
    assert waits == [10_000, 20_000, None]


def test_e11_many_retries_never_wait_longer_than_can_be_written() -> None:
    options = Options(retries=10_000, retry_delay_s=3600)
    job = end(running(outcome=BROKE, failures=9_000, options=options))
    assert job.run_at_ms is not None and job.run_at_ms < 2**62


def test_p11_wishes_only_rise_and_none_comes_after_the_outcome() -> None:
    def asked(job: Job, want: Wish) -> moves.Move | None:
        return moves.wish(job, want, by="bob", now_ms=NOW_MS)

    rank = [Wish.REQUEUE, Wish.CANCEL, Wish.KILL]
    for have in rank:
        for want in rank:
            move = asked(running(wish=have, wish_by="ann"), want)
            assert (move is not None) == (rank.index(want) > rank.index(have))
    for want in rank:
        assert asked(running(outcome=DONE), want) is None
        assert asked(running(), want) is not None


def test_p11_a_delivered_cancel_and_an_exception_is_cancelled() -> None:
    job = end(running(wish=Wish.CANCEL, wish_by="ann", outcome=BROKE))
    assert (job.state, job.cause, job.ended_by) == (State.CANCELLED, Cause.ASKED, "ann")


def test_p11_done_before_the_cancel_came_is_done_and_nobody_elses_doing() -> None:
    job = end(running(wish=Wish.CANCEL, wish_by="ann", outcome=DONE))
    assert (job.state, job.ended_by) == (State.DONE, "w1")


def test_p11_case_c6_a_dead_job_somebody_asked_to_cancel_ends_cancelled() -> None:
    for want, cause in ((Wish.CANCEL, Cause.ASKED), (Wish.KILL, Cause.KILLED)):
        job = end(running(wish=want, wish_by="ann"), Ending("lost"))
        assert (job.state, job.cause, job.wish) == (State.CANCELLED, cause, None)


def test_p12_a_submit_during_a_cancel_queues_afresh_when_the_run_ends() -> None:
    job = running(wish=Wish.CANCEL, wish_by="ann", failures=2, interruptions=1)
    move = moves.resubmit(job, args='{"n": 2}', title="again", by="bob")
    asked = replace(job, **move.changes)
    ended = moves.finish(asked, Ending(exit_code=0), by="w1", now_ms=NOW_MS)
    after = replace(asked, **ended.changes)
    assert (ended.kind, ended.detail["state"], ended.detail["again"]) == ("ended", "cancelled", 2)
    assert (after.state, after.args, after.failures) == (State.QUEUED, '{"n": 2}', 0)


def test_case_c7_cancel_in_each_state() -> None:
    for job in (queued(), queued(held_ms=1), queued(run_at_ms=NOW_MS + 9), queued(failures=1)):
        move = moves.cancel(job, by="ann", now_ms=NOW_MS)
        assert move is not None and move.changes["state"] is State.CANCELLED
    asked = moves.cancel(running(), by="ann", now_ms=NOW_MS)
    assert asked is not None and asked.changes["wish"] is Wish.CANCEL
    for state in (State.DONE, State.FAILED, State.CANCELLED):
        with pytest.raises(WrongState, match=f"is {state}, so it cannot be stopped"):
            moves.cancel(queued(state=state), by="ann", now_ms=NOW_MS)


def test_e14_a_held_job_is_no_longer_forced() -> None:
    held = moves.hold(queued(forced_ms=1), by="ann", now_ms=NOW_MS)
    assert held is not None and held.changes["forced_ms"] is None
    forced = moves.force(queued(held_ms=1), by="ann", now_ms=NOW_MS)
    assert forced is not None and forced.changes["held_ms"] is None


def test_acts_that_change_nothing_write_nothing() -> None:
    assert moves.hold(queued(held_ms=1), by="ann", now_ms=NOW_MS) is None
    assert moves.release(queued(), by="ann") is None
    assert moves.force(queued(forced_ms=1), by="ann", now_ms=NOW_MS) is None
    assert moves.place(queued(), priority=0, position=7, by="ann") is None


@pytest.mark.parametrize("state", [State.RUNNING, State.DONE, State.FAILED, State.CANCELLED])
def test_e14_e15_e28_acts_on_the_line_are_refused_for_what_is_not_in_it(state: State) -> None:
    job = replace(running(), state=state)
    acts: list[Callable[[], object]] = [
        lambda: moves.hold(job, by="ann", now_ms=NOW_MS),
        lambda: moves.release(job, by="ann"),
        lambda: moves.remove(job, by="ann", now_ms=NOW_MS),
        lambda: moves.force(job, by="ann", now_ms=NOW_MS),
        lambda: moves.place(job, priority=1, position=1, by="ann"),
        lambda: moves.claim(job, slot=0, lease="l", worker="w", now_ms=1, tick_ms=1),
    ]
    for act in acts:
        with pytest.raises(WrongState) as caught:
            act()
        assert caught.value.state == state


def test_undo_of_a_removal_leaves_no_trace_of_it() -> None:
    job = queued(held_ms=5, held_by="ann", run_at_ms=NOW_MS + 9)
    gone = replace(job, **moves.remove(job, by="ann", now_ms=NOW_MS).changes)
    assert replace(gone, **moves.unremove(gone, by="ann").changes) == job
    with pytest.raises(WrongState, match="cannot be undone"):
        moves.unremove(end(running(outcome=DONE)), by="ann")


def test_e11_retry_keeps_progress_and_starting_over_does_not() -> None:
    failed = end(running(outcome=BROKE, done=3.0, total=9.0, failures=1))
    kept = replace(
        failed, **moves.retry(failed, by="a", start_over=False, priority=0, position=1).changes
    )
    assert (kept.state, kept.done, kept.revision, kept.failures) == (State.QUEUED, 3.0, 1, 0)
    anew = replace(
        failed, **moves.retry(failed, by="a", start_over=True, priority=0, position=1).changes
    )
    assert (anew.done, anew.total, anew.revision) == (None, None, 2)
    with pytest.raises(WrongState, match="only an ended job"):
        moves.retry(queued(), by="a", start_over=False, priority=0, position=1)


def test_each_claim_has_a_number_of_its_own() -> None:
    move = moves.claim(queued(attempt=4), slot=0, lease="l", worker="w", now_ms=1, tick_ms=2)
    assert (move.changes["attempt"], move.changes["run_revision"]) == (5, 1)


def test_p13_who_shared_a_process_is_interrupted_by_its_death_and_uncounted_by_its_end() -> None:
    died = Ending("shared", signal=9, sentence="It died; it resumes at its place.")
    aside = Ending("aside", signal=9, sentence="It was ended to end job 2.")
    for ending, counted in ((died, 1), (aside, 0)):
        job = end(running(), ending)
        assert (job.state, job.cause) == (State.QUEUED, Cause.INTERRUPTED)
        assert (job.interruptions, job.error) == (counted, ending.sentence)
    last = end(running(interruptions=2), died)
    assert last.state is State.FAILED and "interrupted 3 times" in (last.error or "")
    assert end(running(interruptions=2), aside).state is State.QUEUED
    assert end(running(wish=Wish.CANCEL, wish_by="ann"), died).state is State.CANCELLED
    assert end(running(outcome=DONE), died).state is State.DONE
