"""Compares the database of a simulated evening with what is true of it, once everything is mended and quiet."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from compaction.notes import LIVE_NOTES, MOST_PENDING
from compaction.turn_buffer import CAPACITY
from rehearsal.roomtone.evenings.world import World

FILE = "roomtone.db"
# The search index keeps pieces of words here, until it is merged; what it finds is asked of it.
_INDEX = "passage_index"


def check_stored(world: World) -> None:
    """Check turns, folds and notes of every session, that nothing said is missing, and nothing forgotten is left."""
    with closing(sqlite3.connect(world.folder / FILE)) as connection:
        connection.row_factory = sqlite3.Row
        for session in connection.execute("SELECT id, cursor, ended_at FROM sessions ORDER BY started_at, id"):
            _check_folds(world, connection, session)
            _check_notes(world, connection, session["id"])
        _check_turns(world, connection)
        _check_forgotten(world, connection)
    _check_memory(world)


def _check_folds(world: World, connection: sqlite3.Connection, session: sqlite3.Row) -> None:
    session_id, name = session["id"], world.name_of(session["id"])
    seqs = [
        row[0] for row in connection.execute("SELECT seq FROM turns WHERE session_id=? ORDER BY seq", (session_id,))
    ]
    if seqs != list(range(len(seqs))):
        world.breaks(f"{name}: the numbers of its turns have a gap")
    folds = (
        "SELECT start_seq, end_seq, closing FROM segments WHERE session_id=? AND start_seq < end_seq ORDER BY position"
    )
    reached = 0
    for fold in connection.execute(folds, (session_id,)):
        if fold["start_seq"] != reached:
            world.breaks(f"{name}: a fold begins at {fold['start_seq']}, and the one before ends at {reached}")
        if not fold["closing"]:
            reached = fold["end_seq"]
    if reached != session["cursor"]:
        world.breaks(f"{name}: its folds end at {reached}, and its cursor is {session['cursor']}")


def _check_notes(world: World, connection: sqlite3.Connection, session_id: str) -> None:
    """Each note is live, waits, was dropped, or is in exactly one fold, which told of it if anybody may be told."""
    name = world.name_of(session_id)
    notes = {
        row["id"]: row["status"]
        for row in connection.execute("SELECT id, status FROM notes WHERE session_id=?", (session_id,))
    }
    folded = Counter[str]()
    for row in connection.execute("SELECT note_ids FROM segments WHERE session_id=? AND NOT closing", (session_id,)):
        folded.update(json.loads(row["note_ids"]))
    # Where nothing may be told, nobody is asked for the fold.
    withheld = {place for word, (_, place) in world.recorded.items() if world.line_of[word].person in world.withdrawn}
    shown = world.notes_in_folds | withheld
    for note_id, status in notes.items():
        if (status == "folded") != (folded[note_id] == 1):
            world.breaks(f"{name}: note {note_id} is {status}, and in {folded[note_id]} folds")
        if status == "folded" and note_id not in shown:
            world.breaks(f"{name}: note {note_id} is folded, and no fold was shown it")
    counts = Counter(notes.values())
    if counts["live"] > LIVE_NOTES or counts["pending"] > MOST_PENDING:
        world.breaks(f"{name}: {counts['live']} notes are live, and {counts['pending']} wait")


def _check_turns(world: World, connection: sqlite3.Connection) -> None:
    """Everything that was said by somebody who may be heard is in one turn, and what was shown is in one note."""
    stored: defaultdict[str, list[tuple[str, int | str]]] = defaultdict(list)
    for row in connection.execute("SELECT session_id, seq, parts FROM turns WHERE kind != 'assistant'"):
        for word in world.words_in(row["parts"]):
            stored[word].append((world.name_of(row["session_id"]), row["seq"]))
    for row in connection.execute("SELECT session_id, id, what FROM notes"):
        for word in world.words_in(row["what"]):
            stored[word].append((world.name_of(row["session_id"]), row["id"]))
    for line in world.lines:
        for word in line.words:
            places = stored[word]
            if len(places) > 1:
                world.breaks(f"{word} is stored twice: {places}")
            gone = world.withdrawn.get(line.person)
            if places or line.is_excused or (gone is not None and world.said_at[word] <= gone.at):
                continue
            if word not in world.recorded:
                world.breaks(f"{word} was {line.kind} and is in no turn")
            elif word not in world.may_be_lost:
                world.breaks(f"{word} was recorded as {world.recorded[word]} and is not stored")


def _check_forgotten(world: World, connection: sqlite3.Connection) -> None:
    """Nothing of who was forgotten is in any row, nor found by the search index."""
    for table, row in _rows(connection):
        for word in world.words_in(" ".join(map(str, row))):
            if word in world.forgotten:
                world.breaks(f"{word} was forgotten and is in {table}")
    for word in sorted(world.forgotten):
        if connection.execute(f"SELECT 1 FROM {_INDEX} WHERE {_INDEX} MATCH ?", (word,)).fetchone():  # noqa: S608
            world.breaks(f"{word} was forgotten and the search finds it")
    for message in world.renewed_posts.values():
        for word in world.words_in(message):
            if word in world.forgotten:
                world.breaks(f"{word} was forgotten and is still posted")


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield all rows of all tables, but for the pieces of the search index."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name").fetchall()
    for (table,) in tables:
        if not table.startswith(_INDEX):
            for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names of our own tables
                yield table, tuple(row)


def _check_memory(world: World) -> None:
    """What a session keeps in memory is bounded, and stored."""
    timeline = world.timeline
    if timeline is None:
        return
    if timeline.store_queue.waiting:
        world.breaks(f"{timeline.store_queue.waiting} turns or notes are not stored, though the database is there")
    if len(timeline.turns) > max(CAPACITY, timeline.total_turns - timeline.cursor):
        world.breaks(f"{len(timeline.turns)} turns are in memory")
