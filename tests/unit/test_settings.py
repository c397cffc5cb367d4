"""A worker's times: from the environment, checked, with sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineclear.errors import BadInput
from lineclear.settings import Settings, database_path


def test_they_come_from_the_environment_in_seconds() -> None:
    assert Settings.from_environment({}) == Settings(10, 60, 60, 10)
    given = {"LINECLEAR_BEAT_S": "0.5", "LINECLEAR_LEASE_S": "3", "LINECLEAR_KILL_S": "0"}
    assert Settings.from_environment(given) == Settings(beat_s=0.5, lease_s=3, kill_s=0)


@pytest.mark.parametrize(
    ("variable", "text", "field"),
    [
        ("LINECLEAR_BEAT_S", "soon", "LINECLEAR_BEAT_S"),
        ("LINECLEAR_BEAT_S", "0", "beat_s"),
        ("LINECLEAR_BEAT_S", "nan", "beat_s"),
        ("LINECLEAR_BEAT_S", "inf", "lease_s"),
        ("LINECLEAR_BEAT_S", "21", "lease_s"),
        ("LINECLEAR_LEASE_S", "-1", "lease_s"),
        ("LINECLEAR_LEASE_S", "nan", "lease_s"),
        ("LINECLEAR_GRACE_S", "-1", "grace_s"),
        ("LINECLEAR_GRACE_S", "nan", "grace_s"),
        ("LINECLEAR_KILL_S", "-0.1", "kill_s"),
    ],
)
def test_e28_what_does_not_fit_is_named(variable: str, text: str, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        Settings.from_environment({variable: text})
    assert caught.value.field == field


def test_the_database_is_as_named_or_from_the_environment_or_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINECLEAR_DATABASE", raising=False)
    assert database_path() == tmp_path / "lineclear.db"
    monkeypatch.setenv("LINECLEAR_DATABASE", "other.db")
    assert database_path() == tmp_path / "other.db"
    assert database_path("named.db") == tmp_path / "named.db"
