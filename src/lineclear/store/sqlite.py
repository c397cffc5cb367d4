"""SQLite: one file, no server. Connection, transaction, error codes; everything else is in the
statements.

Three rules hold here and nowhere else: every transaction that may write begins as a writer; no
process opens the database file but through SQLite (opening and closing it would drop the process's
locks); a durable commit is acknowledged only after the write-ahead log is on disk.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from lineclear.bell import Bell, Room
from lineclear.bell.unix import UnixBell
from lineclear.clock import Clock, SystemClock
from lineclear.errors import BadInput, StoreBusy, StoreError, StoreFull, StoreRefused, StoreUnsafe
from lineclear.files import Files, network_file_system
from lineclear.job import Job
from lineclear.store.base import Row, Tx
from lineclear.store.migrate import file_id, migrate, newest, refuse_another, refuse_strangers
from lineclear.store.rows import clean
from lineclear.store.statements import load_statements

T = TypeVar("T")

BUSY_S = 30.0
LOG_LIMIT = 64 * 1024 * 1024
OLDEST_SQLITE = (3, 37)  # STRICT tables

_STATEMENTS = load_statements({"lock": ""})
_abandoned: list[sqlite3.Connection] = []
_stores: WeakSet[SqliteStore] = WeakSet()


class SqliteTx:
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self.now_ms = clock.now_ms()
        self.tick_ms = clock.tick_ms()
        self.rooms: set[Room] = set()
        self.committed: Callable[[], None] = lambda: None
        self._savepoints = 0

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        return self._run(_STATEMENTS[name], parameters).fetchall()

    def update_job(self, job: Job, changes: Mapping[str, Any]) -> bool:
        columns = ", ".join(f"{name} = :{name}" for name in changes)
        text = (
            f"UPDATE job SET {columns}, version = version + 1 "
            "WHERE id = :the_id AND version = :the_version"
        )
        return (
            self._run(text, {**changes, "the_id": job.id, "the_version": job.version}).rowcount == 1
        )

    def update_jobs(self, changes: Mapping[str, Any], *, after: int) -> int:
        columns = ", ".join(f"{name} = :{name}" for name in changes)
        text = (
            f"UPDATE job SET {columns}, version = version + 1, last_event = event.seq FROM event "
            "WHERE event.seq > :the_seq AND event.job = job.id"
        )
        return self._run(text, {**changes, "the_seq": after}).rowcount

    def ring(self, *rooms: Room) -> None:
        self.rooms.update(rooms)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._savepoints += 1
        name = f"s{self._savepoints}"
        self._connection.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            # A full disk may have rolled the whole transaction back already.
            if self._connection.in_transaction:
                self._connection.execute(f"ROLLBACK TO {name}")
                self._connection.execute(f"RELEASE {name}")
            raise
        self._connection.execute(f"RELEASE {name}")

    def _run(self, text: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
        cleaned = {
            name: clean(value) if isinstance(value, str) else value
            for name, value in parameters.items()
        }
        try:
            return self._connection.execute(text, cleaned)
        except OverflowError:
            name = next(n for n, v in cleaned.items() if isinstance(v, int) and abs(v) >= 2**63)
            raise BadInput(name, f"{name} is too large a number: {cleaned[name]}.") from None


class SqliteStore:
    """A database in one file. Usable from several threads; a forked copy opens its own
    connections.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None, create: bool = True) -> None:
        self.path = path.resolve()  # two names of one file share one folder and one bell
        self.clock = clock or SystemClock()
        self.files = Files(self.path)
        self._lock = threading.RLock()
        self._read_lock = threading.RLock()  # a look never waits behind a write
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._log_file: tuple[int, int] | None = None
        self._broken = ""
        self._file: tuple[int, int] | None = None
        _stores.add(self)
        self._check_place(create=create)
        try:
            with self._errors():
                self._open()
            self._file = file_id(self.path)
        except BaseException:
            self.close()
            raise
        self.bell: Bell = UnixBell(self.path)

    def _check_place(self, *, create: bool) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreRefused(
                f"SQLite {sqlite3.sqlite_version} is too old: 3.37 or newer is needed."
            )
        if kind := network_file_system(self.path.parent):
            raise StoreRefused(
                f"{self.path} is on a network file system ({kind}), where SQLite's locks do not "
                "hold. Put the database on a local disk."
            )
        try:
            folder, file = self.path.parent.is_dir(), self.path.exists()
        except PermissionError as error:
            raise StoreRefused(
                f"{self.path} cannot be reached ({error.strerror}). Check its folders' rights."
            ) from error
        if not folder:
            raise StoreRefused(
                f"The folder {self.path.parent} does not exist. Create it, or name another file."
            )
        if not create and not file:
            raise StoreRefused(
                f"There is no database {self.path}. `lineclear add` or `lineclear worker` makes "
                "one."
            )

    def _open(self) -> None:
        self._writer = connection = self._connect()
        number = _retry(lambda: refuse_strangers(connection, str(self.path)))
        mode = _retry(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StoreRefused(
                f"{self.path} cannot have a write-ahead log where it is. Put it on a local disk."
            )
        if number < newest():
            self._begin(connection)
            try:
                migrate(connection)
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            self._sync_log()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        # These read the file, so that they too wait for whoever recovers or removes its log.
        _retry(lambda: connection.execute("PRAGMA synchronous = NORMAL"))
        _retry(lambda: connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}"))
        return connection

    def before_fork(self) -> None:
        """Close what a forked child must not have: in it SQLite would take its parent's locks for
        its own. Waits for the transactions of other threads; this thread's own stays open.
        """
        self._lock.acquire()
        self._read_lock.acquire()
        if not any(c is not None and c.in_transaction for c in (self._writer, self._reader)):
            self.close()

    def after_fork(self) -> None:
        self._read_lock.release()
        self._lock.release()

    def forget(self) -> None:
        """In a forked child: never use or close what the parent still has open."""
        _abandoned.extend(c for c in (self._writer, self._reader) if c is not None)
        self._lock, self._read_lock = threading.RLock(), threading.RLock()
        self._writer = self._reader = self._log_file = None

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Tx]:
        with self._lock, self._errors():
            connection = self._writer = self._writer or self._connect()
            self._begin(connection)
            try:
                tx = SqliteTx(connection, self.clock)
                yield tx
                self._commit(connection, tx, durable=durable)
            except BaseException:
                self._roll_back(connection)
                raise

    def _commit(self, connection: sqlite3.Connection, tx: SqliteTx, *, durable: bool) -> None:
        """Commit, put on disk, ring. A rope that is taken before rings too where this dies."""
        rope = self.bell.take(tx.rooms)
        try:
            connection.execute("COMMIT")
            rope.after_commit()
            tx.committed()
            if durable:
                self._sync_log()
        finally:
            # Also after a failure: it may have been committed, and a ring too many is harmless.
            rope.let_go()

    @contextmanager
    def read(self) -> Iterator[Tx]:
        with self._read_lock, self._errors():
            connection = self._reader = self._reader or self._connect()
            connection.execute("BEGIN")
            try:
                # The snapshot is taken here, where somebody in the way can be waited for.
                _retry(lambda: connection.execute("SELECT 1 FROM lane LIMIT 1").fetchone())
                yield SqliteTx(connection, self.clock)
            finally:
                self._roll_back(connection)

    def sync(self) -> None:
        """Put on disk what other processes have committed too: for answers that rest on
        their rows.
        """
        with self._lock, self._errors():
            self._sync_log()

    def is_trouble(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.Error) and _code(error) in TROUBLE_CODES

    def check(self) -> list[str]:
        with self._lock:
            try:
                connection = self._writer = self._writer or self._connect()
                rows = connection.execute("PRAGMA quick_check(20)").fetchall()
            except sqlite3.DatabaseError as error:
                return [str(_sentence(error, self.path))]
        return [row[0] for row in rows if row[0] != "ok"]

    def log_bytes(self) -> int:
        try:
            return Path(f"{self.path}-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        with self._lock, self._read_lock:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None
            if self._log_file is not None:
                os.close(self._log_file[0])
                self._log_file = None

    def _begin(self, connection: sqlite3.Connection) -> None:
        if self._broken:
            raise StoreUnsafe(self._broken)
        refuse_another(self.path, self._file)
        _retry(lambda: connection.execute("BEGIN IMMEDIATE"))

    def _sync_log(self) -> None:
        """One fdatasync of the write-ahead log. After a failed one nothing is acknowledged any
        more.
        """
        if self._broken:
            raise StoreUnsafe(self._broken)
        path = f"{self.path}-wal"
        try:
            inode = Path(path).stat().st_ino
            if self._log_file is None or self._log_file[1] != inode:
                if self._log_file is not None:
                    os.close(self._log_file[0])
                    self._log_file = None
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                self._log_file = (descriptor, inode)
            _fdatasync(self._log_file[0])
        except FileNotFoundError:
            return  # removed by the last process to close it: the database itself is on disk
        except OSError as error:
            self._broken = (
                f"The disk did not confirm a write ({error.strerror}). Check the disk, then start "
                "again."
            )
            raise StoreUnsafe(self._broken) from error

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _sentence(error, self.path) from error


BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
TROUBLE_CODES = (*BUSY_CODES, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def _retry(attempt: Callable[[], T]) -> T:
    """Try again every 1 to 2 ms while another process is in the way: fairer than SQLite's own
    growing waits.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if _code(error) not in BUSY_CODES or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.002))  # noqa: S311  jitter, not a secret


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _sentence(error: sqlite3.Error, path: Path) -> StoreError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"{path} stayed locked by another process for {BUSY_S:.0f} s. Nothing was "
                "changed; try again."
            )
        case sqlite3.SQLITE_FULL:
            return StoreFull(
                f"No space is left for {path}. Nothing was changed; free some space and try again."
            )
        case sqlite3.SQLITE_NOTADB:
            return StoreRefused(
                f"{path} is not a Line Clear database. It was left as it is; name another file."
            )
        case sqlite3.SQLITE_CORRUPT:
            return StoreRefused(
                f"{path} is damaged. It was left as it is: copy it aside with its -wal file, then "
                f"`sqlite3 {path.name} .recover` saves what can be read."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreRefused(
                f"{path} cannot be opened for writing ({error}). Check the rights of the file and "
                "its folder."
            )
        case _:
            return StoreError(f"{path} could not be used: {error}. Nothing was changed.")


def _fdatasync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)


_forking: list[SqliteStore] = []


def _before_fork() -> None:
    _forking[:] = sorted(_stores, key=id)
    for store in _forking:
        store.before_fork()


def _after_fork() -> None:
    for store in _forking:
        store.after_fork()
    _forking.clear()


def _in_child() -> None:
    for store in _forking:
        store.forget()
    _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
