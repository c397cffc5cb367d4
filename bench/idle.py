"""System calls of an idle worker and keeper: ``python bench/idle.py [SECONDS]`` (strace)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from common import place, until, worker


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def main(seconds: int) -> None:
    with place() as (folder, queue), worker(folder) as process:
        job = queue.submit("points", {"seconds": 0.01})
        queue.wait(job.id)
        until(
            lambda: len(family(process.pid)) == 2, "the run's process is gone, the keeper is left"
        )
        time.sleep(2)  # the second look after the last ring
        pids = [word for pid in family(process.pid) for word in ("-p", str(pid))]
        traced = subprocess.run(
            ["timeout", str(seconds), "strace", "-f", "-q", *pids],
            capture_output=True,
            text=True,
            check=False,
        )
        # A call that was under way when strace came, and still is, has only begun to be waited for.
        calls = [row for row in traced.stderr.splitlines() if " = " in row and "restart" not in row]
    print(f"idle worker and keeper, {seconds} s: {len(calls)} system calls")
    for row in calls[:20]:
        print(f"  {row}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
