"""The facts that a model wrote, in the search index: each leads to the turns that it cites.

A model writes 'Sami lives at Lindengasse 11' where Sami said 'Lindengasse, number eleven, second floor'. A question
about where Sami lives is like the first and has no word of the second. The fact is found and its turn is shown, so that
a hit is always what was said. A fact in somebody's own words needs no passage of its own: its turn has one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import select

from bot.store.inserts import add_all_once
from bot.store.rows import segment_from_row
from bot.store.search.fact_kind import KIND
from bot.store.tables import passages, segments
from compaction.language.terms import name_terms, normalized_words, terms
from compaction.memory.passage import LEAST_EMBEDDED_WORDS, PassageId, PassageKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.dialects.port import PlainConnection, PlainSql
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
            "kind": KIND,
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


def cited_turns(connection: PlainConnection, sql: PlainSql, ids: Iterable[PassageId]) -> dict[PassageId, PassageId]:
    """Return the passages of the cited turns, by the facts among `ids`."""
    found = connection.execute(sql.cited_turns, {"ids": json.dumps(list(ids))})
    return {PassageId(fact): PassageId(turn) for fact, turn in found}


def terms_of_facts(
    connection: PlainConnection, sql: PlainSql, turns: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], frozenset[str]]:
    """Return the search terms of the facts that cite these turns, by session and seq."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    for session_id, seq, own in connection.execute(sql.fact_terms, {"turns": json.dumps(list(turns))}):
        found[session_id, seq] = found.get((session_id, seq), frozenset()) | frozenset(own.split())
    return found
