"""The table of the bots' sessions: which websocket is whose, who sees a guild, and how often a bot may connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rehearsal.discord.gateway.session import GatewaySession
from rehearsal.discord.gateway.session_table import SESSION_STARTS, SessionTable

if TYPE_CHECKING:
    from rehearsal.discord.websocket.connection import GatewayConnection

BOT, OTHER = 1001, 1002
# Guilds of the first and the second of two shards.
FIRST, SECOND = 2 << 22, 3 << 22


class Socket:
    """A websocket that notes whether it was cut off."""

    def __init__(self) -> None:
        self.cut = False

    def abort(self) -> None:
        """Cut it off."""
        self.cut = True


def begun(table: SessionTable, user_id: int = BOT, *, shard: tuple[int, int] = (0, 1)) -> tuple[GatewaySession, Socket]:
    """Return a session that has begun, and its websocket."""
    socket = Socket()
    connection = cast("GatewayConnection", socket)
    session = GatewaySession(user_id=user_id, intents=0, connection=connection, shard=shard)
    table.identify(session, connection)
    table.begin(session)
    return session, socket


def test_each_start_counts() -> None:
    """A start counts for its bot alone, and the limit never falls below zero."""
    table = SessionTable()
    begun(table)
    begun(table)
    assert [table.start_limit(user_id)["remaining"] for user_id in (BOT, OTHER)] == [SESSION_STARTS - 2, SESSION_STARTS]
    table.starts[BOT] = SESSION_STARTS + 5
    assert table.start_limit(BOT)["remaining"] == 0


def test_a_session_sees_the_guilds_of_its_shard() -> None:
    """Without shards a session sees every guild."""
    table = SessionTable()
    whole, _ = begun(table, OTHER)
    halves = [begun(table, shard=(number, 2))[0] for number in (0, 1)]
    assert table.seeing(FIRST) == [whole, halves[0]]
    assert table.seeing(SECOND) == [whole, halves[1]]
    assert table.of_user(BOT) == halves


def test_a_websocket_that_closes_leaves_its_session_to_be_resumed() -> None:
    """The session stays under its id. Its next websocket takes over, and one that was still open is cut off."""
    table = SessionTable()
    session, socket = begun(table)
    first = cast("GatewayConnection", socket)
    assert table.of_connection(first) is session
    assert table.disconnect(first) is session
    assert (session.connection, table.of_connection(first), table.find(session.id)) == (None, None, session)
    assert table.disconnect(first) is None
    second, third = Socket(), Socket()
    for each in (second, third):
        connection = cast("GatewayConnection", each)
        table.move(session, connection)
        session.resume(connection, 0)
    assert (second.cut, third.cut) == (True, False)
    assert table.disconnect(cast("GatewayConnection", second)) is None
    assert session.connection is not None


def test_a_session_that_has_ended_is_unknown() -> None:
    """Neither its id nor its websocket finds it, and its websocket comes back for a last message."""
    table = SessionTable()
    session, socket = begun(table)
    assert table.end(session) is cast("GatewayConnection", socket)
    assert (len(table), table.find(session.id), table.of_connection(cast("GatewayConnection", socket))) == (
        0,
        None,
        None,
    )
    assert table.end(session) is None


def test_a_delay_holds_for_the_next_session_alone() -> None:
    """`delay_next` is for the next session of that bot."""
    table = SessionTable()
    table.delay_next(BOT, 0.7)
    connection = cast("GatewayConnection", Socket())
    delays = [
        table.identify(GatewaySession(user_id=user_id, intents=0, connection=connection), connection)
        for user_id in (OTHER, BOT, BOT)
    ]
    assert delays == [0.0, 0.7, 0.0]
