"""Discord's main gateway for a room's voice connection in another process. The connection itself is the room's own.

While the gateway process is away the connection goes on; it can neither join nor learn of another voice server then.
When the process is back, the room attaches again and is told what it has missed.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import structlog

from bot.errors import BotError
from bot.remote.messages.voice_messages import AttachVoice, DetachVoice, IsInChannel, RequestVoiceState, VoiceUpdate
from bot.remote.messages.wire_error import error_from_wire
from bot.remote.room_side.sound_watch import pause_needed_s
from bot.texts.text import sentence_of
from voice.errors import LinkError, VoiceError
from voice.transport.gateway import taken_over_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from typing import Any

    import aiohttp

    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.messages.voice_messages import VoiceAttached, VoiceFacts
    from voice.transport.gateway import VoiceUpdates

log = structlog.get_logger()

# The gateway process sends one message for it, or asks Discord once.
ASK_S = 5.0
# Discord is likely to keep the former main session for some 40 s after its process has ended, and then takes the bot
# out of the channel. At a pause in speech nobody misses anything, so the room waits for one until then, less what a
# request may take on a busy machine.
RENEW_BY_S = 25.0
# Where the next process came late, the room waits for a pause all the same.
RENEW_WITHIN_S = 8.0
# Longer than the pauses within a sentence.
QUIET_S = 0.8
_LOOK_S = 0.05


def renewal_within_s(away_s: float) -> float:
    """Return how long to wait for a pause in speech, in seconds, where no gateway process was there for `away_s`."""
    return max(RENEW_WITHIN_S, RENEW_BY_S - away_s)


class RemoteMainGateway:
    """Implements `voice.transport.gateway.MainGateway` over a link. Make it before the link is opened.

    `facts`: returns what was told last.
    """

    def __init__(self, link: GatewayLink, *, facts: Callable[[], VoiceFacts]) -> None:
        self._link = link
        self._facts = facts
        self._guild_id = self._channel_id = 0
        self._session: aiohttp.ClientSession | None = None
        self._is_owner: Callable[[], Awaitable[bool]] | None = None
        self._quiet_s: Callable[[], float] = lambda: 0.0
        self._claim = 0
        self._updates: VoiceUpdates | None = None
        # The process whose answers are known, and the number of the last one.
        self._run, self._seen = "", 0
        # Discord's last answers, for a gateway process that was started again and has none.
        self._known: dict[str, VoiceUpdate] = {}
        # Credentials of the channel that nobody has used since the process that had them is gone.
        self._credentials: tuple[VoiceUpdate, ...] = ()
        # Whether the bot stays in the channel when the connection ends, for the next process.
        self._hands_over = False
        # Whether the last joining used them.
        self._took_over = False
        # Whether the connection could not be attached again.
        self._is_lost = False
        self._tasks: set[asyncio.Task[None]] = set()
        link.handlers.hear(VoiceUpdate, self._pass_on)
        link.on_opened(self._attach_again)

    def begin(self, guild_id: int, channel_id: int) -> None:
        """Be the gateway of this channel."""
        self._guild_id, self._channel_id = guild_id, channel_id

    def hand_over(self) -> None:
        """Leave the bot in the channel when the connection ends: the next process takes over from this one."""
        self._hands_over = True

    @asynccontextmanager
    async def serving(
        self,
        session: aiohttp.ClientSession,
        *,
        claim: int,
        is_owner: Callable[[], Awaitable[bool]] | None,
        quiet_s: Callable[[], float] = lambda: 0.0,
    ) -> AsyncIterator[Self]:
        """Serve one voice connection. `quiet_s`: returns for how many seconds nobody has spoken in it.

        *Ownership*: tasks that pass Discord's answers on, or renew the voice session, end with the block.
        """
        self._session, self._claim, self._is_owner, self._quiet_s = session, claim, is_owner, quiet_s
        # A gateway process that is started again asks for it before anything else.
        self._link.room = replace(self._link.room, claim=claim)
        try:
            yield self
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._session, self._is_owner = None, None

    @property
    def took_over(self) -> bool:
        """Return whether the last joining used the credentials of a process that is gone."""
        return self._took_over

    @property
    def user_id(self) -> int:
        return self._facts().user_id

    @property
    def guild_id(self) -> int:
        return self._guild_id

    @property
    def channel_id(self) -> int:
        return self._channel_id

    @property
    def channel_name(self) -> str:
        return self._facts().channel_name

    @property
    def guild_name(self) -> str:
        return self._facts().guild_name

    @property
    def bitrate_bps(self) -> int:
        return self._facts().bitrate_bps

    @property
    def is_open(self) -> bool:
        return self._link.is_open and self._facts().is_open

    @property
    def attached(self) -> bool:
        return self._updates is not None and self._link.is_open and self._facts().attached

    @property
    def forgotten(self) -> bool:
        return self._link.is_open and (self._is_lost or self._facts().forgotten)

    def check_entry(self) -> None:
        """Raise `LinkError` if the bot may not join."""
        refused = self._facts().entry
        if refused is not None:
            raise error_from_wire(refused)

    async def attach(self, updates: VoiceUpdates) -> None:
        """See `MainGateway.attach`. What is known of earlier connections is of no use to a new one."""
        self._updates, self._is_lost = updates, False
        try:
            attached = await self._attached(AttachVoice(self._claim))
        except LinkError:
            self._updates = None
            raise
        self._run, self._credentials = attached.run, attached.updates
        self._seen = max((update.number for update in attached.updates), default=0)

    def detach(self) -> None:
        self._updates, self._credentials, self._is_lost = None, (), False
        if not self._hands_over:
            self._link.tell(DetachVoice())

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        """See `MainGateway.request`. Raises `LinkError` if the gateway process is away and the bot wants to come in."""
        if channel_id is None and self._hands_over:
            log.info("voice_handed_over", guild_id=self._guild_id)
            return False
        if self._is_owner is not None and not await self._is_owner():
            log.warning("voice_state_not_requested", guild_id=self._guild_id, leaves=channel_id is None)
            return False
        credentials, self._credentials = self._credentials, ()
        self._known.clear()
        if channel_id is not None:
            self._took_over = bool(credentials)
        if credentials and channel_id == self._channel_id:
            # The bot is in the channel. If the voice server takes these no more, the next request asks Discord.
            log.info("voice_credentials_used", guild_id=self._guild_id)
            for update in credentials:
                await self._handled(update)
            return True
        asked = RequestVoiceState(self._claim, channel_id, self_mute, self_deaf)
        try:
            return await self._link.ask(asked, within_s=ASK_S)
        except (BotError, VoiceError) as error:
            log.warning("voice_state_not_asked", guild_id=self._guild_id, error_class=type(error).__name__)
            if channel_id is None:
                # Nobody will confirm that the bot has left.
                return False
            raise _link_error(error) from error

    async def is_in_channel(self) -> bool:
        try:
            return await self._link.ask(IsInChannel(), within_s=ASK_S)
        except (BotError, VoiceError) as error:
            log.warning("voice_state_unknown", error_class=type(error).__name__)
            return True

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        """See `MainGateway.ws_connect`. Messages have no limit, and who reads closes, as in discord.py's own."""
        assert self._session is not None, "inside `serving`"
        if self._is_owner is not None and not await self._is_owner():
            raise taken_over_error()
        return await self._session.ws_connect(url, compress=compress, max_msg_size=0, autoclose=False)

    def _attach_again(self) -> None:
        """Attach a connection that goes on, because the link was lost and is open again."""
        if self._updates is not None and self._session is not None:
            self._start(self._catch_up(self._updates), "voice-attach")

    async def _catch_up(self, updates: VoiceUpdates) -> None:
        try:
            known = tuple(self._known.values())
            attached = await self._attached(AttachVoice(self._claim, self._run, self._seen, known))
        except LinkError as error:
            log.warning("voice_not_attached_again", guild_id=self._guild_id, problem=error)
            # A link that is lost again says nothing about the connection: the next one attaches it.
            self._is_lost = self._link.is_open
            return
        self._is_lost = False
        if attached.run != self._run and (state := self._known.get("state")) is not None:
            self._start(self._renew(state.data.get("session_id")), "voice-renew")
        self._run, self._seen = attached.run, self._seen if attached.run == self._run else 0
        for update in attached.updates:
            self._seen = max(self._seen, update.number)
            if self._updates is updates:
                await self._handled(update)

    async def _renew(self, former: object) -> None:
        """Have the voice session belong to the main session of the gateway process that is there now, at the next pause
        in speech. `former`: the voice session that Discord ends with the main session before.
        """
        begun_at = time.monotonic()
        within_s = renewal_within_s(begun_at - self._link.lost_at)

        def needed_s() -> float:
            return pause_needed_s(time.monotonic() - begun_at, most_s=QUIET_S, within_s=within_s)

        while (quiet_s := self._quiet_s()) < needed_s():  # noqa: ASYNC110 - threads
            await asyncio.sleep(_LOOK_S)
        state = self._known.get("state")
        if self._updates is None or state is None or state.data.get("session_id") != former:
            # Discord was quicker, or the connection is being made anew for another reason.
            return
        waited_s = time.monotonic() - begun_at
        log.info(
            "voice_session_renewed", guild_id=self._guild_id, pause_s=round(quiet_s, 2), waited_s=round(waited_s, 1)
        )
        try:
            await self.request(self._channel_id)
        except LinkError as error:
            log.warning("voice_session_not_renewed", guild_id=self._guild_id, problem=error)

    async def _attached(self, asked: AttachVoice) -> VoiceAttached:
        """Return the answer. Raises `LinkError`."""
        try:
            return await self._link.ask(asked, within_s=ASK_S)
        except (BotError, VoiceError) as error:
            raise _link_error(error) from error

    def _pass_on(self, update: VoiceUpdate) -> None:
        """Pass on one of Discord's answers. Each has a task, as discord.py gives it one, begun in their order."""
        self._seen = max(self._seen, update.number)
        if self._updates is not None and self._session is not None:
            self._start(self._handled(update), f"voice-{update.kind}")

    async def _handled(self, update: VoiceUpdate) -> None:
        if self._updates is None:
            return
        self._known[update.kind] = update
        if update.kind == "state":
            await self._updates.on_voice_state_update(update.data)
        else:
            await self._updates.on_voice_server_update(update.data)

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("voice_update_failed", guild_id=self._guild_id, exc_info=error)


def _link_error(error: Exception) -> LinkError:
    """Return an error as a reason why there is no voice connection."""
    return error if isinstance(error, LinkError) else LinkError(sentence_of(error))
