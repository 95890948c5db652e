"""Each kind of SQLite's failures has a sentence with a remedy, and none contains a statement or its parameters."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from bot.store.dialects.sqlite_sql import sqlite_failure

PATH = Path("/data/roomtone.db")


def sqlite_error(name: str, message: str = "trouble") -> sqlite3.OperationalError:
    """Return an error as SQLite's driver raises it."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("SQLITE_FULL", "full"),
        ("SQLITE_READONLY_DBMOVED", "written"),
        ("SQLITE_BUSY_SNAPSHOT", "locked"),
        ("SQLITE_LOCKED", "locked"),
        ("SQLITE_CORRUPT_INDEX", "damaged"),
        ("SQLITE_NOTADB", "database"),
        ("SQLITE_PERM", "access"),
        ("SQLITE_NOMEM", "memory"),
    ],
)
def test_each_code_has_its_sentence(name: str, word: str) -> None:
    """An extended result code has the sentence of its primary code, whether the error is bare or wrapped by
    SQLAlchemy.
    """
    bare = sqlite_error(name)
    wrapped = OperationalError("INSERT INTO turns VALUES (?)", ["what somebody said"], bare)
    for error in (bare, wrapped):
        told = str(sqlite_failure(error, PATH))
        assert word in told
        assert "/data/roomtone.db" in told
        assert told.count(".") >= 2
        assert "INSERT" not in told


def test_an_io_error_on_a_full_disk_is_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """If SQLite reports an I/O error and the disk is full, the sentence says that the disk is full."""
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9, 16_384))
    assert "full" in str(sqlite_failure(sqlite_error("SQLITE_IOERR_SHMSIZE"), PATH))
    assert "full" in str(sqlite_failure(sqlite_error("SQLITE_CANTOPEN"), PATH))
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 0, 10**9))
    assert "failed" in str(sqlite_failure(sqlite_error("SQLITE_IOERR_SHMSIZE"), PATH))
    assert "exists" in str(sqlite_failure(sqlite_error("SQLITE_CANTOPEN"), PATH))


def test_what_the_driver_quotes_is_not_passed_on() -> None:
    """A text that is no UTF-8 is quoted by the driver, which has no code of SQLite for it."""
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error, match="gate") as caught:
        connection.execute("SELECT CAST('The gate code is 4411.' || x'ff' AS TEXT)").fetchall()
    for error in (caught.value, OperationalError("SELECT parts FROM turns", [], caught.value)):
        told = str(sqlite_failure(error, PATH))
        assert "OperationalError" in told
        assert "4411" not in told
