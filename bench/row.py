"""From a change being on disk to its row in a real browser's page: ``python bench/row.py
[TIMES]``."""

from __future__ import annotations

import sys
import time

from common import behind, page, place, summary, until

SEE = """title => {
  window.seen = 0;
  const look = () => {
    if (document.body.textContent.includes(title)) {
      window.seen = performance.timeOrigin + performance.now();
      watch.disconnect();
    }
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, {childList: true, subtree: true, characterData: true});
}"""


def main(times: int) -> None:
    waits = []
    with place() as (folder, queue):
        queue.submit("sleeper", {"number": 0}, title="the first row")
        with page(folder) as (opened, _):
            opened.get_by_text("the first row").first.wait_for()
            for number in range(times):
                title = f"row {number} of {times}"
                opened.evaluate(SEE, title)
                job = queue.submit("sleeper", {"number": number}, title=title, first=True)
                written = time.monotonic()
                until(lambda: opened.evaluate("window.seen") > 0, "the row is there")
                seen = opened.evaluate("window.seen") / 1000 + behind(opened)
                waits.append((seen - written) * 1000)
                queue.remove(job.id)
    print(f"change on disk to its row on the page: {summary(waits)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
