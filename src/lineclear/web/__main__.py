"""``python -m lineclear.web DATABASE [--bind HOST:PORT] ...``: a bare server."""

from __future__ import annotations

import argparse
import sys

from lineclear.queue import Queue
from lineclear.tasks import load_app
from lineclear.web import serving


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lineclear.web")
    parser.add_argument("database")
    parser.add_argument("--bind", default="127.0.0.1:8765")
    parser.add_argument("--app")
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--trust-network", action="store_true")
    parser.add_argument("--base-path", default="")
    given = parser.parse_args()
    queue = Queue(given.database)
    if given.app:
        queue.tasks = load_app(given.app).tasks
    bound = serving.bind(given.bind)
    host, port = bound.getsockname()[:2]
    sys.stdout.write(f"Line Clear is at http://{host}:{port}/\n")
    sys.stdout.flush()
    return serving.serve(queue, bound, hosts=given.host, trust_network=given.trust_network)


if __name__ == "__main__":
    sys.exit(main())
