"""What a safe point costs: ``python bench/safe_point.py``. Target: under a microsecond."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

from lineclear import wire
from lineclear.clock import SystemClock
from lineclear.context import Context
from lineclear.held import keep_flushing

ROUNDS, CALLS = 7, 1_000_000


class Nowhere:
    """A link that sends nothing, so that only the task's side is measured."""

    def send(self, message: wire.Moved, /) -> None:
        pass

    def ask(self, question: wire.Question, /) -> wire.Answer:
        raise NotImplementedError


def nanoseconds(body: Callable[[range], None]) -> float:
    calls = range(CALLS)
    begun = time.perf_counter_ns()
    body(calls)
    return (time.perf_counter_ns() - begun) / CALLS


def main() -> None:
    run = wire.Run(
        job=1,
        attempt=1,
        lane="",
        task="",
        app="",
        args="{}",
        key=None,
        title="",
        unit="",
        steps={},
        staging="",
        kept="",
        memory_mb=None,
        started_ms=0,
    )
    ctx = Context(run, Nowhere(), clock=SystemClock())
    threading.Thread(target=keep_flushing, args=(ctx.wake, ctx.flush), daemon=True).start()

    def empty(calls: range) -> None:
        for _ in calls:
            pass

    def plain(calls: range) -> None:
        for _ in calls:
            ctx.safe_point()

    def advancing(calls: range) -> None:
        for _ in calls:
            ctx.safe_point(advance=7)

    loop = statistics.median(nanoseconds(empty) for _ in range(ROUNDS))
    for name, body in (("safe_point()", plain), ("safe_point(advance=7)", advancing)):
        taken = statistics.median(nanoseconds(body) for _ in range(ROUNDS)) - loop
        print(f"{name:24} {taken:6.0f} ns   median of {ROUNDS} x {CALLS:,}, target < 1000")
    print("command: python bench/safe_point.py")


if __name__ == "__main__":
    main()
