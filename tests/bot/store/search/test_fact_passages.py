"""A fact that a model wrote leads to the turn that it cites, and goes with it."""

from __future__ import annotations

from dataclasses import replace

from compaction.language.terms import terms
from compaction.memory.passage import PassageKind, Readable, Scope, source_text
from compaction.model import Segment, Seq
from tests.bot.store.search.searched_room import SearchedRoom
from tests.compaction.memory.recall_index_contract import EVENING, LetterEmbedder, counting, segment, turn

SAID = "Lindengasse, number eleven, second floor."
FACT = "Bob lives at Lindengasse 11."
TURNS = (turn(0, "Where is it now?"), turn(1, SAID, "Bob"), turn(2, "Above a bakery!", "Bob"))


def written(start: int = 0, end: int = 3) -> Segment:
    """A segment with one fact in a model's words, which cites turn 1."""
    made = segment(start, end, "They speak of a flat.", FACT)
    return replace(made, facts=(replace(made.facts[0], turns=(Seq(1),)),), prompt_version="fold.v1")


async def found(room: SearchedRoom, query: str, scope: Scope | None = None) -> list[str]:
    """Return the texts that words find."""
    ids = await room.index.full_text(counting(terms(query)), scope or Scope(), limit=9)
    return [source_text(each.source) for each in await room.index.passages(ids, Readable())]


async def facts(room: SearchedRoom) -> int:
    """Return how many facts the index has."""
    return len(await room.database.rows("SELECT id FROM passages WHERE kind = 'fact'"))


async def test_words_of_a_fact_find_its_turn(room: SearchedRoom) -> None:
    """The question has a word of the fact and none of the turn; the turn is found, once, and knows the fact's words."""
    await room.add(EVENING, *TURNS)
    assert SAID not in await found(room, "lives")
    await room.add(EVENING, written())
    assert (await found(room, "lives")).count(SAID) == 1
    assert (await found(room, "lives lindengasse")).count(SAID) == 1
    (passage,) = await room.index.passages(await room.index.find_turns(EVENING, [Seq(1)]), Readable())
    assert set(terms("lives")) <= passage.own_terms


async def test_every_cited_turn_is_found(room: SearchedRoom) -> None:
    """A fact leads to each turn that it cites."""
    made = written()
    both = replace(made, facts=(replace(made.facts[0], turns=(Seq(1), Seq(2))),))
    await room.add(EVENING, *TURNS, both)
    assert {SAID, "Above a bakery!"} <= set(await found(room, "lives"))


async def test_a_fact_is_judged_like_its_turn(room: SearchedRoom) -> None:
    """Speaker, kind and view of the turn decide."""
    await room.add(EVENING, *TURNS, written())
    assert await found(room, "lives", Scope(speaker="Bob", kinds=frozenset({PassageKind.TURN}))) == [SAID]
    assert await found(room, "lives", Scope(speaker="Ada", kinds=frozenset({PassageKind.TURN}))) == []
    assert SAID not in await found(room, "lives", Scope(in_view=(EVENING, Seq(1))))


async def test_a_facts_embedding_leads_to_its_turn(room: SearchedRoom) -> None:
    """The likeness of a fact to the query is that of its turn."""
    await room.add(EVENING, *TURNS, written())
    await room.embed()
    (vector,) = await LetterEmbedder().embed([f"{FACT}"])
    near = await room.index.find_similar(vector, Scope(), model=LetterEmbedder.model, limit=9)
    (best,) = await room.index.passages([near[0][0]], Readable())
    assert source_text(best.source) == SAID
    assert len({passage_id for passage_id, _ in near}) == len(near)


async def test_a_fact_is_no_hit_of_its_own(room: SearchedRoom) -> None:
    """Facts are not among the newest passages, and a fact in somebody's own words needs no way to its turn."""
    await room.add(EVENING, *TURNS, written())
    newest = await room.index.passages(await room.index.newest(Scope(), limit=9), Readable())
    assert len(newest) == len(TURNS) + 1
    quoted = segment(3, 4, "More.", "Above a bakery!")
    await room.add(EVENING, turn(3, "Yes."), quoted)
    assert await facts(room) == 1


async def test_a_fact_goes_with_its_turn_and_its_segment(room: SearchedRoom) -> None:
    """What is forgotten or deleted is found by no fact."""
    await room.add(EVENING, *TURNS, written())
    await room.forget(EVENING, 1)
    assert await facts(room) == 0
    assert SAID not in await found(room, "lives")
