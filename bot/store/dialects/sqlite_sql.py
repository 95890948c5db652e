"""SQLite's queries: JSON functions for lists, and FTS5 for full text, which ranks by BM25 itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.store.dialects.port import DialectSql, Query, row_conditions
from bot.store.search.tags import FACT_KIND, NOTHING_TAG, place_tags, tag_clauses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.store.search.tags import Clauses
    from compaction.memory.passage import Scope

# Column weights: a turn's own words 1, its neighbours' words 0.5, tags 0.
_RANK = "bm25(1.0, 0.5, 0.5, 0.0)"
_INDEXED = "passage_index f JOIN passages p ON p.id = f.rowid"
_COUNTS = """
    SELECT NULL, max(id) FROM passages
    UNION ALL SELECT term, doc FROM passage_terms WHERE term IN (SELECT value FROM json_each(:terms))
"""


def _count_terms(terms: Sequence[str]) -> Query:
    return Query(_COUNTS, {"terms": json.dumps(list(terms))})


def _search_words(terms: Sequence[str], scope: Scope, limit: int, newest: int | None) -> Query:
    # BM25 scores every word of the query, so tags that half the passages have are checked in the row instead.
    conditions, values = row_conditions(scope, newest)
    narrow = replace(scope, guild_id=None, channels=None)
    values["match"] = match_expression(any_term_query(terms), tag_clauses(narrow))
    conditions += ["passage_index MATCH :match", f"rank MATCH '{_RANK}'"]
    for tags in place_tags(scope):
        # With a space on both sides: a name's tag may end like the tag of a channel.
        conditions.append("(" + " OR ".join(f"instr(' ' || p.tags, :{tag}) > 0" for tag in tags) + ")")
        values |= {tag: f" {tag} " for tag in tags}
    return _select_ids(_INDEXED, conditions, values, "f.rank", limit)


def _search_newest(scope: Scope, limit: int) -> Query:
    conditions, values = row_conditions(scope, None)
    conditions.append(f"p.kind <> '{FACT_KIND}'")
    match = match_expression("", tag_clauses(scope))
    if not match:
        return _select_ids("passages p", conditions, values, "p.id DESC", limit)
    values["match"] = match
    conditions.append("passage_index MATCH :match")
    return _select_ids(_INDEXED, conditions, values, "f.rowid DESC", limit)


def _select_ids(source: str, conditions: Sequence[str], values: Mapping[str, object], order: str, limit: int) -> Query:
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    # No outside text is in the SQL: words are parameters.
    sql = f"SELECT p.id FROM {source} {where}ORDER BY {order} LIMIT :limit"  # noqa: S608
    return Query(sql, {**values, "limit": limit})


def any_term_query(terms: Sequence[str]) -> str:
    """Return the FTS5 query for passages with any of `terms` in them or in their neighbours."""
    return f"{{own preceding following}} : ({' OR '.join(map(_quoted, terms))})" if terms else ""


def match_expression(words: str, clauses: Clauses) -> str:
    """Return the FTS5 query for `words` (a query or empty) within the clauses. An empty result means no condition.

    Terms and tags contain only letters and digits, so FTS5 cannot mistake them for syntax.
    """
    wanted = [f"({words})"] if words else []
    for alternatives in clauses:
        either = [f"({' AND '.join(map(_quoted, sorted(needed)))})" for needed in alternatives if needed]
        # A clause without alternatives matches nothing.
        wanted.append(f"({{tags}} : ({' OR '.join(either) or _quoted(NOTHING_TAG)}))")
    return " AND ".join(wanted)


def _quoted(term: str) -> str:
    return f'"{term}"'


SQLITE_SQL = DialectSql(
    first_speakers="""
        SELECT seq, parts -> '$[0][0]' FROM turns WHERE session_id = :session AND NOT tombstone ORDER BY seq
    """,
    speakers="""
        SELECT part.value -> 0 AS speaker_id, part.value -> 1 AS name FROM turns, json_each(turns.parts) AS part
        WHERE turns.session_id = :session GROUP BY speaker_id, name ORDER BY min(turns.seq)
    """,
    speakers_elsewhere="""
        SELECT DISTINCT part.value -> 0 FROM sessions JOIN turns ON turns.session_id = sessions.id,
        json_each(turns.parts) AS part
        WHERE sessions.guild_id = :guild AND sessions.id <> :session AND turns.started_at < :until
    """,
    count_terms=_count_terms,
    search_words=_search_words,
    search_newest=_search_newest,
)
