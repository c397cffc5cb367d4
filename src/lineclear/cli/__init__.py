"""The command line: the same verbs and words as the page. ``lineclear.cli:main`` is the program.

Everything is imported late: ``lineclear status`` has to answer at once. It must never end a job of
its own accord: leaving a command that waits leaves the job alone.
"""

from __future__ import annotations

import os
import sys

from lineclear.errors import LineClearError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; answers its exit code. Data goes to stdout, everything else to stderr."""
    from lineclear.cli.ground import FAILED, NOT_ALLOWED, code_of, plain_ground

    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A title may hold what this terminal's encoding has no sign for.
            stream.reconfigure(errors="backslashreplace")
    try:
        if given in ([], ["status"], ["ls"]) and "_LINECLEAR_COMPLETE" not in os.environ:
            # The look most often taken needs no parser, whose import takes longer than the answer.
            from lineclear.cli.looks import overview

            overview(plain_ground())
            return 0
        from lineclear.cli.program import command

        command(given)(args=given, prog_name="lineclear")
    except LineClearError as error:
        from lineclear.figures import printable

        if str(error):
            sys.stderr.write(f"{printable(str(error))}\n")
        return code_of(error)
    except PermissionError as error:
        sys.stderr.write(f"Not allowed: {error}. Ask as the user who owns the database.\n")
        return NOT_ALLOWED
    except BrokenPipeError:
        # Whoever read has seen enough; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return 0
