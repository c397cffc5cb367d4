"""The server's start, the first answer and the first paint, on a small queue and on one with 10,000
ended jobs and 1,000 that wait with 1 MB of arguments each: ``python bench/first_paint.py``."""

from __future__ import annotations

import json
import time
import urllib.request

from common import page, place, start_page

from lineclear import Queue
from lineclear.job import Ending, NewJob, Outcome
from lineclear.store import acts, runs

ENDED = 10_000
WAITING = 1_000
PAINTED = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return paint ? paint.startTime : 0;
}"""


def fill(queue: Queue) -> None:
    small = NewJob("sleeper", "many", '{"number":1}', "tasks:sleeper", title="an ended one")
    large = NewJob(
        "sleeper", "many", json.dumps({"data": "x" * 1_000_000}), "tasks:sleeper", title="waits"
    )
    for _ in range(ENDED // 100):
        with queue.store.write(durable=False) as tx:
            for _ in range(100):
                acts.submit(tx, small)
                job = runs.claim(tx, "many", "worker")
                assert job is not None
                runs.set_outcome(tx, job, Outcome("done"))
                runs.finish(tx, job, Ending(), by="worker")
    for _ in range(WAITING // 10):
        with queue.store.write(durable=False) as tx:
            for _ in range(10):
                acts.submit(tx, large)


def main() -> None:
    for what in ("a small queue", f"{ENDED:,} ended, {WAITING:,} waiting with 1 MB each"):
        with place() as (folder, queue):
            queue.submit("sleeper", {"number": 1}, title="the one that is seen")
            if what[0] != "a":
                fill(queue)
            begun = time.perf_counter()
            process, address = start_page(folder)
            first = size(f"{address}api/v1/state")
            started_ms = (time.perf_counter() - begun) * 1000
            sizes = {path: size(f"{address}api/v1/{path}") for path in ("state", "jobs")}
            process.terminate()
            process.communicate()
            paints = []
            with page(folder) as (opened, again):
                for _ in range(5):
                    opened.goto(again)
                    opened.get_by_text("the one that is seen").first.wait_for()
                    row_ms = opened.evaluate("performance.now()")
                    paints.append((opened.evaluate(PAINTED), row_ms))
        painted, rows = (sorted(times)[2] for times in zip(*paints, strict=True))
        print(f"{what}: server started to first answer ({first:,} bytes) {started_ms:.0f} ms")
        print(f"{what}: " + ", ".join(f"/{p} {n / 1000:.1f} kB" for p, n in sizes.items()))
        print(f"{what}: first paint {painted:.0f} ms, first row {rows:.0f} ms (median of 5)")


def size(url: str) -> int:
    with urllib.request.urlopen(url) as answer:
        return len(answer.read())


if __name__ == "__main__":
    main()
