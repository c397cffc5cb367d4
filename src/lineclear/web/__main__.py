"""``python -m lineclear.web DATABASE [--bind HOST:PORT] ...``: a bare server."""

from __future__ import annotations

import argparse
import sys

from lineclear.errors import LineClearError
from lineclear.queue import Queue
from lineclear.tasks import load_app
from lineclear.web import DEFAULT_BIND, serving

EXIT_UNREACHABLE = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lineclear.web")
    parser.add_argument("database")
    parser.add_argument("--app", metavar="MODULE:QUEUE")
    parser.add_argument("--bind", default=DEFAULT_BIND)
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--base-path", default="")
    parser.add_argument("--trust-network", action="store_true")
    given = parser.parse_args()
    queue = Queue(given.database)
    try:
        queue.check_store()
        if given.app:
            queue.tasks = load_app(given.app).tasks
        serving.run(
            queue, bind=given.bind, hosts=given.host, base_path=given.base_path,
            trust_network=given.trust_network,
        )  # fmt: skip
    except LineClearError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_UNREACHABLE


if __name__ == "__main__":
    sys.exit(main())
