"""From the second press on Stop, in a real browser, to the job's code raising: through browser,
server, bell and child. ``python bench/press.py [TIMES]``."""

from __future__ import annotations

import sys
import time

from common import behind, page, place, summary, until, worker
from playwright.sync_api import Page

from lineclear import Queue

ARMED_S = 0.7  # a second press before 0.6 s is a double tap and sends nothing


def main(times: int) -> None:
    with place() as (folder, queue), worker(folder), page(folder) as (opened, _):
        opened.evaluate(
            "addEventListener('click', press => "
            "window.pressed = performance.timeOrigin + press.timeStamp, true)"
        )
        waits = [once(queue, opened, number) for number in range(times)]
    print(f"Stop pressed in the browser to safe point raising: {summary(waits)}")


def once(queue: Queue, opened: Page, number: int) -> float:
    title = f"points {number}"
    job = queue.submit("points", title=title)
    until(lambda: queue.get(job.id).moves > 0, "the job reaches its safe points")
    opened.get_by_role("button", name=f"Stop {title}", exact=True).click()
    again = opened.get_by_role("button", name=f"Press again to stop {title}", exact=True)
    again.wait_for()
    time.sleep(ARMED_S)
    again.click()
    queue.wait(job.id, timeout_s=30)
    pressed: float = opened.evaluate("window.pressed") / 1000 + behind(opened)
    rows = queue.files.log(job.id, 1).read_text().splitlines()
    raised = next(row for row in rows if "stopped at" in row)
    return (float(raised.rsplit(" ", 1)[1]) - pressed) * 1000


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
