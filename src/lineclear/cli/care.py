"""The verbs that care for the installation: ``doctor`` and ``completion``."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from lineclear.cli import table
from lineclear.cli.ground import FAILED, Ended, ground, say
from lineclear.figures import printable

TONES = {"ok": "ok", "warn": "warn", "bad": "bad"}


def doctor(ctx: typer.Context) -> None:
    """Check database, folder, workers, disk and clock; exit 1 if something is bad."""
    from lineclear.doctor import examine

    at = ground(ctx)
    findings = examine(at.queue, app=at.app)
    for found in findings:
        mark = table.coloured(f"{found.verdict:4}", TONES[found.verdict], color=at.color)
        say(f"{mark}  {printable(found.sentence)}")
    if any(found.verdict == "bad" for found in findings):
        raise Ended(FAILED)


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish", "powershell"], typer.Argument()],
) -> None:
    """Print the shell's completion script: eval "$(lineclear completion bash)"."""
    from lineclear.cli.program import COMPLETING, command

    os.environ[COMPLETING] = f"source_{shell}"
    command()(args=[], prog_name="lineclear")
