"""A PostgreSQL server for tests: one for each test process, with a fresh database for each test.

Debian's package `postgresql` has its programs (`make test` installs it). It is started when it is first asked for. It
listens on a socket in its own folder alone, runs as a user without rights, flushes nothing, and ends with the test
process.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from tests.patience import PATIENCE_S

USER = "roomtone"
TEMPLATE = "roomtone_template"
_PLACES = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
# A crash may lose everything: it is a test's.
_SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "''",
    "max_connections": "200",
    "max_wal_senders": "0",
    "shared_buffers": "16MB",
    "synchronous_commit": "on",
    "wal_level": "minimal",
}
_START_S = int(PATIENCE_S)
_END_CONNECTIONS = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
_TABLES = """
    SELECT relname, pg_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


class PostgresServer:
    """A running server. `folder`: its data, log and socket. `programs`: the folder of initdb and pg_ctl."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.programs = programs
        # Emptied databases, for the next tests.
        self.spare: list[str] = []
        self._tables: set[str] = set()
        self._count = 0

    def url(self, name: str, *, user: str = USER) -> SecretStr:
        """Return the URL of a database."""
        return SecretStr(f"postgresql://{user}@/{name}?host={self.folder}")

    def create(self, *, template: str = "template1") -> str:
        """Create a database and return its name."""
        self._count += 1
        name = f"test_{self._count}"
        self._run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return name

    def empty(self, name: str, *, like: str) -> bool:
        """Empty the tables of a database, whoever is still connected. A tenth of the time that a new one takes.

        Returns False if it has other tables than `like`, so that it must be made anew.
        """
        with self._connected() as connection:
            connection.execute(_END_CONNECTIONS, [name])
        if not self._tables:
            with psycopg.connect(self.url(like).get_secret_value(), autocommit=True) as connection:
                self._tables = {table for table, _ in connection.execute(_TABLES)}
        with psycopg.connect(self.url(name).get_secret_value(), autocommit=True) as connection:
            sizes: dict[str, int] = dict(connection.execute(_TABLES).fetchall())
            if set(sizes) != self._tables:
                return False
            # Only those that have a file with something in it: of all of them it takes ten times as long.
            written = [sql.Identifier(table) for table in sorted(sizes) if sizes[table] and table != "alembic_version"]
            connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(sql.SQL(", ").join(written)))
            connection.execute("INSERT INTO search_marks (name, value) VALUES ('generation', 0)")
        return True

    def drop(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        self._run(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def rename(self, name: str, new: str) -> None:
        """Rename a database."""
        self._run(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(name), sql.Identifier(new)))

    def has(self, name: str) -> bool:
        """Return whether there is a database of that name."""
        with self._connected() as connection:
            return connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None

    def bytes_of(self, place: SecretStr) -> bytes:
        """Return all bytes in the files of a database, with what the server had only in memory."""
        with psycopg.connect(place.get_secret_value(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        assert row is not None, "the database is there"
        folder = self.folder / "data" / "base" / str(row[0])
        return b"".join(each.read_bytes() for each in sorted(folder.iterdir()) if each.is_file())

    def stop(self, *, how: str = "immediate") -> None:
        """Stop the server. `how`: pg_ctl's mode."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "-t", str(_START_S), "stop")

    def start(self) -> None:
        """Start the server."""
        options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
        options += f" -c unix_socket_directories={self.folder}"
        log = self.folder / "log"
        self.run(
            "pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", str(log), "-w", "-t", str(_START_S), "start"
        )

    def initialise(self) -> None:
        """Make the server's data, and start it."""
        self.run(
            "initdb", "-D", str(self.folder / "data"), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
        )
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs, as a user without rights. A failure fails the test."""
        root = os.getuid() == 0
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            # The server must not keep the pipes of the tests open.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_START_S,
            check=False,
            # PostgreSQL refuses to run as root.
            user="nobody" if root else None,
            group="nogroup" if root else None,
            extra_groups=[] if root else None,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        if done.returncode:
            pytest.fail(f"{program} failed ({done.returncode}): {done.stderr}", pytrace=False)

    def _run(self, statement: sql.Composed) -> None:
        with self._connected() as connection:
            connection.execute(statement)

    def _connected(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url("postgres").get_secret_value(), autocommit=True)


@cache
def running_server() -> PostgresServer:
    """Return this test process's server."""
    found = [
        path for place in _PLACES for path in Path("/").glob(place.removeprefix("/")) if (path / "initdb").is_file()
    ]
    if not found:
        pytest.fail("PostgreSQL is not here: `make test` installs it (Debian: apt install postgresql).", pytrace=False)
    newest = max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))])
    return _started(newest)


def _started(programs: Path) -> PostgresServer:
    """Start a server that ends with this process. `programs`: the folder of initdb and pg_ctl."""
    # Not in pytest's folder: the path of a socket may have only 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="rt-pg-"))
    folder.chmod(0o755)
    server = PostgresServer(folder, programs)
    if os.getuid() == 0:
        # The watcher, who is not root, deletes all of it.
        shutil.chown(folder, "nobody")
    atexit.register(_end, _watcher(server))
    server.initialise()
    return server


def _watcher(server: PostgresServer) -> subprocess.Popen[bytes]:
    """Start a process that ends the server and deletes its folder once this process has ended, however that comes."""
    root = os.getuid() == 0
    ending = 'read -r _; "$0" -D "$1/data" -m immediate -w stop; rm -rf "$1"'
    return subprocess.Popen(
        ["sh", "-c", ending, server.programs / "pg_ctl", server.folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user="nobody" if root else None,
        group="nogroup" if root else None,
        extra_groups=[] if root else None,
        cwd="/",
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        start_new_session=True,
    )


def _end(watcher: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        watcher.communicate(timeout=_START_S)
