"""Answers the dashboard's pages: checks what a user may see, then reads it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from bot.dashboard.access import (
    EVERYTHING,
    NOTHING,
    Access,
    AccessUnknownError,
    DashboardUser,
    Directory,
    Json,
    LoginRefusedError,
    NotShownError,
    SpeechFilter,
    turn_json,
)
from bot.dashboard.history import HITS, StoredHistory, hit_json
from bot.shards import ONLY_SHARD, Shards
from bot.texts.text import ENGLISH, Text, sentence_of
from compaction.memory.passage import Scope
from compaction.model import SessionId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from bot.clock import Clock
    from bot.dashboard.discord_login import DiscordLogin, LoginStart
    from bot.dashboard.live import Follower, LiveRooms
    from bot.dashboard.servers import OperatorServers
    from bot.participation.guild_state import GuildStates
    from bot.store.sessions import Sessions, StoredSession
    from compaction.memory.recall import RecallHit

SESSIONS_AT_ONCE: Final = 30
# Turns of an open room that a page gets: enough to scroll back a while.
LIVE_TURNS: Final = 120
# How long it is believed what somebody may see. Discord allows few requests.
ACCESS_S: Final = 30.0
MAX_KNOWN: Final = 256

STARTING: Final = Text("I am still starting. Try again in a moment.")
NO_ROOM: Final = Text("This room does not exist, or it is closed, or you are not allowed to see it.")
NO_SESSION: Final = Text("This session does not exist, or you are not allowed to see it.")
ONLY_OPERATOR: Final = Text("Only the owner of this bot can see this, with the login link.")
ACCESS_UNKNOWN: Final = Text("Discord has not told me which rooms you are allowed to see. Try again in a minute.")


@dataclass(slots=True)
class _KnownAccess:
    """What somebody may see, as Discord said at `asked_at`. `lock`: held while Discord is asked."""

    access: Access = NOTHING
    asked_at: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class DashboardService:
    """The dashboard of one process. `directory` comes with the connection to Discord: before, only the operator sees
    anything.

    `discord_login`: logs people in with Discord; None: only login links work. `shards`: those that this process serves.

    Every method that reads raises `NotShownError`, `AccessUnknownError` and `StoreError`. What is returned may have
    `Text`s in it, which the page gets in its language.
    """

    def __init__(
        self,
        live: LiveRooms,
        sessions: Sessions,
        participation: GuildStates,
        history: StoredHistory,
        servers: OperatorServers,
        *,
        clock: Clock,
        discord_login: DiscordLogin | None = None,
        shards: Shards = ONLY_SHARD,
    ) -> None:
        self.live = live
        self.directory: Directory | None = None
        self._history = history
        self._servers = servers
        self._sessions = sessions
        self._participation = participation
        self._clock = clock
        self._discord_login = discord_login
        self._shards = shards
        self._known: dict[int, _KnownAccess] = {}

    @property
    def shards(self) -> str:
        """Return which shards of the bot this process serves; empty if it serves every server."""
        return str(self._shards) if self._shards.is_divided else ""

    # -- login ------------------------------------------------------------------------------------------------------

    @property
    def discord_login(self) -> bool:
        return self._discord_login is not None

    def start_login(self, redirect_uri: str) -> LoginStart:
        """Begin a login with Discord. Raises `LoginRefusedError`."""
        login, client_id = self._login()
        return login.start(client_id, redirect_uri)

    async def finish_login(self, proof: str, state: str, code: str) -> DashboardUser:
        """Return who came back from Discord. Raises `LoginRefusedError`."""
        login, client_id = self._login()
        user = await login.finish(client_id, proof, state, code)
        try:
            access = await self._require_access(user)
        except AccessUnknownError as error:
            raise LoginRefusedError(sentence_of(error)) from error
        if access.is_nothing:
            raise LoginRefusedError(
                Text(
                    "You are logged in, but there is no server where you are allowed to see my "
                    "rooms. Only server managers and members with certain roles can see them."
                )
            )
        return user

    def _login(self) -> tuple[DiscordLogin, int]:
        if self._discord_login is None:
            raise LoginRefusedError(
                Text("You cannot log in with Discord here. Only the owner of this bot can log in, with the login link.")
            )
        client_id = None if self.directory is None else self.directory.client_id
        if client_id is None:
            raise LoginRefusedError(STARTING)
        return self._discord_login, client_id

    async def _access(self, user: DashboardUser) -> Access:
        """Return what a user may see now, at most `ACCESS_S` old. All pages of one person ask Discord once."""
        if user.user_id is None:
            return EVERYTHING
        if self.directory is None:
            return NOTHING
        known = self._known.pop(user.user_id, None) or _KnownAccess()
        self._known[user.user_id] = known
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        async with known.lock:
            now = self._clock.monotonic()
            if now - known.asked_at >= ACCESS_S:
                known.access = await self.directory.access_of(user.user_id)
                known.asked_at = now
            return known.access

    async def _require_access(self, user: DashboardUser) -> Access:
        """Return what a user may see now. Raises `AccessUnknownError` if Discord has said nothing of it."""
        access = await self._access(user)
        if access.is_nothing and not access.is_whole:
            raise AccessUnknownError(ACCESS_UNKNOWN)
        return access

    # -- open rooms -------------------------------------------------------------------------------------------------

    async def rooms(self, user: DashboardUser) -> Json:
        shown = self.live.rooms(await self._require_access(user))
        return {"rooms": [room.brief() for room in shown], "mark": self.live.mark}

    async def room(self, user: DashboardUser, session_id: str) -> Json:
        access = await self._require_access(user)
        room = next((each for each in self.live.rooms(access) if each.session_id == session_id), None)
        if room is None:
            raise _not_shown(access, NO_ROOM)
        # The page follows the events after this one. Those that come while turns and notes are read are told it again,
        # which does no harm: these have numbers. The figures have none.
        mark, figures = self.live.mark, room.figures()
        history = self._history
        withheld = await self._withheld(room.channel.guild_id)
        visible = await history.filter_of(room.session_id, access, withheld)
        memory = room.memory_json() if visible.shows_derived else {**room.memory_json(), "summary": ""}
        room.add_speakers(visible.speakers)
        turns = await history.turns(room.session_id, room.timeline.total_turns, most=LIVE_TURNS)
        return {
            **figures,
            "mark": mark,
            "memory": {
                **memory,
                **await history.folds_json(room.session_id, visible, room.timeline.total_turns),
            },
            "turns": [turn_json(room.timeline.allowed_part(visible.viewing.turn(turn))) for turn in turns],
            "notes": await history.notes_json(room.session_id, visible),
        }

    def follow(
        self, user: DashboardUser, last_event_id: str, *, language: str = ENGLISH
    ) -> AbstractContextManager[Follower]:
        return self.live.follow(lambda: self._access(user), last_event_id, language=language)

    # -- the operator's page ------------------------------------------------------------------------------------------

    async def servers(self, user: DashboardUser) -> Json:
        """Return all servers, for the operator."""
        names = {} if self.directory is None else self.directory.server_names
        return await self._for_operator(user).json(names)

    async def decide(self, user: DashboardUser, server: str, *, served: bool) -> Json:
        """Let the operator admit or refuse a server. Raises `SetupError` if that is no server's id."""
        return await self._for_operator(user).decide(server, served=served)

    def _for_operator(self, user: DashboardUser) -> OperatorServers:
        if not user.is_operator:
            raise NotShownError(ONLY_OPERATOR)
        return self._servers

    # -- stored sessions ---------------------------------------------------------------------------------------------

    async def sessions(self, user: DashboardUser, *, before: float | None) -> Json:
        """Return stored sessions, latest first. `before`: only those that began earlier, in UTC epoch seconds."""
        access = await self._require_access(user)
        channels = None if access.channels is None else frozenset[int]().union(*access.channels.values())
        found = await self._sessions.recent(limit=SESSIONS_AT_ONCE + 1, before=before, channels=channels)
        shown = [each for each in found[:SESSIONS_AT_ONCE] if access.sees(each.guild_id, each.channel_id)]
        topics = await self._history.sessions.topics([each.id for each in shown])
        with_topic = [
            each.id for each in shown if each.id in topics and (await self._visible(each, access)).shows_derived
        ]
        cards = [
            {**card, "topic": topics[each.id] if each.id in with_topic else ""}
            for each, card in zip(shown, await self._sessions_json(shown), strict=True)
        ]
        return {"sessions": cards, "more": len(found) > SESSIONS_AT_ONCE}

    async def session(self, user: DashboardUser, session_id: str, *, first: int | None) -> Json:
        """Return a stored session with some of its turns from turn `first` on, or its last ones."""
        stored, access = await self._stored(user, session_id)
        visible = await self._visible(stored, access)
        (session,) = await self._sessions_json([stored])
        return {
            **session,
            **await self._history.session_json(stored, visible, first=first),
            "prompts": access.sees_prompts(stored.guild_id),
        }

    async def search(self, user: DashboardUser, query: str) -> Json:
        access = await self._require_access(user)
        history = self._history
        hits: list[RecallHit] = []
        if query.strip():
            if access.channels is None:
                hits += await history.recall.search(query, Scope(archived=True, with_bot=True), limit=HITS)
            for guild_id, channels in (access.channels or {}).items():
                if (viewer := access.viewers.get(guild_id)) is not None and channels:
                    hits += await history.search(query, viewer, channels, partial(self._withheld, guild_id))
        hits.sort(key=lambda hit: -hit.score)
        return {"hits": await self._hits_json(hits[:HITS], access)}

    async def replies(self, user: DashboardUser, session_id: str) -> Json:
        """Return the replies of a session of which it is known what the model saw."""
        stored, _ = await self._with_prompts(user, session_id)
        return {"replies": await self._history.replies_json(stored.id)}

    async def reply(self, user: DashboardUser, session_id: str, turn: int) -> Json:
        stored, access = await self._with_prompts(user, session_id)
        visible = await self._visible(stored, access)
        found = await self._history.reply_json(stored.id, turn, stored.turn_count, visible)
        if found is None:
            raise NotShownError(
                Text("I no longer have what the model saw for this reply, because somebody's words were deleted.")
            )
        return found

    # -- parts ------------------------------------------------------------------------------------------------------

    async def _stored(self, user: DashboardUser, session_id: str) -> tuple[StoredSession, Access]:
        access = await self._require_access(user)
        stored = await self._sessions.find(SessionId(session_id))
        if stored is None or not access.sees(stored.guild_id, stored.channel_id):
            raise _not_shown(access, NO_SESSION)
        return stored, access

    async def _with_prompts(self, user: DashboardUser, session_id: str) -> tuple[StoredSession, Access]:
        stored, access = await self._stored(user, session_id)
        if not access.sees_prompts(stored.guild_id):
            raise NotShownError(Text("Only server managers can see what the model saw."))
        return stored, access

    async def _withheld(self, guild_id: int | None) -> frozenset[str]:
        if guild_id is None:
            return frozenset()
        return await self._participation.withheld_on(guild_id)

    async def _visible(self, stored: StoredSession, access: Access) -> SpeechFilter:
        return await self._history.filter_of(stored.id, access, await self._withheld(stored.guild_id))

    async def _hits_json(self, hits: Sequence[RecallHit], access: Access) -> list[Json]:
        found = [await self._sessions.find(each) for each in dict.fromkeys(hit.session_id for hit in hits)]
        # The search was within these bounds; a session may have been deleted since.
        stored = [each for each in found if each is not None and access.sees(each.guild_id, each.channel_id)]
        where = dict(zip((each.id for each in stored), await self._sessions_json(stored), strict=True))
        visible = {each.id: await self._visible(each, access) for each in stored}
        shown = [(hit.session_id, hit_json(hit, visible[hit.session_id])) for hit in hits if hit.session_id in visible]
        return [{**hit, "where": where[session_id]} for session_id, hit in shown if hit is not None]

    async def _sessions_json(self, stored: Sequence[StoredSession]) -> list[Json]:
        named = [each for each in stored if each.guild_id is not None and each.channel_id is not None]
        channels = {(each.guild_id or 0, each.channel_id or 0) for each in named}
        names = {} if self.directory is None else await self.directory.names(channels)
        live = {room.session_id for room in self.live.rooms(EVERYTHING)}
        return [_session_json(each, names, is_live=each.id in live) for each in stored]


def _not_shown(access: Access, sentence: Text) -> NotShownError | AccessUnknownError:
    """Return the error for what a user with this access does not see: `sentence`, unless they may yet turn out to."""
    return NotShownError(sentence) if access.is_whole else AccessUnknownError(ACCESS_UNKNOWN)


def _session_json(stored: StoredSession, names: Mapping[tuple[int, int], tuple[str, str]], *, is_live: bool) -> Json:
    # No server has the number 0.
    guild, room = names.get((stored.guild_id or 0, stored.channel_id or 0), ("", ""))
    return {
        "session": stored.id,
        "guild": guild,
        "room": room,
        "started_at": stored.started_at,
        "ended_at": stored.ended_at,
        "last_at": stored.last_turn_at,
        "turn_count": stored.turn_count,
        "live": is_live,
    }
