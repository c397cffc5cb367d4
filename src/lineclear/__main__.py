"""``python -m lineclear``: the command line."""

import sys

from lineclear.cli import main

if __name__ == "__main__":
    sys.exit(main())
