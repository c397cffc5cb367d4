"""How an attempt ended: the task's own word first, then what was asked, then what the process did.
Pure. Called by ``moves``, which decides what becomes of the job.
"""

from __future__ import annotations

import json
import signal as signals
from dataclasses import dataclass

from lineclear.job import TEXT_LIMIT, Cause, Ending, Job, Outcome, State, Wish


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended, before it is decided what becomes of the job."""

    state: State
    cause: Cause
    error: str | None = None
    result: str | None = None
    counts: bool = False


def judge(job: Job, ending: Ending) -> Verdict:
    """What an attempt's end was: the task's own word first, then what was asked, then what the
    process showed.
    """
    outcome = read_outcome(job.outcome)
    if outcome is not None and outcome.kind == "done":
        return Verdict(State.DONE, Cause.RETURNED, result=outcome.result)
    if job.wish is Wish.KILL:
        return Verdict(State.CANCELLED, Cause.KILLED, f"Ended at once, asked by {job.wish_by}.")
    if job.wish is Wish.CANCEL:
        return Verdict(State.CANCELLED, Cause.ASKED, f"Stopped, asked by {job.wish_by}.")
    if job.wish is Wish.REQUEUE:
        return Verdict(State.QUEUED, Cause.STOPPED_NOW, f"Stopped now, asked by {job.wish_by}.")
    if outcome is not None:
        return _judge_outcome(job, outcome)
    return _judge_ending(job, ending)


def _judge_outcome(job: Job, outcome: Outcome) -> Verdict:
    match outcome.kind:
        case "interrupted":
            return _interruption(job, Cause.INTERRUPTED, "interrupted")
        case "cancelled":
            return Verdict(
                State.CANCELLED, Cause.ASKED, cut(outcome.error or "The task stopped itself.")
            )
        case "timed out":
            return _timed_out(job)
        case _:
            return Verdict(State.FAILED, outcome.cause, cut(outcome.error or "It failed."))


def _judge_ending(job: Job, ending: Ending) -> Verdict:
    match ending.why:
        case "lost":
            return _interruption(job, Cause.WORKER_LOST, "lost", ending.sentence)
        case "interrupt" | "shared":
            return _interruption(job, Cause.INTERRUPTED, "interrupted", ending.sentence)
        case "timeout":
            return _timed_out(job)
        case "not started":
            return Verdict(State.FAILED, Cause.NOT_STARTED, cut(ending.sentence))
        case "no room" | "aside":
            cause = Cause.NOT_STARTED if ending.why == "no room" else Cause.INTERRUPTED
            return Verdict(State.QUEUED, cause, cut(ending.sentence))
        case "wish" | "itself":
            return _judge_process(ending)


def _judge_process(ending: Ending) -> Verdict:
    if ending.sentence:
        return Verdict(State.FAILED, Cause.EXITED, cut(ending.sentence))
    if ending.out_of_memory:
        sentence = "The system ended it because memory ran out (signal 9, memory killer)."
        return Verdict(State.FAILED, Cause.OUT_OF_MEMORY, sentence)
    if ending.signal is not None:
        name = signal_name(ending.signal)
        sentence = f"Killed by signal {ending.signal} ({name}), which nobody asked for here."
        if ending.signal == signals.SIGKILL:
            sentence += " The memory killer sends it too."
        return Verdict(State.FAILED, Cause.SIGNALLED, sentence)
    if ending.exit_code:
        return Verdict(
            State.FAILED, Cause.EXITED, f"Its process exited with code {ending.exit_code}."
        )
    return Verdict(
        State.FAILED,
        Cause.EXITED,
        "Its process exited with code 0 without saying how the task ended.",
    )


def _interruption(job: Job, cause: Cause, word: str, sentence: str = "") -> Verdict:
    times = job.interruptions + 1
    if times >= job.options.max_interruptions:
        what = "lost its worker" if cause is Cause.WORKER_LOST else "was interrupted"
        error = (
            f"It {what} {times} times without finishing a step in between. "
            "Retry it when the cause is known."
        )
        return Verdict(State.FAILED, cause, error)
    error = sentence or f"The worker stopped; {word}, it resumes at its place."
    return Verdict(State.QUEUED, cause, cut(error), counts=True)


def _timed_out(job: Job) -> Verdict:
    limit_s = job.options.timeout_s
    known = "" if limit_s is None else f" of {limit_s:g} s"
    return Verdict(State.FAILED, Cause.TIMED_OUT, f"It ran longer than its limit{known}.")


def read_outcome(text: str | None) -> Outcome | None:
    """The stored outcome of a run, or ``None`` where it has said nothing yet."""
    if text is None:
        return None
    data = json.loads(text)
    return Outcome(data["kind"], data.get("result"), data.get("error"), Cause(data["cause"]))


def write_outcome(outcome: Outcome) -> str:
    return json.dumps(
        {
            "kind": outcome.kind,
            "result": outcome.result,
            "error": outcome.error,
            "cause": outcome.cause,
        }
    )


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9, ``signal 99`` for what has no name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def cut(text: str) -> str:
    """``text`` in at most ``TEXT_LIMIT`` characters."""
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
