"""PostgreSQL's queries.

`passages.words` is a text search vector with a GIN index. Its lexemes are the terms that the project has made (stems of
words) and the tags, as they are, so no parser or dictionary of PostgreSQL changes them. The first letter says where
each stands: own words, the words of the turn before (p) or after (f), tags. PostgreSQL has no BM25, so the query
computes it, with FTS5's constants and weights. How often a passage repeats a word does not count.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bot.store.dialects.port import DialectSql, Query, row_conditions
from bot.store.search.tags import FACT_KIND, NOTHING_TAG, tag_clauses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.store.search.tags import Clauses
    from compaction.memory.passage import Scope

# A lexeme has at most 2,046 bytes. `roomtone_words` in the database cuts there too.
_MAX_TERM_CHARS = 500
# The average length of passages is taken from the newest ones.
_TYPICAL_OF = 500
# Each term as lexemes, and how many passages have it.
_ASKED = """
    SELECT term, in_own, in_preceding, in_following, holding FROM (
        SELECT term, ('''o' || term || '''')::tsquery AS in_own, ('''p' || term || '''')::tsquery AS in_preceding,
        ('''f' || term || '''')::tsquery AS in_following FROM json_array_elements_text(CAST(:terms AS json)) AS term
    ) terms CROSS JOIN LATERAL (
        SELECT count(*) AS holding FROM passages WHERE words @@ (in_own || in_preceding || in_following)
    ) counted
"""
_COUNTS = f"""
    SELECT NULL, max(id) FROM passages
    UNION ALL SELECT term, holding FROM ({_ASKED}) asked WHERE holding > 0
"""  # noqa: S608 - constants
# k1 = 1.2 and b = 0.75, as in FTS5.
_RANKED = f"""
    WITH asked AS MATERIALIZED (
        SELECT in_own, in_preceding, in_following,
        greatest(ln((total - holding + 0.5)::float8 / (holding + 0.5)::float8), 1e-6::float8) AS rarity
        FROM ({_ASKED}) counted CROSS JOIN (SELECT max(id) AS total FROM passages) t
    ), typical AS MATERIALIZED (
        SELECT avg(length(words))::float8 AS lexemes
        FROM (SELECT words FROM passages ORDER BY id DESC LIMIT {_TYPICAL_OF}) newest
    )
    SELECT p.id FROM passages p CROSS JOIN LATERAL (
        SELECT sum(rarity * found * 2.2::float8
            / (found + 1.2::float8 * (0.25::float8 + 0.75::float8 * length(p.words) / lexemes))) AS score
        FROM asked CROSS JOIN typical CROSS JOIN LATERAL (
            SELECT (p.words @@ in_own)::int
            + 0.5::float8 * ((p.words @@ in_preceding)::int + (p.words @@ in_following)::int) AS found
        ) weighed
        WHERE found > 0
    ) ranked
    WHERE {{conditions}} ORDER BY ranked.score DESC, p.id LIMIT :limit
"""  # noqa: S608 - constants


def _count_terms(terms: Sequence[str]) -> Query:
    return Query(_COUNTS, {"terms": _encoded(terms)})


def _search_words(terms: Sequence[str], scope: Scope, limit: int, newest: int | None) -> Query:
    conditions, values = row_conditions(scope, newest)
    conditions.append("p.words @@ CAST(:match AS tsquery)")
    anywhere = " | ".join(_quoted(place, term) for term in _cut(terms) for place in "opf")
    values |= {"match": match_expression(f"({anywhere})", tag_clauses(scope)), "terms": _encoded(terms), "limit": limit}
    return Query(_RANKED.format(conditions=" AND ".join(conditions)), values)


def _search_newest(scope: Scope, limit: int) -> Query:
    conditions, values = row_conditions(scope, None)
    conditions.append(f"p.kind <> '{FACT_KIND}'")
    if match := match_expression("", tag_clauses(scope)):
        values["match"] = match
        conditions.append("p.words @@ CAST(:match AS tsquery)")
    # No outside text is in the SQL: words are parameters.
    sql = f"SELECT p.id FROM passages p WHERE {' AND '.join(conditions)} ORDER BY p.id DESC LIMIT :limit"  # noqa: S608
    return Query(sql, {**values, "limit": limit})


def match_expression(words: str, clauses: Clauses) -> str:
    """Return the text of a tsquery for `words` (one in brackets, or empty) within the clauses."""
    wanted = [words] if words else []
    for alternatives in clauses:
        either = [
            "(" + " & ".join(_quoted("t", tag) for tag in _cut(sorted(needed))) + ")"
            for needed in alternatives
            if needed
        ]
        # A clause without alternatives matches nothing.
        wanted.append("(" + (" | ".join(either) or _quoted("t", NOTHING_TAG)) + ")")
    return " & ".join(wanted)


def _quoted(place: str, term: str) -> str:
    """Return a lexeme of a tsquery. Terms and tags contain only letters and digits, so nothing in them is syntax."""
    return f"'{place}{term}'"


def _cut(terms: Sequence[str]) -> list[str]:
    return [term[:_MAX_TERM_CHARS] for term in terms]


def _encoded(terms: Sequence[str]) -> str:
    return json.dumps(_cut(terms))


POSTGRESQL_SQL = DialectSql(
    # Without `->`: it decodes what it passes by, and a name may have characters that only JSON can write.
    first_speakers="""
        SELECT seq, (SELECT id::text FROM json_array_elements(parts::json) WITH ORDINALITY AS p (part, place),
            json_array_elements(part) WITH ORDINALITY AS f (id, field) WHERE place = 1 AND field = 1)
        FROM turns WHERE session_id = :session AND NOT tombstone ORDER BY seq
    """,
    speakers="""
        SELECT speaker_id, name FROM (
            SELECT seq, min(value::text) FILTER (WHERE field = 1) AS speaker_id,
            min(value::text) FILTER (WHERE field = 2) AS name
            FROM turns, json_array_elements(turns.parts::json) WITH ORDINALITY AS p (part, place),
                json_array_elements(part) WITH ORDINALITY AS f (value, field)
            WHERE turns.session_id = :session GROUP BY seq, place
        ) spoken GROUP BY speaker_id, name ORDER BY min(seq)
    """,
    speakers_elsewhere="""
        SELECT DISTINCT f.value::text FROM sessions JOIN turns ON turns.session_id = sessions.id,
            json_array_elements(turns.parts::json) AS part,
            json_array_elements(part) WITH ORDINALITY AS f (value, field)
        WHERE sessions.guild_id = :guild AND sessions.id <> :session AND turns.started_at < :until
            AND field = 1
    """,
    count_terms=_count_terms,
    search_words=_search_words,
    search_newest=_search_newest,
)
