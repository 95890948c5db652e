"""Finds what is in a SQLite file and was not made by Roomtone.

A file from elsewhere may bring a trigger that copies what people say or undoes what they have forgotten, a view in the
place of a table, or a table whose columns and checks call functions. So the whole schema is compared with that of a
database which the same steps make anew: every part must be there, word for word. That is possible for every version,
because the shipped steps are frozen; so it is done before the missing steps run, in which a trigger would act too.

Only the schema's text is read here. Nothing in it has run when this says that it is ours. Rows are not judged.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from bot.store.migrations.upgrade import HEAD, make_tables, too_new
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_VERSIONS_TABLE = "alembic_version"
# What SQLite makes itself for ANALYZE and `PRAGMA optimize`, which an owner may have run: figures for its planner.
_STATISTICS = {
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}
# Space as SQLite knows it. Other signs that Python takes for space belong to names there.
_SPACE = re.compile(r"[ \t\n\f\r]+")
_AROUND_SIGNS = re.compile(r" ?([(),;]) ?")
# A name from a foreign file is shown, but no page of it.
_SHOWN_CHARS = 60
_OF_SESSION = ",FOREIGN KEY(session_id)REFERENCES sessions(id)ON DELETE CASCADE"
_TRIGGERS_MADE_AGAIN = "0014"
_COUNTED = "UPDATE search_marks SET value = value + 1 WHERE name = 'generation';"


class _Part(NamedTuple):
    """A table, index, trigger or view."""

    kind: str
    name: str
    table: str


@dataclass(frozen=True, slots=True)
class ForeignPart:
    """A part of a schema that is missing or not as Roomtone makes it. `what`: its kind and name: `trigger "spy"`."""

    what: str
    problem: Text

    def sentence(self, file: Path) -> Text:
        """Return how the file differs, and why that matters; the remedy depends on which file it is."""
        return Text(
            "{path} does not have exactly Roomtone's tables, indexes and triggers: {what} ({problem}). Such a change "
            "can copy what people say, or bring back what was forgotten.",
            path=str(file),
            what=self.what,
            problem=self.problem,
        )


def foreign_part(connection: sqlite3.Connection) -> ForeignPart | None:
    """Return the first part of the schema that is not Roomtone's, or that is missing; None if all is as it must be.

    Raises `StoreError` if a newer Roomtone wrote the database, and `sqlite3.Error` if it cannot be read.
    """
    found: dict[_Part, str] = {}
    for part, definition in _schema(connection):
        # A row's name can differ from the name in its definition, which is what counts for SQLite.
        if part in found:
            return ForeignPart(_shown(part), Text("it is there twice"))
        found[part] = definition
    version = _version(connection, found)
    return _difference(found, _schema_of(version), version)


def _difference(found: Mapping[_Part, str], ours: Mapping[_Part, str], version: str) -> ForeignPart | None:
    for part, definition in found.items():
        if part not in ours:
            if part.kind == "table" and _STATISTICS.get(part.name) == definition:
                continue
            return ForeignPart(_shown(part), Text("no Roomtone has made it"))
        if definition not in (ours[part], _first_form(part, ours[part], version)):
            return ForeignPart(_shown(part), Text("it is not as Roomtone makes it"))
    for part in ours:
        # Databases of before Alembic have no table of its own.
        if part not in found and part.table != _VERSIONS_TABLE:
            return ForeignPart(_shown(part), Text("it is missing"))
    return None


def _schema(connection: sqlite3.Connection) -> Iterator[tuple[_Part, str]]:
    for kind, name, table, definition in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"):
        # The space changes if SQLite itself rewrites a definition, for a column that is added or dropped.
        plain = _AROUND_SIGNS.sub(r"\1", _SPACE.sub(" ", str(definition or "")).strip(" "))
        yield _Part(str(kind), str(name), str(table)), plain


def _version(connection: sqlite3.Connection, found: Mapping[_Part, str]) -> str:
    """Return the version from which the upgrade would begin (`upgrade`)."""
    part = _Part("table", _VERSIONS_TABLE, _VERSIONS_TABLE)
    version = f"{int(connection.execute('PRAGMA user_version').fetchone()[0]):04d}"
    # Nothing else of that name is asked: a view could be anything.
    if found.get(part) == _schema_of(HEAD)[part]:
        rows = connection.execute(f"SELECT version_num FROM {_VERSIONS_TABLE}").fetchmany(2)  # noqa: S608 - a constant
        version = str(rows[0][0]) if len(rows) == 1 else ""
    if not re.fullmatch(r"[0-9]{4}", version) or not 1 <= int(version) <= int(HEAD):
        raise too_new(version[:_SHOWN_CHARS] or "?")
    return version


@lru_cache(maxsize=int(HEAD))
def _schema_of(version: str) -> dict[_Part, str]:
    """Return the schema that Roomtone of this version makes."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        with engine.begin() as connection:
            make_tables(connection, version)
        with engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            return dict(_schema(driver))
    finally:
        engine.dispose()


def _first_form(part: _Part, definition: str, version: str) -> str:
    """Return how a definition looked when its step was first committed, for an hour. The foreign keys mean the same in
    both forms; the triggers were made again later.
    """
    if part.kind == "table" and _OF_SESSION in definition:
        inline = "session_id VARCHAR NOT NULL REFERENCES sessions(id)ON DELETE CASCADE"
        return definition.replace(_OF_SESSION, "").replace("session_id VARCHAR NOT NULL", inline)
    if version < _TRIGGERS_MADE_AGAIN and part.name == "passage_deleted":
        return definition.replace("name = 'generation'", "name = 'deletions'")
    if version < _TRIGGERS_MADE_AGAIN and part.name == "session_placed":
        return definition.replace(_COUNTED, "")
    return definition


def _shown(part: _Part) -> str:
    kind = part.kind if part.kind in {"table", "index", "trigger", "view"} else "entry"
    name = "".join(each if each.isprintable() else "?" for each in part.name[:_SHOWN_CHARS])
    return f'{kind} "{name}"'
