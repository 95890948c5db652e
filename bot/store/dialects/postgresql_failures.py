"""Turns PostgreSQL's errors into plain sentences that say what to do.

A message of PostgreSQL may hold values, so only those are passed on that name tables or the server, never data.
"""

from __future__ import annotations

import psycopg
from sqlalchemy.exc import DBAPIError

from bot.texts.text import Text
from compaction.errors import StoreError

_LOCKED = Text(
    "{path} is locked: another process is writing to it. Stop the other bot or tool that uses it, or "
    "wait until it has finished."
)
_SLOW = Text("{path} did not answer in time. Look at the load of its server and at the network.")
_REFUSED = Text("{path} refuses the user or password of ROOMTONE_DATABASE_URL. Correct it in .env.")
_ABSENT = Text("{path} does not exist. Create it on its server: CREATE DATABASE name OWNER user.")
_UNENCRYPTED = Text(
    "{path} cannot be reached over TLS in the way that sslmode in ROOMTONE_DATABASE_URL asks for. Check that its "
    "server offers TLS, and name the file with the certificate of the authority that vouches for it: sslrootcert=FILE."
)
_CROWDED = Text("{path} accepts no further connection. Raise max_connections on its server, or stop what holds them.")
_AWAY = Text("{path} is away: its server was stopped, or the network between failed. Look at both.")
# Keyed by SQLSTATE or its class (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_SENTENCES: dict[str, Text] = {
    "08": _AWAY,
    "25006": Text(
        "{path} cannot be written: it is read-only. ROOMTONE_DATABASE_URL must name the primary server, and "
        "default_transaction_read_only must be off."
    ),
    "25P03": _SLOW,
    "28": _REFUSED,
    "3D": _ABSENT,
    "40P01": _LOCKED,
    "42501": Text(
        "The user of ROOMTONE_DATABASE_URL may not do what is needed in {path}. Make it the owner: ALTER DATABASE name "
        "OWNER TO user."
    ),
    "53100": Text("The disk of {path} is full, so nothing more can be stored. Free some space on its server."),
    "53200": Text("There is no memory left for {path}. Free some memory on its server."),
    "53300": _CROWDED,
    "55P03": _LOCKED,
    "57014": _SLOW,
    "57P": _AWAY,
    "58": Text("The disk failed while {path} was read or written. Look at its server and the server's log."),
    "XX": Text("{path} is damaged. Look at the log of its server, and restore a backup."),
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
    return StoreError(Text("{path} refused a request ({what}).", path=place, what=what))


def _unconnected(message: str) -> Text:
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
    return Text(
        "{path} cannot be reached. Check that PostgreSQL runs there, that ROOMTONE_DATABASE_URL names it, and the "
        "network between."
    )
