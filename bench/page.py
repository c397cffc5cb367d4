"""What the live stream takes: ``python bench/page.py [TIMES]``.

From a change in the database to its event at a reader, and what 200 running jobs that report ten
times a second cost the server. ``bench/row.py`` goes on into a browser.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from common import place, summary, until

from lineclear import Queue
from lineclear.store import runs
from lineclear.store.base import job_of

SERVE = """
import sys
from pathlib import Path
from lineclear import Queue
from lineclear.web import serving
serving.run(Queue(Path(sys.argv[1])), bind="127.0.0.1:0")
"""
RUNS, SECONDS = 200, 10


class Reader:
    """One stream, on a socket of its own: what comes, when."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        assert where.hostname and where.port
        self.heard: list[tuple[float, str, dict[str, object]]] = []
        self.octets = 0
        self._socket = socket.create_connection((where.hostname, where.port))
        self._socket.sendall(
            f"GET /api/v1/stream?marks=1 HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode()
        )
        threading.Thread(target=self._read, daemon=True).start()
        until(lambda: bool(self.of("snapshot")), "the first state")

    def of(self, kind: str) -> list[tuple[float, str, dict[str, object]]]:
        return [each for each in self.heard if each[1] == kind]

    def busy(self) -> bool:
        """Whether something came within the last half second."""
        return bool(self.heard) and time.monotonic() - self.heard[-1][0] < 0.5

    def _read(self) -> None:
        rest, kind = b"", ""
        while chunk := self._socket.recv(1 << 16):
            now = time.monotonic()
            self.octets += len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"event: "):
                    kind = line[7:].decode()
                elif line.startswith(b"data: ") and line.endswith(b"}"):
                    self.heard.append((now, kind, json.loads(line[6:])))


@contextmanager
def served(queue: Queue) -> Iterator[tuple[int, str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(queue.database)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield process.pid, next(word for word in line.split() if word.startswith("http"))
    finally:
        process.terminate()
        process.wait()


def busy_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def latency(queue: Queue, reader: Reader, times: int) -> list[float]:
    """From a submission's answer to its row at the reader; what came before counts as nothing."""
    waits = []
    for number in range(times):
        job = queue.submit("sleeper", {"number": number}, first=True)
        written = time.monotonic()

        def there(job_id: int = job.id) -> bool:
            return any(data.get("id") == job_id for _, _, data in reader.of("job")[-5:])

        until(there, "its event")
        heard = next(at for at, _, data in reader.of("job") if data.get("id") == job.id)
        waits.append(max(0.0, heard - written) * 1000)
        queue.remove(job.id)
        reader.heard.clear()
        time.sleep(0.06)
    return waits


def opened(queue: Queue) -> Queue:
    queue.check_store()
    return queue


def running(queue: Queue) -> list[int]:
    """Jobs that run as far as the store knows."""
    queue.submit("sleeper", {"number": 0})
    queue.lane("many").set_concurrency(RUNS)
    ids = [queue.submit("sleeper", {"number": number}).id for number in range(RUNS)]
    with queue.store.write() as tx:
        for job_id in ids:
            run = {
                "state": "running",
                "slot": job_id,
                "lease": lease(job_id),
                "attempt": 1,
                "started_ms": tx.now_ms,
                "beat_tick": tx.tick_ms,
                "moved_tick": tx.tick_ms,
                "start_tick": tx.tick_ms,
                "total": 1000.0,
            }
            tx.update_job(job_of(tx, job_id), run)
        tx.ring("watch")
    return ids


def lease(job_id: int) -> str:
    return f"{job_id:032x}"


def reporting(queue: Queue, ids: list[int], seconds: float) -> int:
    """Every job reports ten times a second, as one worker's beat; answers how many beats."""
    begun, turn = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        turn += 1
        with queue.store.write(durable=False) as tx:
            tick, done = tx.tick_ms, float(turn)
            beats = [
                runs.Beat(job_id, lease(job_id), moved=1, moves=1, moved_tick=tick, done=done)
                for job_id in ids
            ]
            runs.beat(tx, beats)
        time.sleep(max(0.0, begun + turn * 0.1 - time.monotonic()))
    return turn


def main(times: int) -> None:
    with place() as (_, queue), served(opened(queue)) as (pid, url):
        reader = Reader(url)
        print(f"change on disk to its event at a reader: {summary(latency(queue, reader, times))}")
        for job in queue.waiting():
            queue.remove(job.id)
        ids = running(queue)
        until(lambda: not reader.busy(), "the rows of all that run")
        reader.heard.clear()
        octets, before = reader.octets, busy_s(pid)
        beats = reporting(queue, ids, SECONDS)
        cpu = (busy_s(pid) - before) / SECONDS
        kinds = Counter(kind for _, kind, _ in reader.heard)
        told = ", ".join(f"{number / SECONDS:.0f} {kind}" for kind, number in kinds.items())
        print(
            f"{RUNS} running, {beats / SECONDS:.0f} beats a second: server {cpu:.0%} of a core, "
            f"{told} events and {(reader.octets - octets) / SECONDS / 1000:.0f} kB a second"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
