"""The main gateway. Bots identify here, receive the guild and its events, and ask for voice (op 4).

The gateway sends an event for each change in `LocalGuild`. A session gets those of its intents, and of its shard's
guilds only. A session whose websocket broke can be resumed for a while (op 6), also beside a new one of the same bot. A
session ends if it was closed on purpose, or if its client sends no heartbeats. A bot's voice state belongs to the
session that asked for it last, and ends with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import structlog

from rehearsal.discord.gateway.sessions import GatewaySession, SessionTable
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.granted import channel_permissions
from rehearsal.discord.guild.identity import KNOWN, PRIVILEGED, Intent, bot_of_token, shard_of
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.guild.state import LocalGuild, VoiceCredentials
from rehearsal.discord.timers import Timers
from rehearsal.discord.websockets import GatewayConnection, HeartbeatWatch
from rehearsal.errors import LocalDiscordError

_log = structlog.get_logger()

_HEARTBEAT, _IDENTIFY, _PRESENCE, _VOICE_STATE, _RESUME, _RECONNECT = 1, 2, 3, 4, 6, 7
_REQUEST_MEMBERS, _INVALID_SESSION, _HELLO, _HEARTBEAT_ACK = 8, 9, 10, 11
HEARTBEAT_S = 41.25
# The delay before a heartbeat is acknowledged. discord.py stores the time of a heartbeat only after sending it, so an
# immediate answer is compared with the heartbeat before and looks a whole interval late ("Can't keep up").
_HEARTBEAT_ACK_DELAY_S = 0.02
# Discord keeps a broken session, and its bot in voice, for some 40 seconds: it says so nowhere, but people who restart
# bots see it (discord.js issue 3417). Here the session ends sooner, for rehearsals that kill the bot.
MAIN_SESSION_S = 10.0
_LEAVING_CODES = frozenset({1000, 1001})
# So many messages a websocket may send in so many seconds.
MOST_SENT, SENT_WITHIN_S = 120, 60.0


class GatewayCloseCode(IntEnum):
    """The codes with which the gateway closes a connection (Discord's reference, "Gateway close event codes")."""

    UNKNOWN_OPCODE = 4001
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    ALREADY_AUTHENTICATED = 4005
    INVALID_SEQUENCE = 4007
    RATE_LIMITED = 4008
    SESSION_TIMED_OUT = 4009
    INVALID_SHARD = 4010
    INVALID_VERSION = 4012
    INVALID_INTENTS = 4013
    DISALLOWED_INTENTS = 4014


# After these a session cannot be resumed.
_ENDING_CODES = frozenset({GatewayCloseCode.INVALID_SEQUENCE, GatewayCloseCode.SESSION_TIMED_OUT})


class Gateway:
    """One guild's gateway. Every change of a voice state goes through this class.

    `beside`: the gateway of another guild of the same Discord. The two share their sessions; only the first of them
    gets messages from bots. `main_session_s`: how long a session lives on after its websocket broke.
    """

    def __init__(
        self,
        state: LocalGuild,
        *,
        url: Callable[[], str],
        voice_endpoint: Callable[[], str],
        disconnect_voice: Callable[[int], None],
        main_session_s: float = MAIN_SESSION_S,
        beside: Gateway | None = None,
    ) -> None:
        self._state = state
        self._url = url
        self._voice_endpoint = voice_endpoint
        self._disconnect_voice = disconnect_voice
        self._main_session_s = main_session_s
        self._heartbeats = HeartbeatWatch(HEARTBEAT_S, self._heard_nothing)
        self.sessions: SessionTable = SessionTable() if beside is None else beside.sessions
        self._guilds: list[Gateway] = [] if beside is None else beside._guilds
        self._guilds.append(self)
        # When each websocket sent its last messages.
        self._sent: dict[GatewayConnection, deque[float]] = {}
        # How long a voice server is looked for (the fault "no_voice_server").
        self.voice_server_after_s = 0.0
        self._timers = Timers()
        # The sessions to which the bots' voice states in the guild belong.
        self._voice_sessions: dict[int, str] = {}
        # What GET /gateway/bot says.
        self.recommended_shards = 1

    def close(self) -> None:
        self._heartbeats.close()
        self.sessions.close()
        self._timers.close()

    def online(self, user_id: int) -> bool:
        """Return whether the bot has a session with a websocket that sees the guild."""
        return any(each.user_id == user_id and each.connection for each in self._seeing())

    # --- voice -------------------------------------------------------------------------------------------------

    def join(
        self, user_id: int, channel_id: int, *, self_mute: bool = False, self_deaf: bool = False, anew: bool = False
    ) -> VoiceCredentials:
        """Move a member into a voice channel, send the events, and return new credentials. `anew`: with another voice
        session, also in the same channel.
        """
        before = self._state.voice_channel_of(user_id)
        state = self._state.enter_voice(user_id, channel_id, self_mute=self_mute, self_deaf=self_deaf, anew=anew)
        if before is not None and before != channel_id:
            self._disconnect_voice(user_id)
        self.broadcast("VOICE_STATE_UPDATE", state)
        return VoiceCredentials(state=state, server=self.announce_voice_server(user_id))

    def leave(self, user_id: int, *, notified: bool = True) -> bool:
        """Remove a member from voice and, if `notified`, send the event. Return False if they were in no channel."""
        state = self._state.leave_voice(user_id)
        self._voice_sessions.pop(user_id, None)
        if state is None:
            return False
        if notified:
            self.broadcast("VOICE_STATE_UPDATE", state)
        self._disconnect_voice(user_id)
        return True

    def announce_voice_server(self, user_id: int) -> Json:
        """Send a bot a VOICE_SERVER_UPDATE with a new token; return its data. While a voice server is looked for, it
        names none, and another one follows.
        """
        server = self._state.issue_voice_server(user_id, self._voice_endpoint())
        if self.voice_server_after_s:
            self.send_to(user_id, "VOICE_SERVER_UPDATE", {**server, "endpoint": None})
        self._timers.after(self.voice_server_after_s, self.send_to, user_id, "VOICE_SERVER_UPDATE", server)
        return server

    # --- the guild ---------------------------------------------------------------------------------------------

    def become(self, guild: GuildSpec) -> None:
        """Let the guild be like this from now on, and send what has changed of its channels, roles and members. Who is
        in a voice channel that is deleted, or no member any more, leaves it.
        """
        before = self._state.guild
        members = {each.id: each for each in guild.members}
        for state in list(self._state.voice_states.values()):
            if int(state["user_id"]) not in members or not guild.is_voice(int(state["channel_id"])):
                self.leave(int(state["user_id"]))
        self._state.guild, about = guild, {"guild_id": str(guild.id)}
        for kind, found, was in (
            ("CHANNEL", payloads.channels(guild), payloads.channels(before)),
            ("GUILD_ROLE", payloads.roles(guild), payloads.roles(before)),
        ):
            now, then = ({each["id"]: each for each in there} for there in (found, was))
            for each in then.keys() - now.keys():
                gone = then[each] if kind == "CHANNEL" else {"role_id": each}
                self.broadcast(f"{kind}_DELETE", {**gone, **about})
            for each, part in now.items():
                if part != then.get(each):
                    told = part if kind == "CHANNEL" else {"role": part}
                    self.broadcast(f"{kind}_{'UPDATE' if each in then else 'CREATE'}", {**told, **about})
        for member in before.members:
            if member.id not in members:
                self.broadcast("GUILD_MEMBER_REMOVE", {**about, "user": payloads.guild_user(before, member.id)})
            elif member != members[member.id]:
                self.broadcast("GUILD_MEMBER_UPDATE", {**self._state.member(member.id), **about})

    def kick(self, bot_id: int) -> None:
        """Take a bot off the server. The local guild keeps it as a member, for whoever starts it again."""
        self.leave(bot_id, notified=False)
        self.send_to(bot_id, "GUILD_DELETE", {"id": str(self._state.guild.id)})

    def change_thread(self, thread_id: int, **changes: bool) -> Json:
        """Archive, lock or open a thread, and return it. `changes`: `archived`, `locked`."""
        thread = self._state.change_thread(thread_id, changes)
        self.broadcast("THREAD_UPDATE", thread)
        return thread

    def delete_thread(self, thread_id: int) -> None:
        """Delete a thread with its messages."""
        gone = self._state.delete_thread(thread_id)
        self.broadcast("THREAD_DELETE", {key: gone[key] for key in ("id", "guild_id", "parent_id", "type")})

    def invalidate(
        self, user_id: int, *, stays_in_voice: float = 1, ready_after_s: float = 0.0, resumable: float = 0
    ) -> None:
        """Invalidate a bot's sessions (op 9). Unless they are `resumable`, they end, and its client identifies again.

        `ready_after_s`: so long after that READY comes, and after the same time again the guild.
        """
        for session in self.sessions.of_user(user_id):
            connection = session.connection if resumable else self.sessions.end(session)
            if connection is not None:
                connection.send_json({"op": _INVALID_SESSION, "d": bool(resumable)})
        if ready_after_s:
            self.sessions.delay_next(user_id, ready_after_s)
        if not stays_in_voice:
            self.leave(user_id)

    def ask_to_reconnect(self, user_id: int) -> None:
        """Tell a bot's client to open another websocket and to resume there (op 7)."""
        for connection in self._connections_of(user_id):
            connection.send_json({"op": _RECONNECT, "d": None})

    def cut_off(self, user_id: int, *, close_code: float = 0) -> None:
        """Close a bot's websockets with a close code; 0: without a close frame. 4007 and 4009 end the session too."""
        for connection in self._connections_of(user_id):
            self._close(connection, int(close_code))

    def _close(self, connection: GatewayConnection, code: int) -> None:
        session = self.sessions.of_connection(connection)
        if code in _ENDING_CODES and session is not None:
            self._end(session)
        if code:
            connection.close(code, "The gateway closed this connection.")
        else:
            connection.abort()

    def _connections_of(self, user_id: int) -> list[GatewayConnection]:
        found = [session.connection for session in self.sessions.of_user(user_id)]
        return [connection for connection in found if connection is not None]

    def _heard_nothing(self, connection: GatewayConnection) -> None:
        self._close(connection, GatewayCloseCode.SESSION_TIMED_OUT)

    # --- events ------------------------------------------------------------------------------------------------

    def _seeing(self) -> list[GatewaySession]:
        """Return the sessions that get the events of the guild."""
        return self.sessions.seeing(self._state.guild.id)

    def broadcast(self, event: str, data: object) -> None:
        for session in self._seeing():
            session.dispatch(event, data)

    def send_to(self, user_id: int, event: str, data: object) -> None:
        for session in self._seeing():
            if session.user_id == user_id:
                session.dispatch(event, data)

    def broadcast_message(self, event: str, message: Json) -> None:
        """Send a message event to all bots that see the channel, to each what it may read."""
        for session in self._seeing():
            if not self._state.permissions_in(int(message["channel_id"]), session.user_id):
                continue
            session.dispatch(event, payloads.readable(message, user_id=session.user_id, intents=session.intents))

    # --- ConnectionHandler ----------------------------------------------------------------------------------------

    def opened(self, connection: GatewayConnection) -> None:
        """Say hello (op 10)."""
        self._heartbeats.opened(connection)
        connection.send_json({"op": _HELLO, "d": {"heartbeat_interval": self._heartbeats.interval_ms}})

    def text(self, connection: GatewayConnection, message: dict[str, Any]) -> None:
        """Handle a message from a bot."""
        opcode = message["op"]
        data = message.get("d")
        fields = data if isinstance(data, dict) else {}
        session = self.sessions.of_connection(connection)
        now, sent = asyncio.get_running_loop().time(), self._sent.setdefault(connection, deque(maxlen=MOST_SENT))
        if len(sent) == MOST_SENT and now - sent[0] < SENT_WITHIN_S:
            connection.close(GatewayCloseCode.RATE_LIMITED, "Rate limited.")
            return
        sent.append(now)
        if opcode == _HEARTBEAT:
            self._heartbeats.beat(connection)
            asyncio.get_running_loop().call_later(_HEARTBEAT_ACK_DELAY_S, connection.send_json, {"op": _HEARTBEAT_ACK})
        elif session is None and opcode == _IDENTIFY:
            self._identify(connection, fields)
        elif session is None and opcode == _RESUME:
            self._resume(connection, fields)
        elif session is None:
            connection.close(GatewayCloseCode.NOT_AUTHENTICATED, "Not authenticated.")
        elif opcode in (_IDENTIFY, _RESUME):
            connection.close(GatewayCloseCode.ALREADY_AUTHENTICATED, "Already authenticated.")
        elif opcode == _VOICE_STATE:
            for guild in self._asked_for(session, fields):
                guild._change_voice_state(session, fields)
        elif opcode == _REQUEST_MEMBERS:
            for guild in self._asked_for(session, fields):
                guild._send_members(session, fields)
        elif opcode != _PRESENCE:
            _log.info("gateway_opcode_ignored", opcode=opcode)

    def binary(self, connection: GatewayConnection, body: bytes) -> None:
        """Close the connection: the local gateway accepts only JSON."""
        connection.close(GatewayCloseCode.UNKNOWN_OPCODE, f"The gateway takes JSON, not {len(body)} bytes.")

    def closed(self, connection: GatewayConnection) -> None:
        """End the session, or keep it for a resume if the websocket broke."""
        self._heartbeats.closed(connection)
        self._sent.pop(connection, None)
        session = self.sessions.disconnect(connection)
        if session is None:
            return
        if connection.close_code in _LEAVING_CODES and not connection.closed_by_us:
            self._end(session)
        else:
            session.expiry = asyncio.get_running_loop().call_later(self._main_session_s, self._end, session)

    # --- helpers -----------------------------------------------------------------------------------------------

    def _identify(self, connection: GatewayConnection, data: dict[str, Any]) -> None:
        bot_id = bot_of_token(self._state.guild, data.get("token"))
        shard, intents = shard_of(data.get("shard")), data.get("intents")
        if bot_id is None:
            connection.close(GatewayCloseCode.AUTHENTICATION_FAILED, "Authentication failed.")
        elif shard is None:
            connection.close(GatewayCloseCode.INVALID_SHARD, "Invalid shard.")
        elif not isinstance(intents, int) or intents & ~KNOWN:
            connection.close(GatewayCloseCode.INVALID_INTENTS, "Invalid intent(s).")
        elif intents & PRIVILEGED & ~self._state.guild.member(bot_id).privileged_intents:
            connection.close(GatewayCloseCode.DISALLOWED_INTENTS, "Disallowed intent(s).")
        elif not self.sessions.may_start(bot_id, shard[0]):
            connection.send_json({"op": _INVALID_SESSION, "d": False})
        else:
            session = GatewaySession(user_id=bot_id, intents=intents, connection=connection, shard=shard)
            pause_s = self.sessions.identify(session, connection)
            self.sessions.soon(session, pause_s, lambda: self._begin(session, pause_s))

    def _begin(self, session: GatewaySession, pause_s: float) -> None:
        self.sessions.begin(session)
        seen = [each._state for each in self._guilds if session.sees(each._state.guild.id)]
        ready = {
            "v": 10,
            "user": payloads.guild_user(self._state.guild, session.user_id),
            "guilds": [{"id": str(state.guild.id), "unavailable": True} for state in seen],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": self._url(),
            "application": {"id": str(session.user_id), "flags": 0},
            "shard": list(session.shard),
        }
        session.dispatch("READY", ready)
        self.sessions.soon(session, pause_s, lambda: self._show(session, seen))

    def _show(self, session: GatewaySession, seen: Sequence[LocalGuild]) -> None:
        """Send the guilds with who is in voice, and with all other members only to a bot that sees presences."""
        for state in seen:
            voice_states = list(state.voice_states.values()) if session.intents & Intent.GUILD_VOICE_STATES else []
            in_voice = {each["user_id"] for each in state.voice_states.values()} | {str(session.user_id)}
            everybody = session.intents & Intent.GUILD_PRESENCES
            members = [state.member(each.id) for each in state.guild.members if everybody or str(each.id) in in_voice]
            session.dispatch("GUILD_CREATE", payloads.guild_create(state.guild, members, voice_states))
        shard, shard_count = session.shard
        _log.info("bot_identified", user_id=session.user_id, shard=shard, shard_count=shard_count)

    def _resume(self, connection: GatewayConnection, data: dict[str, Any]) -> None:
        session = self.sessions.find(data.get("session_id"))
        bot_id = bot_of_token(self._state.guild, data.get("token"))
        if bot_id is None:
            connection.close(GatewayCloseCode.AUTHENTICATION_FAILED, "Authentication failed.")
        elif session is None or session.user_id != bot_id:
            connection.send_json({"op": _INVALID_SESSION, "d": False})
        else:
            self.sessions.move(session, connection)
            after = data.get("seq")
            session.resume(connection, after if isinstance(after, int) else 0)
            session.dispatch("RESUMED", {})

    def _asked_for(self, session: GatewaySession, data: dict[str, Any]) -> list[Gateway]:
        """Return the guild that a bot's message is about, if its session sees it."""
        asked = str(data.get("guild_id"))
        return [
            each for each in self._guilds if str(each._state.guild.id) == asked and session.sees(each._state.guild.id)
        ]

    def _send_members(self, session: GatewaySession, asked: dict[str, Any]) -> None:
        """Answer a request for members. Only a bot with their intent may ask for all of them."""
        if asked.get("user_ids") or asked.get("query") or session.intents & Intent.GUILD_MEMBERS:
            for chunk in payloads.members_chunks(self._state.guild, asked, self._state.member):
                session.dispatch("GUILD_MEMBERS_CHUNK", chunk)
        else:
            _log.warning("members_not_sent", user_id=session.user_id)

    def _change_voice_state(self, session: GatewaySession, data: dict[str, Any]) -> None:
        wanted = data.get("channel_id")
        mute, deaf = bool(data.get("self_mute")), bool(data.get("self_deaf"))
        if wanted is None:
            self.leave(session.user_id)
            return
        state = self._state.voice_states.get(session.user_id)
        former = self._voice_sessions.get(session.user_id, session.id)
        stays = state is not None and state["channel_id"] == str(wanted) and former == session.id
        flags_change = state is not None and (state["self_mute"], state["self_deaf"]) != (mute, deaf)
        try:
            if stays and flags_change:
                changed = self._state.enter_voice(session.user_id, int(wanted), self_mute=mute, self_deaf=deaf)
                self.broadcast("VOICE_STATE_UPDATE", changed)
            else:
                # This also runs when the bot is already in that channel, because clients rejoin in this way.
                self._check_entry(session.user_id, int(wanted))
                anew = former != session.id
                self.join(session.user_id, int(wanted), self_mute=mute, self_deaf=deaf, anew=anew)
            self._voice_sessions[session.user_id] = session.id
        except (LocalDiscordError, ValueError, TypeError) as error:
            _log.warning("voice_request_ignored", user_id=session.user_id, reason=str(error))

    def _check_entry(self, user_id: int, channel_id: int) -> None:
        """Raise `LocalDiscordError` if the bot may not come into a voice channel, or it is full.

        Discord answers such a request with nothing.
        """
        guild = self._state.guild
        spec = next((each for each in guild.voice_channels if each.id == channel_id), None)
        if spec is None:
            return
        granted = channel_permissions(guild, spec, user_id)
        if not granted & DiscordPermission.CONNECT:
            raise LocalDiscordError(f"The bot may not connect to {spec.name}.")
        others = [
            state
            for state in self._state.voice_states.values()
            if state["channel_id"] == str(channel_id) and state["user_id"] != str(user_id)
        ]
        if spec.user_limit and len(others) >= spec.user_limit and not granted & DiscordPermission.MOVE_MEMBERS:
            raise LocalDiscordError(f"{spec.name} is full.")

    def _end(self, session: GatewaySession) -> None:
        self.sessions.end(session)
        for guild in self._guilds:
            if session.sees(guild._state.guild.id) and guild._voice_ends_with(session):
                guild.leave(session.user_id)

    def _voice_ends_with(self, session: GatewaySession) -> bool:
        """Return whether the bot's voice state belongs to a session that is over, or to none and no other is left."""
        owner = self._voice_sessions.get(session.user_id)
        if owner is not None:
            return owner == session.id
        return not any(each.user_id == session.user_id for each in self._seeing())
