"""The database index finds the same passages as the brute-force fake, follows changes in the store, and forgets for
good.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from sqlalchemy import text

from bot.store.database import Database
from bot.store.dialects.sqlite import SqliteDialect
from compaction.language.terms import terms
from compaction.memory.passage import Readable, Scope, source_text
from compaction.model import FactKind, Seq
from tests.bot.store.search.searched_room import SearchedRoom
from tests.compaction.memory.recall_index_contract import (
    ELSEWHERE,
    EVENING,
    MORNING,
    PLACES,
    SAID,
    RecallIndexContract,
    SimilarityContract,
    counting,
    note,
    segment,
    turn,
)
from tests.fakes.recall_index import InMemoryRecallIndex


class TestSqlRecallIndex(RecallIndexContract, SimilarityContract):
    """The database index fulfils the same contract as the in-memory fake."""


@pytest.mark.slow
async def test_it_finds_what_brute_force_finds(room: SearchedRoom) -> None:
    """For random turns, queries and scopes, the database finds the same passages as the in-memory fake."""
    rng = random.Random(11)
    words = [f"{a}{b}" for a in ("lo", "mi", "ra", "se", "tu") for b in ("bak", "dif", "gom", "nel", "pus", "rit")]
    fake = InMemoryRecallIndex()
    for session_id, (guild_id, channel_id) in PLACES.items():
        for seq in range(20):
            said = turn(seq, " ".join(rng.choices(words, k=rng.randint(1, 9))), rng.choice(["Ada Lovelace", "Bob"]))
            await room.add(session_id, said)
            fake.add(session_id, said, guild_id=guild_id, channel_id=channel_id)
    for _ in range(30):
        scope = Scope(
            guild_id=rng.choice([None, 1, 2]),
            session_id=rng.choice([None, None, *PLACES]),
            speaker=rng.choice([None, "bob", "ada"]),
            since=rng.choice([None, 1_760_000_040.0]),
            in_view=rng.choice([None, (EVENING, Seq(12))]),
        )
        asked = terms(" ".join(rng.choices(words, k=rng.randint(1, 4))))
        weights = {term: rng.random() for term in asked}
        real = await room.index.full_text(weights, scope, limit=500)
        assert real == await fake.full_text(weights, scope, limit=500)
        assert await room.index.newest(scope, limit=7) == await fake.newest(scope, limit=7)
        assert await room.index.count(asked, scope) == await fake.count(asked, scope)


async def test_folding_tells_which_turn_corrects_which(room: SearchedRoom) -> None:
    """A fact that closes another marks the old turn as replaced by the new one."""
    told = (turn(0, "The gate code is 4411."), turn(1, "Fine."), turn(2, "The gate code is 7702 now."))
    first = segment(0, 2, "A code.", "The gate code is 4411.")
    second = segment(2, 3, "Another code.", "The gate code is 7702 now.")
    second = replace(second, facts=(replace(second.facts[0], closes=(f"{first.id}#0", "nothing#7", "odd")),))
    await room.add(EVENING, *told, first, second)
    (old, _, new) = await room.index.passages(
        await room.index.find_turns(EVENING, [Seq(0), Seq(1), Seq(2)]), Readable()
    )
    assert old.replaced_by == 2
    assert new.replaced_by is None


async def test_facts_of_every_kind_are_corrected(room: SearchedRoom) -> None:
    """A fact that closes an open one, or one of a decision, takes the place of its turn. The latest one counts."""
    told = [turn(seq, f"Something {seq}.") for seq in range(5)]
    first = segment(0, 2, "Plans.", "Who drives?", "The quiz is on Wednesday.")
    first = replace(
        first,
        facts=(
            replace(first.facts[0], kind=FactKind.OPEN),
            replace(first.facts[1], kind=FactKind.DECISION, turns=(Seq(1),)),
        ),
    )
    later = segment(2, 5, "New plans.", "Bob drives.", "The quiz is on Sunday.", "The quiz is on Monday.")
    drives, sunday, monday = later.facts
    later = replace(
        later,
        facts=(
            replace(drives, turns=(Seq(2),), closes=(f"{first.id}#0",)),
            replace(sunday, turns=(Seq(3),), closes=(f"{first.id}#1",)),
            replace(monday, turns=(Seq(4),), closes=(f"{first.id}#1", f"{later.id}#1")),
        ),
    )
    await room.add(EVENING, *told, first, later)
    found = await room.index.passages(await room.index.find_turns(EVENING, [Seq(seq) for seq in range(5)]), Readable())
    assert [each.replaced_by for each in found][:2] == [2, 4]


async def _check_index(database: Database) -> None:
    """Let SQLite compare its index with the passages. PostgreSQL makes its own from them."""
    if isinstance(database.dialect, SqliteDialect):
        async with database.writing() as connection:
            await connection.execute(text("INSERT INTO passage_index (passage_index) VALUES ('integrity-check')"))


async def _texts(room: SearchedRoom, query: str) -> list[str]:
    found = await room.index.passages(await room.index.full_text(counting(terms(query)), Scope(), limit=50), Readable())
    return sorted(source_text(each.source) for each in found)


async def test_a_deleted_session_leaves_nothing(room: SearchedRoom) -> None:
    """Deleting a session deletes its turns, passages and embeddings, and those of other sessions stay."""
    await room.add(EVENING, *SAID, note("n1", "A map of the Algarve"), segment(0, 4, "They settle on Lisbon."))
    await room.add(ELSEWHERE, turn(0, "Lisbon is none of your business."))
    await room.embed()
    assert await room.sessions.delete(EVENING)
    assert await _texts(room, "lisbon algarve lighthouse") == ["Lisbon is none of your business."]
    left = await room.database.rows("SELECT (SELECT count(*) FROM passages), (SELECT count(*) FROM passage_vectors)")
    assert left == [(1, 1)]
    await _check_index(room.database)


async def test_only_the_channels_of_the_scope_are_searched(room: SearchedRoom) -> None:
    """A scope with channels finds what was said in these and no others, by words and by time. A speaker who has the tag
    of a channel as their name changes nothing.
    """
    for session_id in (EVENING, MORNING, ELSEWHERE):
        said = turn(0, "Lisbon is lovely.")
        await room.add(session_id, replace(said, parts=(replace(said.parts[0], speaker="c12 c10 c11 g1"),)))
    for channels, found in (
        ({10}, {EVENING}),
        ({11}, {MORNING}),
        ({10, 11}, {EVENING, MORNING}),
        ({12}, set()),
        ((), set()),
    ):
        scope = Scope(guild_id=1, channels=frozenset(channels))
        for ids in (
            await room.index.full_text(counting(["lisbon"]), scope, limit=5),
            await room.index.newest(scope, limit=5),
        ):
            assert {each.session_id for each in await room.index.passages(ids, Readable())} == found, channels
