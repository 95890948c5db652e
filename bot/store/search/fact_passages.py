"""The facts that a model wrote, in the search index: each leads to the turns that it cites.

A model writes 'Sami lives at Lindengasse 11' where Sami said 'Lindengasse, number eleven, second floor'. A question
about where Sami lives is like the first and has no word of the second. The fact is found and its turn is shown, so that
a hit is always what was said. A fact in somebody's own words needs no passage of its own: its turn has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, select, tuple_

from bot.store.inserts import add_all_once
from bot.store.rows import segment_from_row
from bot.store.search.tags import FACT_KIND
from bot.store.tables import passages, segments
from compaction.language.terms import name_terms, normalized_words, terms
from compaction.memory.passage import LEAST_EMBEDDED_WORDS, PassageId, PassageKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import Fact, Segment, SessionId


async def index_facts(connection: AsyncConnection, session_id: SessionId, segment: Segment) -> None:
    """Index the facts of a segment that a model wrote, inside a write transaction. A turn must be indexed before.

    A fact has one passage for each turn that it cites, with the time and the tags of the turn, so that every filter
    judges it as it judges the turn.
    """
    written = [
        (f"{segment.id}#{index}.{seq}", seq, fact)
        for index, fact in enumerate(segment.facts if segment.is_by_model else ())
        if fact.text and fact.note_id is None
        for seq in fact.turns
    ]
    if not written:
        return
    cited = select(passages.c.start_seq, passages.c.at, passages.c.tags).where(
        passages.c.session_id == session_id,
        passages.c.kind == PassageKind.TURN.value,
        passages.c.start_seq.in_({seq for _, seq, _ in written}),
    )
    turns = {row.start_seq: row for row in await connection.execute(cited)}
    values: list[dict[str, object]] = [
        {
            "session_id": session_id,
            "kind": FACT_KIND,
            "key": key,
            "start_seq": seq,
            "at": turns[seq].at,
            "own": " ".join(dict.fromkeys((*name_terms(fact.speaker), *terms(fact.text)))),
            "preceding": "",
            "following": "",
            "tags": turns[seq].tags,
        }
        for key, seq, fact in written
        if seq in turns
    ]
    if values:
        await add_all_once(connection, passages, values)


async def text_of_fact(connection: AsyncConnection, session_id: str, key: str) -> str | None:
    """Return the text of a fact to embed, or None if an embedding would not help."""
    segment_id, _, place = key.rpartition("#")
    index = place.partition(".")[0]
    stored = select(segments).where(segments.c.session_id == session_id, segments.c.id == segment_id)
    found = (await connection.execute(stored)).one_or_none()
    facts: Sequence[Fact] = () if found is None else segment_from_row(found).facts
    if not index.isdecimal() or int(index) >= len(facts):
        return None
    text = facts[int(index)].text
    return text if len(normalized_words(text)) >= LEAST_EMBEDDED_WORDS else None


async def cited_turns(connection: AsyncConnection, ids: Sequence[PassageId]) -> dict[PassageId, PassageId]:
    """Return the passages of the cited turns, by the facts among `ids`."""
    turn = passages.alias()
    same = and_(
        turn.c.session_id == passages.c.session_id,
        turn.c.kind == PassageKind.TURN.value,
        turn.c.start_seq == passages.c.start_seq,
    )
    facts = passages.c.id.in_(ids) & (passages.c.kind == FACT_KIND)
    found = await connection.execute(select(passages.c.id, turn.c.id.label("turn")).join(turn, same).where(facts))
    return {PassageId(row.id): PassageId(row.turn) for row in found}


async def terms_of_facts(
    connection: AsyncConnection, turns: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], frozenset[str]]:
    """Return the search terms of the facts that cite these turns, by session and seq."""
    citing = tuple_(passages.c.session_id, passages.c.start_seq).in_(turns) & (passages.c.kind == FACT_KIND)
    wanted = select(passages.c.session_id, passages.c.start_seq, passages.c.own).where(citing)
    found: dict[tuple[str, int], frozenset[str]] = {}
    for row in await connection.execute(wanted):
        key = (row.session_id, row.start_seq)
        found[key] = found.get(key, frozenset()) | frozenset(row.own.split())
    return found
