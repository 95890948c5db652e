"""The main gateway for rooms in other processes, in the process that has it. One for each Discord server.

Discord's last two answers stay in memory: the bot's voice state, and the voice server with its token. While the bot is
in the channel they let a process in that takes over from one that was killed, so nobody sees the bot leave. They are
not stored: a backup would hold the key to a voice connection.

A request that carries an older claim than one seen before asks Discord nothing: its process was frozen or cut off. The
database is asked about a claim that is not the last one, because a process may make up a number that no room reaches.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import structlog

from bot.remote.messages.voice_messages import (
    AttachVoice,
    DetachVoice,
    IsInChannel,
    RequestVoiceState,
    VoiceAttached,
    VoiceFacts,
    VoiceUpdate,
)
from bot.remote.messages.wire_error import error_to_wire
from bot.texts.text import Text
from voice.errors import LinkError
from voice.transport.gateway import taken_over_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.remote.link.message_link import MessageLink
    from voice.transport.gateway import MainGateway

log = structlog.get_logger()

# Less than a room waits for an answer (`remote_gateway.ASK_S`).
CLAIM_WITHIN_S = 2.0


class ServedGateway:
    """The bot's voice connection in one server. `newest_claim`: returns the server's; None if the database does not
    say. `run`: tells this process from its predecessor.
    """

    def __init__(self, guild_id: int, newest_claim: Callable[[], Awaitable[int | None]], *, run: str) -> None:
        self._guild_id = guild_id
        self._newest_claim = newest_claim
        self._run = run
        # The newest claim, as far as it is known here. Checked by one request at a time: a slow answer of the database
        # must not count after a later one.
        self._claim = 0
        self._checking = asyncio.Lock()
        # What Discord's answers come from, and the link of the room to which they go.
        self._attached: MainGateway | None = None
        self._link: MessageLink | None = None
        self._number = 0
        self._last: dict[str, VoiceUpdate] = {}
        # The voice session of a process before this one. It ends with that one's main session, which nobody resumes.
        self._inherited: str | None = None
        # Whether Discord was asked for another one, and has not answered yet.
        self._is_renewing = False

    def serve(self, link: MessageLink, gateway: MainGateway, *, on_change: Callable[[], None]) -> None:
        """Answer what a room's voice connection asks over `link`. `gateway`: its channel's. `on_change`: called when
        the facts may have changed, before the room has its answer.
        """

        async def attach(asked: AttachVoice) -> VoiceAttached:
            attached = await self._attach(link, gateway, asked)
            on_change()
            return attached

        async def request(asked: RequestVoiceState) -> bool:
            return await self._request(link, gateway, asked)

        async def is_in_channel(_: IsInChannel) -> bool:
            return await gateway.is_in_channel()

        def detach(_: DetachVoice) -> None:
            if self._link is link:
                self.detach()
                on_change()

        link.handlers.answer(AttachVoice, attach)
        link.handlers.answer(RequestVoiceState, request)
        link.handlers.answer(IsInChannel, is_in_channel)
        link.handlers.hear(DetachVoice, detach)
        link.on_closed(lambda: self._lost(link))

    def facts(self, link: MessageLink, gateway: MainGateway) -> VoiceFacts:
        """Return what the room behind `link` is told."""
        entry = None
        try:
            gateway.check_entry()
        except LinkError as error:
            entry = error_to_wire(error)
        ours = self._attached if self._link is link else None
        return VoiceFacts(
            user_id=gateway.user_id,
            guild_name=gateway.guild_name,
            channel_name=gateway.channel_name,
            bitrate_bps=gateway.bitrate_bps,
            is_open=gateway.is_open,
            attached=ours is not None and ours.attached,
            forgotten=ours is not None and ours.forgotten,
            entry=entry,
        )

    def detach(self) -> None:
        """Pass on nothing more, and forget the credentials."""
        attached, self._attached, self._link = self._attached, None, None
        self._last.clear()
        if attached is not None:
            attached.detach()

    async def leave(self, *, taken_over: bool = False) -> None:
        """Take the bot out of a channel in which no process has a room any more. `taken_over`: another gateway process
        has one there, so the bot stays, also when this process ends.
        """
        if self._attached is not None and self._link is None:
            log.info("voice_left_behind", guild_id=self._guild_id, taken_over=taken_over)
            if not taken_over:
                await self._attached.request(None)
            self.detach()

    async def on_voice_state_update(self, data: Any, /) -> None:
        """See `voice.transport.gateway.VoiceUpdates`."""
        if self._inherited is not None:
            is_former = data.get("session_id") == self._inherited
            if is_former and data.get("channel_id") is None:
                await self._renew(data)
                return
            if self._is_renewing or not is_former:
                self._inherited = None
        self._take("state", data)

    async def on_voice_server_update(self, data: Any, /) -> None:
        """See `voice.transport.gateway.VoiceUpdates`."""
        self._take("server", data)

    async def _renew(self, data: Any) -> None:
        """Have the bot let in again, because its voice session has ended with a main session of before. The room does
        not hear of it, and takes Discord's answers for those about another voice server.
        """
        former = self._last.get("state")
        if self._attached is None or self._link is None or former is None:
            self._inherited = None
            self._take("state", data)
            return
        log.info("voice_session_ended", guild_id=self._guild_id, is_renewing=self._is_renewing)
        if self._is_renewing:
            # The room was quicker. Discord's answer is on its way.
            return
        muted, deaf = bool(former.data.get("self_mute")), bool(former.data.get("self_deaf"))
        try:
            await self._ask_discord(self._attached, self._attached.channel_id, self_mute=muted, self_deaf=deaf)
        except OSError as error:
            # The room's voice server will end the connection, and the room asks for another one.
            log.warning("voice_session_not_renewed", guild_id=self._guild_id, error_class=type(error).__name__)

    async def _ask_discord(
        self, gateway: MainGateway, channel_id: int | None, *, self_mute: bool, self_deaf: bool
    ) -> bool:
        """Ask for another voice state (`MainGateway.request`). An answer is expected only if Discord was asked."""
        self._is_renewing = True
        asked = False
        try:
            asked = await gateway.request(channel_id, self_mute=self_mute, self_deaf=self_deaf)
        finally:
            if not asked:
                self._is_renewing = False
        return asked

    def _take(self, kind: Literal["state", "server"], data: Any) -> None:
        self._number += 1
        update = self._last[kind] = VoiceUpdate(self._number, kind, dict(data))
        if self._link is not None:
            self._link.tell(update)

    async def _may_ask(self, claim: int) -> bool:
        """Return whether a request carries the newest claim: that of the database, or the highest one that was told
        while the database is away. A room has its claim from the database, so an honest one is never above it.
        """
        async with self._checking:
            if claim != self._claim:
                known = await self._known_claim()
                self._claim = max(claim, self._claim) if known is None else known
            if claim == self._claim:
                return True
        log.warning("claim_refused", guild_id=self._guild_id, claim=claim, newest=self._claim)
        return False

    async def _known_claim(self) -> int | None:
        try:
            async with asyncio.timeout(CLAIM_WITHIN_S):
                return await self._newest_claim()
        except TimeoutError:
            return None

    async def _attach(self, link: MessageLink, gateway: MainGateway, asked: AttachVoice) -> VoiceAttached:
        if not await self._may_ask(asked.claim):
            raise taken_over_error()
        former = self._attached
        if former is not None and (former.channel_id != gateway.channel_id or not former.attached):
            self.detach()
            former = None
        if former is None:
            gateway.check_entry()
            await gateway.attach(self)
            self._attached = gateway
        self._link = link
        if asked.known and asked.run != self._run:
            return self._taken_back(asked, gateway)
        known = sorted(self._last.values(), key=lambda update: update.number)
        if asked.run == self._run:
            # The same process, which goes on.
            return VoiceAttached(self._run, tuple(update for update in known if update.number > asked.seen))
        return VoiceAttached(self._run, tuple(known) if self._lets_in(gateway) else ())

    def _taken_back(self, asked: AttachVoice, gateway: MainGateway) -> VoiceAttached:
        """Go on with the answers of a room that outlived the process before this one. It lacks none."""
        for update in asked.known:
            self._last.setdefault(update.kind, replace(update, number=0))
        if self._lets_in(gateway):
            self._inherited, self._is_renewing = self._last["state"].data.get("session_id"), False
        return VoiceAttached(self._run, ())

    def _lets_in(self, gateway: MainGateway) -> bool:
        """Return whether Discord's last answers let another process into the channel: the bot is in it."""
        state, server = self._last.get("state"), self._last.get("server")
        return (
            state is not None
            and server is not None
            and str(state.data.get("channel_id")) == str(gateway.channel_id)
            and bool(server.data.get("token"))
            and bool(server.data.get("endpoint"))
        )

    async def _request(self, link: MessageLink, gateway: MainGateway, asked: RequestVoiceState) -> bool:
        if not await self._may_ask(asked.claim):
            return False
        if asked.channel_id is None:
            # Whatever Discord says of it is the last word about these credentials.
            self._inherited = None
            self._last.clear()
        try:
            # The voice session that comes of it belongs to the main session of this process. The former one may end
            # before.
            return await self._ask_discord(
                self._attached or gateway, asked.channel_id, self_mute=asked.self_mute, self_deaf=asked.self_deaf
            )
        except OSError as error:
            raise LinkError(Text("Discord cannot be reached ({error}).", error=type(error).__name__)) from error

    def _lost(self, link: MessageLink) -> None:
        """Keep what Discord says for the next process: the one behind this link was killed, or comes back."""
        if self._link is link:
            self._link = None


class ServedGateways:
    """The gateways of all servers, as long as the process runs. `newest_claim`: see `ServedPlaces`."""

    def __init__(self, newest_claim: Callable[[int], Awaitable[int | None]]) -> None:
        self._newest_claim = newest_claim
        self._run = secrets.token_hex(8)
        self._of: dict[int, ServedGateway] = {}

    def of(self, guild_id: int) -> ServedGateway:
        """Return the gateway of a server, which is made when it is first wanted, and then stays the same."""
        if guild_id not in self._of:
            self._of[guild_id] = ServedGateway(guild_id, partial(self._newest_claim, guild_id), run=self._run)
        return self._of[guild_id]
