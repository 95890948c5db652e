"""PostgreSQL's queries.

`passages.words` is a text search vector with a GIN index. Its lexemes are the terms that the project has made (stems of
words) and the tags, as they are, so no parser or dictionary of PostgreSQL changes them. The first letter tells terms
(o) from tags (t).

Its errors become plain sentences that say what to do. A message of PostgreSQL may hold values, so only those are passed
on that name tables or the server, never data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from sqlalchemy.exc import DBAPIError

from bot.store.dialects.port import AWAY, BROKEN, FULL, UNWRITABLE, DialectSql
from bot.store.dialects.search_sql import Conditions, Matched, SearchSql
from bot.store.search.tags import NOTHING_TAG, Clauses, left_out_tags, tag_clauses
from bot.texts.text import OperatorText
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection

    from compaction.memory.passage import Scope

# A lexeme has at most 2,046 bytes. `roomtone_words` in the database cuts there too.
_MAX_TERM_CHARS = 500
_READABLE = """
    SELECT value ->> 0 AS session_id, (value ->> 1)::float8 AS since, (value ->> 2)::float8 AS until
    FROM json_array_elements(CAST(:readable AS json)) AS value
"""


def _matched(name: str) -> Matched:
    return Matched("passages p", "p.id", f"p.words @@ CAST(:{name} AS tsquery)")


def _match(term: str | None, scope: Scope) -> str:
    return match_expression(term, tag_clauses(scope), left_out_tags(scope))


def _tagged(scope: Scope) -> Conditions:
    match = _match(None, scope)
    return Conditions((_matched("tagged").condition,), {"tagged": match}) if match else Conditions()


def match_expression(term: str | None, clauses: Clauses, left_out: Collection[str] = ()) -> str:
    """Return the text of a tsquery for passages with a term (None: any) within the clauses, without any of the tags
    that are `left_out`. An empty result means no condition.
    """
    wanted = [] if term is None else [_quoted("o", term)]
    for alternatives in clauses:
        either = [
            "(" + " & ".join(_quoted("t", tag) for tag in sorted(needed)) + ")" for needed in alternatives if needed
        ]
        # A clause without alternatives matches nothing.
        wanted.append("(" + (" | ".join(either) or _quoted("t", NOTHING_TAG)) + ")")
    wanted += [f"!{_quoted('t', tag)}" for tag in sorted(left_out)]
    return " & ".join(wanted)


def _quoted(place: str, term: str) -> str:
    """Return a lexeme of a tsquery. Terms and tags contain only letters and digits, so nothing in them is syntax."""
    return f"'{place}{term[:_MAX_TERM_CHARS]}'"


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
    search=SearchSql(_matched, _match, _tagged, "JOIN", _READABLE),
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
