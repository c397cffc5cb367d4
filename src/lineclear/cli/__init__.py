"""The command line: the same verbs and words as the page. ``lineclear.cli:main`` is the program.

Everything is imported late: ``lineclear status`` has to answer at once. It must never end a job of
its own accord: leaving a command that waits leaves the job alone.
"""

from __future__ import annotations

import sys

from lineclear.errors import LineClearError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; answers its exit code. Data goes to stdout, everything else to stderr."""
    from lineclear.cli.ground import code_of
    from lineclear.cli.program import command

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A title may hold what this terminal's encoding has no sign for.
            stream.reconfigure(errors="backslashreplace")
    try:
        command()(args=arguments, prog_name="lineclear")
    except LineClearError as error:
        from lineclear.figures import printable

        if str(error):
            sys.stderr.write(f"{printable(str(error))}\n")
        return code_of(error)
    return 0
