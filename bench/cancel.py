"""From asking a job to stop to its safe point raising: ``python bench/cancel.py [TIMES]``."""

from __future__ import annotations

import sys
import time

from common import place, summary, until, worker

from lineclear import Queue


def main(times: int) -> None:
    with place() as (folder, queue), worker(folder):
        waits = [once(queue) for _ in range(times)]
    print(f"cancel asked to safe point raising: {summary(waits)}")


def once(queue: Queue) -> float:
    job = queue.submit("points")
    until(lambda: queue.get(job.id).moves > 0, "the job reaches its safe points")
    asked = time.monotonic()
    queue.cancel(job.id)
    queue.wait(job.id, timeout_s=30)
    rows = queue.files.log(job.id, 1).read_text().splitlines()
    raised = next(row for row in rows if "stopped at" in row)
    return (float(raised.rsplit(" ", 1)[1]) - asked) * 1000


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
