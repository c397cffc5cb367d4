"""What a job's process does with its task: load it, bind its arguments, say how it ended.

Shared by child.py, which runs one task, and host.py, which runs many at once.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from lineclear.errors import (
    BadInput,
    Interrupted,
    LeaseLost,
    LineClearError,
    Stopped,
    TaskLoadError,
)
from lineclear.job import TEXT_LIMIT, Cause, Outcome

if TYPE_CHECKING:
    from lineclear import wire
    from lineclear.held import Held
    from lineclear.tasks import Task


def load(run: wire.Run, *, again: bool = False) -> tuple[Task, dict[str, Any]]:
    """The task of a run and its arguments. ``again``: its application is loaded already, and jobs
    of it may submit others meanwhile. Raises ``TaskLoadError``.
    """
    from lineclear.tasks import LOADING, load_task

    if not again:
        os.environ[LOADING] = "1"
    try:
        task = load_task(run.app)
    finally:
        os.environ.pop(LOADING, None)
    try:
        return task, task.bind(run.args)
    except BadInput as error:
        raise TaskLoadError(
            f"the arguments do not fit '{run.app}' as it is now: {error}"
        ) from error


def returned(result: object) -> Outcome:
    """Raises ``BadInput`` for a result that cannot be stored."""
    from lineclear.arguments import json_text

    if result is None:
        return Outcome("done")
    return Outcome("done", result=json_text(result, field="result", what="the result"))


def ended_by(error: BaseException, run: wire.Run, context: Held | None) -> Outcome | None:
    """How a task ended that raised; ``None`` where the lease is lost: nobody is to know.

    ``context`` is missing where the task could not be loaded.
    """
    match error:
        case LeaseLost():
            return None
        case Stopped():
            return _stopped(error, context)
        case _:
            _show(error)
            return _failed(error, run)


def _stopped(stopped: Stopped, context: Held | None) -> Outcome:
    asked = context.stop_asked if context is not None else None
    if asked is not None and asked.why == "timeout":
        return Outcome("timed out", error=_sentence(stopped), cause=Cause.TIMED_OUT)
    if isinstance(stopped, Interrupted):
        return Outcome("interrupted", error=_sentence(stopped), cause=Cause.INTERRUPTED)
    return Outcome("cancelled", error=_sentence(stopped), cause=Cause.ASKED)


def _failed(error: BaseException, run: wire.Run) -> Outcome:
    cause, sentence = Cause.RAISED, _sentence(error)
    match error:
        case TaskLoadError():
            cause = Cause.NOT_STARTED
        case MemoryError():
            cause = Cause.OUT_OF_MEMORY
            limit = f" (its limit is {run.memory_mb} MB)" if run.memory_mb is not None else ""
            sentence = f"the task ran out of memory{limit}"
        case SystemExit():
            cause = Cause.EXITED
            code = "" if error.code is None else repr(error.code)
            sentence = f"the task called sys.exit({code}); a task ends by returning or raising"
    return Outcome("failed", error=sentence[:TEXT_LIMIT], cause=cause)


def _sentence(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a task's own exception may be broken too
        text = "(its text cannot be shown)"
    if isinstance(error, LineClearError | Stopped):
        return (text or kind)[:TEXT_LIMIT]
    return f"{kind}: {text}"[:TEXT_LIMIT] if text else kind


def _show(error: BaseException) -> None:
    """The whole traceback into the job's log, from the task's own frames on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    sys.__excepthook__(type(error), error.with_traceback(trace), trace)
