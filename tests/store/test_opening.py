"""Opening a database: what may not be used is refused with a sentence, and left as it was."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers import SOURCES
from tests.store.ground import add

from lineclear import Queue
from lineclear.errors import StoreError, StoreFull, StoreRefused
from lineclear.store import open_store
from lineclear.store import sqlite as module
from lineclear.store.migrate import newest
from lineclear.store.sqlite import SqliteStore

ROOT = os.geteuid() == 0


def refused(path: Path, words: str) -> None:
    """Refused with a sentence that has these words, and not a byte of the file changed."""
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreRefused, match=words):
        SqliteStore(path)
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_closed_store_can_be_checked(store: SqliteStore) -> None:
    store.close()
    assert store.check() == []


def test_e26_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    path.write_text("Call me Ishmael. " * 1000)
    refused(path, "is not a Line Clear database. It was left as it is")


def test_e26_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title)")
    connection.close()
    refused(path, "a database of another program. Name another file")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE songs")
        connection.execute("PRAGMA application_id = 77")
    connection.close()
    refused(path, "a database of another program")


def test_e26_a_newer_schema(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    store = SqliteStore(path)
    add(store)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {newest() + 1}")
    connection.close()
    refused(path, f"newer Line Clear .schema {newest() + 1}, this one knows {newest()}.")


def test_e26_case_h4_a_damaged_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    store = SqliteStore(path)
    for _ in range(200):
        add(store, args='"' + "x" * 500 + '"')
    store.close()
    whole = path.read_bytes()
    for offset, size in ((0, 4096), (100, 3000), (4096, len(whole) - 4096)):
        path.write_bytes(whole[:offset] + b"\xa5" * size + whole[offset + size :])
        damaged = path.read_bytes()
        with pytest.raises(StoreError, match=r"left as it (is|was)"):
            use(path)
        assert path.read_bytes() == damaged


def test_e26_a_damaged_last_page_harms_what_is_on_it_alone_and_the_check_says_so(
    tmp_path: Path,
) -> None:
    path = tmp_path / "q.db"
    store = SqliteStore(path)
    for _ in range(200):
        add(store, args='"' + "x" * 500 + '"')
    store.close()
    with path.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"\xa5" * 4096)
    opened = SqliteStore(path)
    assert opened.check() != []
    opened.close()


def test_e26_no_folder_and_no_file(tmp_path: Path) -> None:
    refused(tmp_path / "none" / "q.db", r"folder .* does not exist. Create it")
    with pytest.raises(StoreRefused, match=r"There is no database .*lineclear add"):
        open_store(tmp_path / "q.db", create=False)
    with pytest.raises(StoreRefused, match="There is no database"):
        Queue(tmp_path / "q.db", create=False).lanes()
    assert list(tmp_path.iterdir()) == []


def use(path: Path) -> None:
    opened = SqliteStore(path)
    try:
        add(opened)
    finally:
        opened.close()


@pytest.mark.skipif(not ROOT, reason="only root can run a child as another user")
@pytest.mark.parametrize("having", ["a database", "nothing"])
def test_e26_a_read_only_folder(tmp_path: Path, having: str) -> None:
    exists = having == "a database"
    folder = tmp_path / "shelf"
    folder.mkdir()
    if exists:
        store = SqliteStore(folder / "q.db")
        add(store)
        store.close()
    for each in [folder, *folder.glob("*"), tmp_path, *tmp_path.parents]:
        if each.stat().st_uid == os.geteuid() and str(each).startswith("/tmp/pytest"):
            each.chmod(0o755 if each.is_dir() else 0o644)
    code = """
import os, sys
from pathlib import Path
from lineclear.errors import StoreRefused
from lineclear.store import sqlite, acts
os.setgid(65534); os.setuid(65534)
try:
    store = sqlite.SqliteStore(Path(sys.argv[1]))
    with store.write() as tx:
        acts.pause(tx, "line", by="x", why="", until_ms=None, source="x")
except StoreRefused as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(folder / "q.db")]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "cannot be opened for writing" in answer.stdout, answer
    assert sorted(each.name for each in folder.iterdir()) == ["q.db"] * exists


def test_case_e4_a_network_file_system_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "network_file_system", lambda _: "nfs4")
    refused(tmp_path / "q.db", r"network file system \(nfs4\).*Put the database on a local disk")
    assert list(tmp_path.iterdir()) == []


def test_an_sqlite_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 0))
    refused(tmp_path / "q.db", "too old: 3.37 or newer")


def test_two_names_of_one_file_are_one_queue(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "q.db")
    one, two = SqliteStore(tmp_path / "q.db"), SqliteStore(tmp_path / "link.db")
    assert two.files == one.files
    assert add(two).id == 1 and add(one).id == 2
    one.close()
    two.close()


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; skipped where it may not be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if not ROOT or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def write_much(store: SqliteStore) -> None:
    with store.write() as tx:
        for number in range(300):
            tx.all("lane_add", lane=f"{number}" + "y" * 4_000)


def fill_up(store: SqliteStore, args: str) -> int:
    """How many jobs were acknowledged before the disk was full."""
    for stored in range(10_000):
        try:
            add(store, args=args)
        except StoreFull:
            return stored
    raise AssertionError("it was never full")


def test_e26_case_h7_a_full_disk_loses_nothing_acknowledged(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 300_000)
    store = SqliteStore(small_disk / "q.db")
    stored = fill_up(store, '"' + "x" * 4_000 + '"')
    assert stored > 10
    with pytest.raises(StoreFull, match=r"No space is left for .* free some space"):
        add(store, args='"' + "x" * 4_000 + '"')
    with pytest.raises(StoreFull):
        write_much(store)
    ballast.unlink()
    assert add(store).id > stored, "it goes on by itself once there is space"
    with store.read() as tx:
        assert len(tx.all("job_line", lane="line", limit=10_000)) == stored + 1
        assert [row["name"] for row in tx.all("lane_all")] == ["line"]
    assert store.check() == []
    store.close()


def test_e26_p21_a_full_database_without_root(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "q.db")
    connection = store._writer
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 60")
    stored = fill_up(store, '"' + "x" * 4_000 + '"')
    connection.execute("PRAGMA max_page_count = 100000")
    assert add(store).id > stored
    with store.read() as tx:
        assert len(tx.all("job_line", lane="line", limit=10_000)) == stored + 1
    store.close()
