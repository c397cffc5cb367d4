"""Whatever a person can type, set or catch is on its reference page."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import lineclear
from lineclear.cli.program import command
from lineclear.settings import Settings

ROOT = Path(__file__).parents[2]
INTERNAL = {"LINECLEAR_RUN", "LINECLEAR_LOADING"}


def page(name: str) -> str:
    return (ROOT / "docs/reference" / f"{name}.md").read_text()


def test_every_verb_is_on_the_page_and_no_other() -> None:
    verbs = {name for name, verb in command().commands.items() if not verb.hidden}
    listed = set(re.findall(r"^\| `([a-z]+)[ `]", page("command-line"), re.MULTILINE))
    assert listed == verbs


def test_every_setting_is_on_the_page() -> None:
    used = {f"LINECLEAR_{field.name.upper()}" for field in fields(Settings)}
    for file in ROOT.glob("src/**/*.py"):
        used |= set(re.findall(r"(?<![A-Z_])LINECLEAR_[A-Z]\w+", file.read_text()))
    assert [name for name in sorted(used - INTERNAL) if f"`{name}`" not in page("settings")] == []


def test_every_error_is_on_the_page() -> None:
    errors = [
        name
        for name in lineclear.__all__
        if isinstance(getattr(lineclear, name), type)
        and issubclass(getattr(lineclear, name), BaseException)
    ]
    assert [name for name in errors if f"`{name}`" not in page("errors")] == []


def test_every_exit_code_is_on_the_page() -> None:
    ground = (ROOT / "src/lineclear/cli/ground.py").read_text()
    codes = re.findall(r"= ([\d, ]+)$", ground, re.MULTILINE)
    used = {code for line in codes for code in line.split(", ")}
    assert used <= set(re.findall(r"^\| (\d+) \|", page("command-line"), re.MULTILINE))
