"""The process a job runs in: ``python -m lineclear.worker.child --fd N --parent PID``.

Started by worker.process, one fresh process a job. It boots, says ``ready``, waits for ``run``,
calls the task on its main thread, says how it ended, waits until that is kept, and exits 0. It
never opens the store, and it never outlives its supervisor: the parent-death signal ends it, and so
does the end of the socket.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from lineclear import wire
from lineclear.errors import (
    BadInput,
    Interrupted,
    LeaseLost,
    LineClearError,
    Stopped,
    TaskLoadError,
)
from lineclear.job import TEXT_LIMIT, Cause, Outcome
from lineclear.worker.link import EXIT_NO_SUPERVISOR, SocketLink

if TYPE_CHECKING:
    from lineclear.context import Context

EXIT_LEASE_LOST = 75


def main(argv: list[str]) -> int:
    descriptor, parent = (int(argv[argv.index(name) + 1]) for name in ("--fd", "--parent"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003  its only form
    _tie_to(parent)
    _reset_signals()
    link = SocketLink(descriptor)
    link.send(wire.Ready(os.getpid()))
    run = link.wait_for_run()

    from lineclear.clock import SystemClock
    from lineclear.context import Context

    context = Context(run, link, clock=SystemClock())
    link.attach(context)
    os.register_at_fork(after_in_child=link.forked)
    threading.Thread(target=link.keep_reading, name="lineclear-reader", daemon=True).start()
    threading.Thread(target=context.keep_flushing, name="lineclear-moves", daemon=True).start()
    if run.memory_mb is not None:
        _limit_memory(run.memory_mb)

    outcome = perform(run, context)
    _flush_output()
    if outcome is None:
        return EXIT_LEASE_LOST
    if not link.is_open:
        return 0  # a forked copy that came all the way back
    context.flush()
    link.leaving = True
    answer = link.ask(wire.Ended(0, outcome))
    return EXIT_LEASE_LOST if answer.verdict == "lost" else 0


def perform(run: wire.Run, context: Context) -> Outcome | None:
    """Call the task and say how it ended; ``None`` where the lease is lost: nobody is to know."""
    try:
        return Outcome("done", result=_call(run, context))
    except LeaseLost:
        return None
    except Stopped as stopped:
        return _stopped(stopped, context)
    except BaseException as error:  # noqa: BLE001  whatever a task raises is how it ended
        _show(error)
        return _failed(error, run)


def _call(run: wire.Run, context: Context) -> str | None:
    from lineclear.arguments import json_text
    from lineclear.tasks import LOADING, load_task

    context.safe_point()
    os.environ[LOADING] = "1"
    try:
        task = load_task(run.app)
    finally:
        del os.environ[LOADING]
    try:
        arguments = task.bind(run.args)
    except BadInput as error:
        raise TaskLoadError(
            f"the arguments do not fit '{run.app}' as it is now: {error}"
        ) from error
    first = (context,) if task.arguments.takes_context else ()
    result = task.function(*first, **arguments)
    return None if result is None else json_text(result, field="result", what="the result")


def _stopped(stopped: Stopped, context: Context) -> Outcome:
    asked = context.stop_asked
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
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    sys.__excepthook__(type(error), error.with_traceback(trace), trace)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # closed or replaced by the task, or its log is full: its end still counts


def _tie_to(parent: int) -> None:
    """Die with the supervisor. Its death before the signal was set shows in another parent."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(EXIT_NO_SUPERVISOR)


def _reset_signals() -> None:
    # Not SIG_IGN: programs that the task starts would inherit it and could not be asked to end.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _limit_memory(megabytes: int) -> None:
    import resource

    limit = megabytes * 1024 * 1024
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
