"""The bots' sessions on the main gateway, which the guilds of one local Discord share: what each sees, and what is sent
again after its websocket broke.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rehearsal.discord.guild.identity import gets
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.timers import Timers
from rehearsal.discord.websockets import GatewayConnection, ResumableSession

_DISPATCH = 0
_REPLAYED_EVENTS = 500
# A guild's id holds its time of creation above these bits (Discord's reference, "Sharding").
_SHARD_SHIFT = 22


@dataclass(slots=True, eq=False, kw_only=True)
class GatewaySession(ResumableSession):
    """One bot's session."""

    user_id: int
    intents: int
    shard: tuple[int, int] = (0, 1)
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    sequence: int = 0
    _replay: deque[Json] = field(default_factory=lambda: deque(maxlen=_REPLAYED_EVENTS))

    def sees(self, guild_id: int) -> bool:
        """Return whether the guild belongs to the session's shard."""
        number, count = self.shard
        return (guild_id >> _SHARD_SHIFT) % count == number

    def dispatch(self, event: str, data: object) -> None:
        """Send an event if the bot's intents ask for it, and keep it so that it can be sent again after a RESUME."""
        if not gets(event, data, user_id=self.user_id, intents=self.intents):
            return
        self.sequence += 1
        message = {"op": _DISPATCH, "s": self.sequence, "t": event, "d": data}
        self._replay.append(message)
        if self.connection is not None:
            self.connection.send_json(message)

    def resume(self, connection: GatewayConnection, after: int) -> None:
        """Continue on a new websocket, and resend the events that came after the sequence number `after`."""
        self.connection = connection
        for message in self._replay:
            if message["s"] > after:
                connection.send_json(message)


# How many sessions a bot may start in a day, and how many of them in so many seconds (`max_concurrency`).
SESSION_STARTS, START_CONCURRENCY, START_EVERY_S = 1000, 1, 5.0


class SessionTable:
    """All sessions, by their id and by their websocket. Use it only from the event loop's thread.

    *Ownership*: the timers of sessions; `close` cancels them.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, GatewaySession] = {}
        self._by_connection: dict[GatewayConnection, GatewaySession] = {}
        # How many sessions each bot has started.
        self.starts: dict[int, int] = {}
        # When each of them started one last, by what Discord counts together of its shards.
        self._started_at: dict[tuple[int, int], float] = {}
        # Of bots whose next session begins slowly: after how many seconds READY comes.
        self._ready_after_s: dict[int, float] = {}
        self._timers = Timers()

    def __len__(self) -> int:
        """Return the number of sessions that have begun and are not over."""
        return len(self._by_id)

    def close(self) -> None:
        """Cancel every timer."""
        for session in self._by_id.values():
            session.stop_expiry()
        self._timers.close()

    def start_limit(self, user_id: int) -> Json:
        """Return how often the bot may still connect, as GET /gateway/bot has it."""
        return {
            "total": SESSION_STARTS,
            "remaining": max(0, SESSION_STARTS - self.starts.get(user_id, 0)),
            "reset_after": 86_400_000,
            "max_concurrency": START_CONCURRENCY,
        }

    # --- which sessions there are ------------------------------------------------------------------------------

    def find(self, session_id: object) -> GatewaySession | None:
        """Return the session with this id, or None."""
        return self._by_id.get(str(session_id))

    def of_connection(self, connection: GatewayConnection) -> GatewaySession | None:
        """Return the session that has identified or resumed on this websocket, or None."""
        return self._by_connection.get(connection)

    def of_user(self, user_id: int) -> list[GatewaySession]:
        return [each for each in self._by_id.values() if each.user_id == user_id]

    def seeing(self, guild_id: int) -> list[GatewaySession]:
        """Return the sessions that get the events of a guild."""
        return [each for each in self._by_id.values() if each.sees(guild_id)]

    # --- how they begin and end --------------------------------------------------------------------------------

    def may_start(self, user_id: int, shard: int) -> bool:
        """Return whether Discord takes another session of this bot already. If so, the next has to wait."""
        who, now = (user_id, shard % START_CONCURRENCY), asyncio.get_running_loop().time()
        if now - self._started_at.get(who, float("-inf")) < START_EVERY_S:
            return False
        self._started_at[who] = now
        return True

    def identify(self, session: GatewaySession, connection: GatewayConnection) -> float:
        """Add a session's websocket. Return after how many seconds READY comes."""
        self.starts[session.user_id] = self.starts.get(session.user_id, 0) + 1
        self._by_connection[connection] = session
        return self._ready_after_s.pop(session.user_id, 0.0)

    def begin(self, session: GatewaySession) -> None:
        """Add a session that gets READY now."""
        self._by_id[session.id] = session

    def move(self, session: GatewaySession, connection: GatewayConnection) -> None:
        """Continue a session on another websocket, and cut off the one that it had."""
        if session.connection is not None:
            self._by_connection.pop(session.connection, None)
            session.connection.abort()
        session.stop_expiry()
        self._by_connection[connection] = session

    def disconnect(self, connection: GatewayConnection) -> GatewaySession | None:
        """Forget a websocket that is closed. Return the session that has no websocket now, or None."""
        session = self._by_connection.pop(connection, None)
        if session is None or session.connection is not connection:
            return None
        session.connection = None
        return session

    def end(self, session: GatewaySession) -> GatewayConnection | None:
        """Forget a session. Return the websocket that it had, or None."""
        session.stop_expiry()
        self._by_id.pop(session.id, None)
        connection, session.connection = session.connection, None
        if connection is not None:
            self._by_connection.pop(connection, None)
        return connection

    def delay_next(self, user_id: int, seconds: float) -> None:
        """Let READY of the bot's next session come so late."""
        self._ready_after_s[user_id] = seconds

    def soon(self, session: GatewaySession, pause_s: float, act: Callable[[], None]) -> None:
        """Act now, or after a pause if the client is still there."""

        def act_if_there() -> None:
            if session.connection is not None:
                act()

        self._timers.after(pause_s, act_if_there)
