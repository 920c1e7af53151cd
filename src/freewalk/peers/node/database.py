"""The SQLite file of a node: opened by one process at a time, and marked as ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from freewalk.errors import PeerError

#: What marks a file as ours: "fwlk".
APPLICATION = 0x66776C6B
VERSION = 2
#: The file, in the folder of a node's state.
FILE = "node.sqlite"

_TABLES = """
CREATE TABLE walks (number INTEGER PRIMARY KEY, run TEXT NOT NULL, walk INTEGER NOT NULL, UNIQUE (run, walk));
CREATE TABLE custody (walk INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE versions (walk INTEGER, place INTEGER, state BLOB NOT NULL, PRIMARY KEY (walk, place)) WITHOUT ROWID;
CREATE TABLE payloads (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, data BLOB) WITHOUT ROWID;
CREATE TABLE journal (
    number INTEGER PRIMARY KEY, time REAL NOT NULL, walk INTEGER NOT NULL, kind TEXT NOT NULL,
    generation INTEGER NOT NULL, issuer INTEGER NOT NULL, step INTEGER NOT NULL, hop INTEGER NOT NULL,
    payload BLOB, token BLOB, note TEXT NOT NULL, messages INTEGER NOT NULL, probes INTEGER NOT NULL,
    UNIQUE (walk, generation, issuer, step, hop, kind)
);
CREATE INDEX kept ON journal (payload) WHERE payload IS NOT NULL;
"""
#: What version 2 added. A line is chained to the one before it of its run; `clock` tells one boot from another.
_ADDED = """
ALTER TABLE journal ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN witness BLOB NOT NULL DEFAULT x'';
ALTER TABLE journal ADD COLUMN chain BLOB NOT NULL DEFAULT x'';
CREATE TABLE sent (run TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE forgotten (run TEXT PRIMARY KEY);
CREATE TABLE clock (boot TEXT NOT NULL, now REAL NOT NULL);
INSERT INTO clock VALUES ('', 0);
"""


def connect(path: Path, durable: bool) -> sqlite3.Connection:
    """Open or create the file; no other process can open it until this one closes it or ends.

    Raises
    ------
    PeerError
        If another process has it open, or it is broken, foreign or from a newer freewalk.
    """
    with told(path):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _begin(connection, path, durable)
        except BaseException:
            connection.close()
            raise
        return connection


def in_use(folder: Path) -> bool:
    """Whether a process has the store in a folder open."""
    path = folder / FILE
    if path.exists():
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=0, uri=True)) as connection:
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.DatabaseError as error:
                return "locked" in str(error)
    return False


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Report errors of SQLite or the disk."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise PeerError(f"{path}: another process has it open; stop that node, or choose another folder") from error
        raise PeerError(f"{path}: cannot be used ({error}); is the disk full, or the folder read-only?") from error
    except sqlite3.DatabaseError as error:
        raise PeerError(f"{path}: this is not the file of a node, or it is broken ({error})") from error
    except OSError as error:
        raise PeerError(f"{path.parent}: cannot be written ({error.strerror or error}); is the disk full?") from error


def sync(path: Path) -> None:
    """Flush a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _begin(connection: sqlite3.Connection, path: Path, durable: bool) -> None:
    # Held until the process ends, so that the write-ahead log needs neither shared memory nor a lock per transaction.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if (application != APPLICATION or version not in (1, VERSION)) and (tables or application or version):
        if application == APPLICATION:
            raise PeerError(f"{path}: its version is {version}, expected {VERSION}; it needs another freewalk")
        raise PeerError(f"{path}: this file belongs to another program, expected that of a node; choose another folder")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
    with transaction(connection):
        for statement in ("" if tables else _TABLES).split(";") + ("" if version == VERSION else _ADDED).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")  # a write in any case: the lock is held from now on


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction, undone if the block fails."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
