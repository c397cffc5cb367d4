"""Resident memory of the supervisor with ten children: ``python bench/memory.py``."""

from __future__ import annotations

from pathlib import Path

from common import place, until, worker


def resident_mb(pid: int) -> dict[str, float]:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(row.split(":", 1) for row in rows if ":" in row)
    return {name: int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}


def main() -> None:
    with place() as (folder, queue):
        for number in range(10):
            queue.submit("sleeper", {"number": number})
        queue.lane("many").set_concurrency(10)
        with worker(folder) as process:
            until(lambda: sum(job.moves > 0 for job in queue.running()) == 10, "ten run")
            now = resident_mb(process.pid)
    resident, most = now["VmRSS"], now["VmHWM"]
    print(f"supervisor with 10 children: {resident:.1f} MB resident, {most:.1f} MB at most")


if __name__ == "__main__":
    main()
