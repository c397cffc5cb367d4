"""The process a job runs in: ``python -m lineclear.worker.child --fd N --parent PID``.

Started by worker.own, one fresh process a job. It boots, says ``ready``, waits for ``run``, calls
the task on its main thread, says how it ended, waits until that is kept, and exits 0. It never
opens the store, and it never outlives its supervisor: the parent-death signal ends it, and so does
the end of the socket.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from lineclear import wire
from lineclear.worker.link import EXIT_NO_SUPERVISOR, SocketLink
from lineclear.worker.performing import ended_by, load, returned

if TYPE_CHECKING:
    from lineclear.context import Context
    from lineclear.job import Outcome

EXIT_LEASE_LOST = 75


class OwnLink(SocketLink):
    """Of a process that runs one job."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.run: wire.Run | None = None
        self.context: Context | None = None
        self.leaving = False
        self._early_stop: wire.Stop | None = None

    def wait_for_run(self) -> wire.Run:
        while self.run is None:
            self.pump()
        return self.run

    def attach(self, context: Context) -> None:
        """From now on stops go to ``context``; one that came earlier is handed on."""
        self.context = context
        if self._early_stop is not None:
            context.stop(self._early_stop)

    def forked(self) -> None:
        super().forked()
        if self.context is not None:
            self.context.forked()

    def told(self, message: wire.Run | wire.Stop) -> None:
        match message:
            case wire.Run():
                self.run = message
            case wire.Stop() if self.context is not None:
                self.context.stop(message)
            case wire.Stop():
                self._early_stop = message

    def supervisor_gone(self) -> None:
        if not self.leaving:
            super().supervisor_gone()


def main(argv: list[str]) -> int:
    descriptor, parent = (int(argv[argv.index(name) + 1]) for name in ("--fd", "--parent"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003  its only form
    tie_to(parent)
    reset_signals()
    link = OwnLink(descriptor)
    link.send(wire.Ready(os.getpid()))
    run = link.wait_for_run()

    from lineclear.clock import SystemClock
    from lineclear.context import Context
    from lineclear.held import keep_flushing

    context = Context(run, link, clock=SystemClock())
    link.attach(context)
    os.register_at_fork(after_in_child=link.forked)
    threading.Thread(target=link.keep_reading, name="lineclear-reader", daemon=True).start()
    threading.Thread(
        target=keep_flushing,
        args=(context.wake, context.flush),
        name="lineclear-moves",
        daemon=True,
    ).start()
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
        context.safe_point()
        task, arguments = load(run)
        first = (context,) if task.arguments.takes_context else ()
        return returned(task.function(*first, **arguments))
    except BaseException as error:  # noqa: BLE001  whatever a task raises is how it ended
        return ended_by(error, run, context)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # closed or replaced by the task, or its log is full: its end still counts


def tie_to(parent: int) -> None:
    """Die with the supervisor. Its death before the signal was set shows in another parent."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(EXIT_NO_SUPERVISOR)


def reset_signals() -> None:
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
