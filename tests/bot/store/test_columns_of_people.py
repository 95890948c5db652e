"""Every column that holds words or ids of people is declared, and everything that treats such columns treats each."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import LargeBinary, Text, insert, select, update

from bot.logs.log_file import log_path
from bot.memory.personal_data import PersonForgetter
from bot.memory.retention import Retention
from bot.store.attendance import AttendanceStore, Presence
from bot.store.backup import restore_backup, write_backup
from bot.store.database import Database, open_database
from bot.store.personal_data import PersonalDataStore
from bot.store.reminders import Reminder, ReminderStore
from bot.store.servers import OptOutStore
from bot.store.tables import (
    OF_PEOPLE,
    OfPeople,
    Prose,
    metadata,
    passage_vectors,
    passages,
    person_facts,
    segment_tiers,
)
from compaction.settings import TierSettings
from tests.bot.evening import CHANNEL, GUILD, Evening
from tests.bot.planted_person import LATER, NAME, PERSON, RestatingSummariser, fill
from tests.fakes.clock import FakeClock

# In no word of anybody else.
TRACES = (PERSON, *(each.casefold() for each in (NAME, "Zanzibarq", "Wickhamq", "Hazelq", "Ostendq")))
YEAR_S = 366 * 24 * 3600.0


def declared() -> dict[str, OfPeople]:
    """Return the columns that are declared, by table and name."""
    return {f"{each.table.name}.{each.name}": each.info[OF_PEOPLE] for each in columns() if OF_PEOPLE in each.info}


def columns() -> Iterator[Any]:
    """Yield all columns of all tables."""
    for table in metadata.sorted_tables:
        yield from table.columns


def test_a_text_is_of_people_unless_it_is_listed_here() -> None:
    """Ids and kinds are keys. Of the texts, only numbers of turns, ids of notes and the figures of a prompt have
    nothing of people.
    """
    kinds = (Prose, Text, LargeBinary)
    texts = {f"{each.table.name}.{each.name}" for each in columns() if isinstance(each.type, kinds)}
    assert texts - declared().keys() == {
        "posted_transcripts.left_out",
        "segments.note_ids",
        "sent_prompts.figures",
    }


def has_trace(value: object) -> bool:
    """Return whether a stored value has the id, the name or a word of the person."""
    text = zlib.decompress(value).decode() if isinstance(value, bytes) and value[:1] == b"x" else str(value)
    return any(each in text.casefold() for each in TRACES)


async def holding(database: Database) -> set[str]:
    """Return which columns have something of the person."""
    found: set[str] = set()
    for table in metadata.sorted_tables:
        for row in await database.rows(select(table)):
            values = zip(table.columns, row, strict=True)
            found |= {f"{table.name}.{column.name}" for column, value in values if has_trace(value)}
    return found


async def plant(evening: Evening) -> None:
    """Put the person also where no session would in so short an evening."""
    await fill(evening)
    session_id, now = evening.session_id, evening.clock.now()
    await OptOutStore(evening.database, evening.clock).put(GUILD + 1, int(PERSON), out=True)
    await AttendanceStore(evening.database).add(session_id, [Presence(PERSON, now, joined=True)])
    fact = {"id": "planted", "session_id": session_id, "turn_seq": 0, "person_id": PERSON, "at": now}
    mine = Reminder(session_id, GUILD, CHANNEL, int(PERSON), now, "Feed the parrots in Zanzibarq.", NAME)
    store = ReminderStore(evening.database)
    # A model may put words of others into a reminder.
    for each in (mine, replace(mine, person_id=7)):
        assert await store.add(each, most=9)
    async with evening.database.writing() as connection:
        await connection.execute(insert(person_facts).values(fact | {"name": NAME, "text": "Lives in Zanzibarq."}))
        # What a model would write of a segment that has the words.
        kept = segment_tiers.c.topic.is_not(None)
        written = {"topic": "Zanzibarq", "key_decisions": '["Move to Zanzibarq"]', "key_files": '["Zanzibarq.txt"]'}
        await connection.execute(update(segment_tiers).where(kept).values(written))
        await connection.execute(update(metadata.tables["segments"]).values(heading="Zanzibarq"))


async def vectors_of_person(database: Database) -> set[int]:
    """Return the ids of the embeddings of what has the person's words. They never come back."""
    of_passage = passage_vectors.join(passages, passages.c.id == passage_vectors.c.passage_id)
    found = await database.rows(select(passage_vectors.c.id, passages.c.own).select_from(of_passage))
    return {row.id for row in found if has_trace(row.own)}


async def test_every_column_of_people_is_forgotten_exported_kept_for_its_time_and_restored(tmp_path: Path) -> None:
    """A column with words or ids that is not declared fails here, and so does a declared one that is not treated."""
    columns_of = declared()
    lasting = {name for name, each in columns_of.items() if not each.forgotten}
    timeless = {name for name, each in columns_of.items() if not each.expires}
    data, elsewhere, backup = tmp_path / "data", tmp_path / "elsewhere", tmp_path / "backup.db"
    path = data / "roomtone.db"
    async with Evening(path, clock=FakeClock(LATER), summariser=RestatingSummariser()) as evening:
        await plant(evening)
        embedded = await vectors_of_person(evening.database)
        assert embedded
        # No digest of a text has a trace in it.
        assert await holding(evening.database) == columns_of.keys() - {"passage_vectors.vector"}

        exported = json.dumps(await PersonalDataStore(evening.database).of(PERSON))
        for name, each in columns_of.items():
            assert not each.exported or re.search(rf'"{each.exported}": \[[^]]', exported), name

        write_backup(path, backup)
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(data).parent)
        (person,) = await forgetter.speech.find(PERSON)
        await forgetter.forget(person)
        assert await holding(evening.database) == lasting
        ids = set(await evening.database.values(select(passage_vectors.c.id)))
        assert ids
        assert not ids & embedded

    await restore_backup(backup, path, now=LATER)
    async with open_database(path) as restored:
        assert await holding(restored) == lasting, "who was forgotten since does not come back"
    await restore_backup(backup, elsewhere / "roomtone.db", now=LATER)
    async with open_database(elsewhere / "roomtone.db") as restored:
        assert await holding(restored) == columns_of.keys() - {"passage_vectors.vector"}
        clock = FakeClock(LATER)
        clock.advance(YEAR_S)
        await Retention(restored, TierSettings(), clock=clock).enforce()
        assert await holding(restored) == timeless
        assert await restored.values(select(passage_vectors.c.id)) == []
