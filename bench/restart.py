"""From ``kill -9`` of the worker to its job running again: ``python bench/restart.py [TIMES]``."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from common import place, start_worker, summary, until

from lineclear import Queue


def runs(queue: Queue, job_id: int, attempt: int) -> bool:
    job = queue.get(job_id)
    return job.attempt == attempt and job.state == "running" and job.moves > 0


def main(times: int) -> None:
    with place() as (folder, queue):
        waits = [once(folder, queue) for _ in range(times)]
    print(f"kill -9 of the worker to the job running again: {summary(waits)}")


def once(folder: Path, queue: Queue) -> float:
    job = queue.submit("points", {"seconds": 3600.0})
    first = start_worker(folder)
    until(lambda: runs(queue, job.id, 1), "the job runs")
    killed = time.monotonic()
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = start_worker(folder)
    until(lambda: runs(queue, job.id, 2), "the job runs again")
    taken_ms = (time.monotonic() - killed) * 1000
    queue.kill(job.id)
    queue.wait(job.id)
    second.terminate()
    second.wait()
    return taken_ms


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
