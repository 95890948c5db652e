"""PostgreSQL's queries.

`passages.words` is a text search vector with a GIN index. Its lexemes are the terms that the project has made (stems of
words) and the tags, as they are, so no parser or dictionary of PostgreSQL changes them. The first letter says where
each stands: own words, the words of the turn before (p) or after (f), tags. PostgreSQL has no BM25, so the query
computes it, with FTS5's constants and weights. How often a passage repeats a word does not count.

Its errors become plain sentences that say what to do. A message of PostgreSQL may hold values, so only those are passed
on that name tables or the server, never data.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy.exc import DBAPIError

from bot.store.dialects.port import AWAY, BROKEN, FULL, UNWRITABLE, DialectSql, Query, row_conditions
from bot.store.search.tags import FACT_KIND, NOTHING_TAG, tag_clauses
from bot.texts.text import OperatorText
from compaction.errors import StoreError

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


_LOCKED = OperatorText(
    "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
    "wait until it has finished.",
    AWAY,
)
_SLOW = OperatorText("{path} did not answer in time. Look at the load of its server and at the network.", AWAY)
_REFUSED = OperatorText("{path} refuses the user or password of ROOMTONE_DATABASE_URL. Correct it in .env.", BROKEN)
_ABSENT = OperatorText("{path} does not exist. Create it on its server: CREATE DATABASE name OWNER user.", BROKEN)
_UNENCRYPTED = OperatorText(
    "{path} cannot be reached over TLS in the way that sslmode in ROOMTONE_DATABASE_URL asks for. Check that its "
    "server offers TLS, and name the file with the certificate of the authority that vouches for it: sslrootcert=FILE.",
    AWAY,
)
_CROWDED = OperatorText(
    "{path} accepts no further connection. Raise max_connections on its server, or stop what holds them.", AWAY
)
_AWAY = OperatorText("{path} is away: its server was stopped, or the network between failed. Look at both.", AWAY)
# Keyed by SQLSTATE or its class (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_SENTENCES: dict[str, OperatorText] = {
    "08": _AWAY,
    "25006": OperatorText(
        "{path} cannot be written: it is read-only. ROOMTONE_DATABASE_URL must name the primary server, and "
        "default_transaction_read_only must be off.",
        UNWRITABLE,
    ),
    "25P03": _SLOW,
    "28": _REFUSED,
    "3D": _ABSENT,
    "40P01": _LOCKED,
    "42501": OperatorText(
        "The user of ROOMTONE_DATABASE_URL may not do what is needed in {path}. Make it the owner: ALTER DATABASE name "
        "OWNER TO user.",
        BROKEN,
    ),
    "53100": OperatorText(
        "The disk of {path} is full, so nothing more can be stored. Free some space on its server.", FULL
    ),
    "53200": OperatorText("There is no memory left for {path}. Free some memory on its server.", BROKEN),
    "53300": _CROWDED,
    "55P03": _LOCKED,
    "57014": _SLOW,
    "57P": _AWAY,
    "58": OperatorText(
        "The disk failed while {path} was read or written. Look at its server and the server's log.", BROKEN
    ),
    "XX": OperatorText("{path} is damaged. Look at the log of its server, and restore a backup.", BROKEN),
}
# Classes whose messages name tables, columns and functions only.
_ABOUT_SCHEMA = "42"


def postgresql_failure(error: BaseException, place: str) -> StoreError:
    """Return a `StoreError` that explains `error` and gives the remedy. `place`: what sentences call the database."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TimeoutError):
        return StoreError(_SLOW.fill(path=place))
    cause: BaseException | None = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None) or ""
    for prefix, sentence in _SENTENCES.items():
        if state.startswith(prefix):
            return StoreError(sentence.fill(path=place))
    if isinstance(cause, OSError) or (isinstance(cause, psycopg.OperationalError) and not state):
        return StoreError(_unconnected(str(cause)).fill(path=place))
    what = type(cause).__name__
    if isinstance(cause, psycopg.Error) and state.startswith(_ABOUT_SCHEMA):
        what = f"{what}: {cause.diag.message_primary}"
    return StoreError(OperatorText("{path} refused a request ({what}).", BROKEN, path=place, what=what))


def _unconnected(message: str) -> OperatorText:
    """Return the sentence for a connection that was not made or has ended. libpq tells the reason in words alone."""
    for words, sentence in (
        (("password", "authentication", "pg_hba", "role"), _REFUSED),
        # A file of certificates may not exist either.
        (("certificate", "sslmode", "does not support SSL"), _UNENCRYPTED),
        (("does not exist",), _ABSENT),
        (("too many clients", "remaining connection slots"), _CROWDED),
        (("closed", "lost", "terminat", "starting up", "shutting down"), _AWAY),
    ):
        if any(each in message for each in words):
            return sentence
    return OperatorText(
        "{path} cannot be reached. Check that PostgreSQL runs there, that ROOMTONE_DATABASE_URL names it, and the "
        "network between.",
        AWAY,
    )
