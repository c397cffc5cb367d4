"""System calls of an idle page: ``python bench/idle_server.py [SECONDS]`` (strace)."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request

from common import FREE, place


def main(seconds: int) -> None:
    with place() as (_, queue):
        queue.check_store()
        command = [sys.executable, "-m", "lineclear.web", str(queue.database), "--bind", FREE]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            address = server.stdout.readline().split()[-1]
            with urllib.request.urlopen(f"{address}api/v1/state") as answer:
                answer.read()
            time.sleep(2)  # the connection's own end
            traced = subprocess.run(
                ["timeout", str(seconds), "strace", "-f", "-q", "-p", str(server.pid)],
                capture_output=True,
                text=True,
                check=False,
            )
            server.terminate()
    # A call that was under way when strace came, and still is, has only begun to be waited for.
    calls = [row for row in traced.stderr.splitlines() if " = " in row and "restart" not in row]
    print(f"idle page's server, {seconds} s: {len(calls)} system calls")
    for row in calls[:20]:
        print(f"  {row}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
