"""``python -m lineclear.worker DATABASE [LANE]...``: a bare worker."""

from __future__ import annotations

import sys
from pathlib import Path

from lineclear.errors import LineClearError
from lineclear.worker.supervisor import run_worker

EXIT_UNREACHABLE = 3


def main(database: str, *lanes: str) -> int:
    try:
        return run_worker(Path(database), lanes=lanes or None)
    except LineClearError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_UNREACHABLE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
