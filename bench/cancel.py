"""From asking a running job to stop until its safe point raises: ``python bench/cancel.py [TIMES]``."""

from __future__ import annotations

import sys
import time

from common import place, summary, until, worker


def main(times: int) -> None:
    waits = []
    with place() as (folder, queue), worker(folder):
        for _ in range(times):
            job = queue.submit("points")
            log = queue.files.log(job.id, 1)
            until(lambda: queue.get(job.id).moves > 0, "the job reaches its safe points")
            asked = time.monotonic()
            queue.cancel(job.id)
            queue.wait(job.id, timeout_s=30)
            line = next(text for text in log.read_text().splitlines() if "stopped at" in text)
            waits.append((float(line.rsplit(" ", 1)[1]) - asked) * 1000)
    print(f"cancel asked to safe point raising: {summary(waits)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
