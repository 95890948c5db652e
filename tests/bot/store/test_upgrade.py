"""A database of the first version, with an evening in it, is brought up to date: nothing is lost, and what was said is
found as if today's code had stored it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from bot.store import migrations
from bot.store.database import open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.sessions import Sessions
from bot.store.tables import metadata
from bot.store.turns import SqlTurnStore
from compaction.language.terms import terms
from compaction.memory.passage import Readable, Scope, source_text
from compaction.model import Note, NoteId, Seq, SessionId, Turn, TurnKind, TurnPart
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from bot.store.database import Database
    from tests.bot.conftest import Place

EVENING = SessionId("evening")
SAID = (
    Turn(Seq(0), TurnKind.SPEECH, 10.0, 13.0, (TurnPart("11", "Ada", "The lighthouse is in Lisbon."),)),
    Turn(Seq(1), TurnKind.SPEECH, 14.0, 17.0, (TurnPart("22", "Bo", "Good evening to you."),)),
    Turn(Seq(2), TurnKind.ASSISTANT, 18.0, 20.0, (TurnPart("assistant", "Roomtone", "It is lit."),), answers=Seq(0)),
)
NOTE = Note(NoteId("map"), 15.0, "Ada", "A map of the coast.")
# In this order none refers to one that comes later.
FILLED = ("sessions", "turns", "notes", "passages")
# What the first version had besides, and what later ones added.
FORMER = {"preceding": "before", "following": "after"}
ADDED = {"passages": {"heard_from", "heard_until"}, "turns": {"called"}}


async def rows_of(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables in which something is."""
    async with database.reading() as connection:
        found = {}
        for name in FILLED:
            columns = ", ".join(f'"{column.name}"' for column in metadata.tables[name].columns if not column.computed)
            rows = await connection.execute(text(f"SELECT {columns} FROM {name} ORDER BY 1, 2"))
            found[name] = [dict(row) for row in rows.mappings()]
    return found


def make_old(connection: Connection, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Make the tables of the first version in the place of all that is there, and put the rows into them."""
    if connection.dialect.name == "sqlite":
        metadata.drop_all(connection)
        for name in ("passage_terms", "passage_index", "alembic_version"):
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
    else:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    for name, of_table in rows.items():
        for row in of_table:
            old = {key: value for key, value in row.items() if key not in ADDED.get(name, ())}
            if name == "passages":
                old |= FORMER | {"tags": old["tags"].replace(" kassistant", "")}
            columns, values = (", ".join(mark.format(key) for key in old) for mark in ('"{}"', ":{}"))
            connection.execute(text(f"INSERT INTO {name} ({columns}) VALUES ({values})"), old)


async def test_an_evening_of_the_first_version_is_whole_after_the_upgrade(place: Place) -> None:
    """Rows, tags and times are those that the present code stores. Only own words find a turn."""
    async with open_database(place) as database:
        await Sessions(database, FakeClock()).open(guild_id=5, channel_id=6, resume_within_s=1e12, session_id=EVENING)
        store = SqlTurnStore(database, FakeClock())
        for turn in SAID:
            await store.append_turn(EVENING, turn)
        await store.add_note(EVENING, NOTE)
        stored = await rows_of(database)
        async with database.writing() as connection:
            await connection.run_sync(make_old, stored)
    async with open_database(place) as database:
        upgraded = await rows_of(database)
        for row in (*stored["passages"], *upgraded["passages"]):
            row["tags"] = set(row["tags"].split())
        assert upgraded == stored
        index = SqlRecallIndex(database, VectorStore(database))
        found = {}
        for word in ("lisbon", "before"):
            ids = await index.full_text(dict.fromkeys(terms(word), 1.0), Scope(), limit=9)
            found[word] = [source_text(each.source) for each in await index.passages(ids, Readable())]
        # Its neighbour is a weaker hit.
        assert (found["lisbon"][0], found["before"]) == ("The lighthouse is in Lisbon.", [])
