"""A room's voice channel in the room's process: reads are answered from the last facts, everything else is asked.

While the gateway process is away it is as if Discord refused: what is only logged there is logged here, and what is
raised there is raised here. Nobody is a moderator then, and no other channel is shared, because it is not known.
"""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import aiohttp
import structlog

from bot.channel.port import ChannelNotAllowedError, ChatError
from bot.channel.voice_connection import voice_connection
from bot.errors import BotError
from bot.remote.messages.place_messages import (
    AskCurrent,
    FetchFile,
    ListFiles,
    OfferCatchUp,
    OpenThread,
    PlaceFacts,
    PostFile,
    PostInChat,
    PostInThread,
    RefreshRights,
    RenewRecap,
    ShowCard,
    ShowListening,
    WriteNotice,
    WriteRecap,
    WriteSentence,
)
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.room_side.remote_gateway import RemoteMainGateway
from bot.remote.room_side.sound_watch import SoundWatch
from bot.texts.text import Text, sentence_of
from voice.errors import LinkError, RemovedFromChannelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.channel.port import Card, DroppedFile, Link, Person
    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.messages.frames import AnswerT, Request
    from compaction.memory.digest import Digest
    from voice.transport.audio_events import AudioEvent
    from voice.transport.outgoing import FrameSource
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

# More than Discord may take there (`bot.discord.place.WRITE_TIMEOUT_S`), so its answer comes before this.
ASK_S = 15.0
# The gateway process answers at once, and nobody is heard before.
CURRENT_S = 2.0
# Each member is asked for one after the other.
RIGHTS_S = 60.0
# The first facts come with the link, or with the order to run the room.
FACTS_S = 10.0
NO_FACTS = Text("The process that has my connection to Discord tells this room nothing about its channel.")


class _Ask(Protocol):
    async def __call__(self, request: Request[AnswerT], *, within_s: float = ASK_S) -> AnswerT: ...


class RemotePlace:
    """One voice channel, over a link. Implements `bot.channel.port.Place`. Make it before the link is opened.

    `connector`: makes what connects to voice servers; None: aiohttp's own. `paced_sender`, `require_e2ee`: as for a
    place in the same process.
    """

    def __init__(
        self,
        link: GatewayLink,
        *,
        paced_sender: PacedSender | None = None,
        connector: Callable[[], aiohttp.BaseConnector | None] = lambda: None,
        require_e2ee: bool = False,
    ) -> None:
        self._link = link
        self._paced_sender = paced_sender
        self._connector = connector
        self._require_e2ee = require_e2ee
        self._told: PlaceFacts | None = None
        self._known = asyncio.Event()
        self._people: frozenset[int] = frozenset()
        self._bots: frozenset[int] = frozenset()
        # Of the voice connection, once there is one.
        self._sound: SoundWatch | None = None
        self._gateway = RemoteMainGateway(link, facts=lambda: self._facts.voice)
        self._ids: tuple[int, int] | None = None
        # As they were before the link was opened again.
        self.members_before: tuple[Person, ...] = ()
        # What the room asked for last, whether or not the gateway process was there.
        self.shows_listening = False
        link.handlers.hear(PlaceFacts, self._take)
        link.on_opened(self._remember_members)

    async def begin(self, guild_id: int, channel_id: int) -> None:
        """Be this channel, once its first facts are here. Raises `OtherProcessError` if they do not come."""
        self._ids = guild_id, channel_id
        self._gateway.begin(guild_id, channel_id)
        try:
            async with asyncio.timeout(FACTS_S):
                await self._known.wait()
        except TimeoutError as error:
            raise OtherProcessError(NO_FACTS) from error

    def hand_over(self) -> None:
        """Leave the bot in the channel when the voice connection ends, because the room goes on in another process."""
        self._gateway.hand_over()

    def quiet_s(self) -> float:
        """Return for how many seconds nobody has spoken, the bot included; 0 without a voice connection."""
        return 0.0 if self._sound is None else self._sound.quiet_s()

    def _remember_members(self) -> None:
        if self._told is not None:
            self.members_before = self._told.members

    def _take(self, facts: PlaceFacts) -> None:
        self._told = facts
        self._bots = frozenset(person.id for person in facts.members if person.is_bot)
        self._people = frozenset(person.id for person in facts.members) - self._bots
        self._known.set()

    @property
    def _facts(self) -> PlaceFacts:
        assert self._told is not None, "a room runs after `begin`"
        return self._told

    # -- what is read ---------------------------------------------------------------------------------------

    @property
    def guild_id(self) -> int:
        assert self._ids is not None, "a room runs after `begin`"
        return self._ids[0]

    @property
    def channel_id(self) -> int:
        assert self._ids is not None, "a room runs after `begin`"
        return self._ids[1]

    @property
    def name(self) -> str:
        return self._facts.name

    @property
    def guild_name(self) -> str:
        return self._facts.guild_name

    @property
    def occasions(self) -> Sequence[str]:
        return self._facts.occasions

    @property
    def language(self) -> str:
        return self._facts.language

    @property
    def audible(self) -> bool:
        return self._facts.audible

    @property
    def muted(self) -> bool:
        return self._facts.muted

    @property
    def deafened(self) -> bool:
        return self._facts.deafened

    def refusal(self) -> Text | None:
        return self._facts.refusal

    def members(self) -> Sequence[Person]:
        members = self._facts.members
        return members if self._link.is_open else [dataclasses.replace(each, is_moderator=False) for each in members]

    def shared_channels(self) -> frozenset[int]:
        return self._facts.shared_channels if self._link.is_open else frozenset({self.channel_id})

    # -- what is asked --------------------------------------------------------------------------------------

    async def _ask(self, request: Request[AnswerT], *, within_s: float = ASK_S) -> AnswerT:
        """Return the answer. Raises `ChatError`, also if there is none."""
        try:
            return await self._link.ask(request, within_s=within_s)
        except ChatError:
            raise
        except BotError as error:
            raise ChatError(sentence_of(error)) from error

    async def _try(
        self, request: Request[AnswerT], instead: AnswerT, *, event: str, within_s: float = ASK_S
    ) -> AnswerT:
        """Return the answer; if there is none, log `event` and return `instead`."""
        try:
            return await self._link.ask(request, within_s=within_s)
        except BotError as error:
            log.warning(event, channel_id=self.channel_id, error_class=type(error).__name__)
            return instead

    async def is_current(self) -> bool:
        return await self._try(AskCurrent(), False, event="choices_not_known", within_s=CURRENT_S)

    async def refresh_rights(self, *, newcomers_only: bool = False) -> None:
        # The room asks every two seconds. While nobody is there, each would be a warning in its log.
        if self._link.is_open:
            await self._try(RefreshRights(newcomers_only), None, event="rights_not_known", within_s=RIGHTS_S)

    async def write(self, sentence: Text) -> None:
        await self._try(WriteSentence(sentence), None, event="message_not_written")

    async def offer_talk(self, sentence: Text) -> None:
        await self.write(sentence)

    async def write_notice(self, text: Text, *, asks: bool = False) -> bool:
        return await self._try(WriteNotice(text, asks), False, event="message_not_written")

    async def show_card(self, card: Card, *, edits: int | None = None) -> int | None:
        asked = ShowCard(card.title, card.text, card.fields, edits)
        return await self._try(asked, None, event="card_not_shown")

    async def open_thread(self, channel_id: int, *, begun: int | None = None) -> _RemoteThread:
        thread_id = await self._ask(OpenThread(channel_id, begun))
        return _RemoteThread(self._ask, channel_id, thread_id)

    async def post_file(self, name: str, content: bytes, text: Text) -> None:
        await self._ask(PostFile(name, content, text))

    async def write_recap(self, digest: Digest) -> int | None:
        return await self._try(WriteRecap(digest), None, event="recap_not_written")

    async def renew_recap(self, message_id: int, digest: Digest | None) -> bool:
        return await self._try(RenewRecap(message_id, digest), False, event="recap_not_renewed")

    async def offer_catch_up(self, person: Person, *, minutes: int) -> bool:
        return await self._try(OfferCatchUp(person, minutes), False, event="catch_up_not_offered")

    async def show_listening(self, *, on: bool) -> bool:
        self.shows_listening = on
        return await self._try(ShowListening(on), False, event="mark_not_shown")

    def chat_for(self, asker_id: int | None) -> _RemoteChat:
        return _RemoteChat(self._ask, asker_id)

    # -- the voice connection -------------------------------------------------------------------------------

    def _is_unheard(self, user_id: int) -> bool:
        """Return whether somebody is another bot. Who came while the gateway process is away may be one, and cannot be
        told that the bot listens. Asked by the connection's thread: `_take` replaces whole sets.
        """
        return user_id in self._bots or (user_id not in self._people and not self._link.is_open)

    @asynccontextmanager
    async def connect(
        self,
        source: FrameSource,
        sink: Callable[[Sequence[AudioEvent]], None],
        *,
        excludes: Callable[[int], bool],
        on_change: Callable[[], None] = lambda: None,
        is_owner: Callable[[], Awaitable[bool]] | None = None,
        claim: int = 0,
    ) -> AsyncIterator[Link]:
        refused = self.refusal()
        if refused is not None:
            raise ChannelNotAllowedError(refused)

        sound = self._sound = SoundWatch(source, sink)

        def connection() -> AbstractAsyncContextManager[Link]:
            return voice_connection(
                self._gateway,
                sound,
                sound.hear,
                is_excluded=lambda user_id: excludes(user_id) or self._is_unheard(user_id),
                on_change=on_change,
                paced_sender=self._paced_sender,
                require_e2ee=self._require_e2ee,
            )

        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(aiohttp.ClientSession(connector=self._connector()))
            await stack.enter_async_context(
                self._gateway.serving(session, claim=claim, is_owner=is_owner, quiet_s=sound.quiet_s)
            )
            try:
                link = await stack.enter_async_context(connection())
            except LinkError as error:
                if not self._gateway.took_over or isinstance(error, RemovedFromChannelError):
                    raise
                # The voice server takes the credentials of the process before no more: ask Discord for new ones.
                log.info("voice_credentials_refused", channel_id=self.channel_id, problem=error)
                link = await stack.enter_async_context(connection())
            yield link


class _RemoteThread:
    """Implements `bot.channel.port.Thread`."""

    def __init__(self, ask: _Ask, channel_id: int, thread_id: int) -> None:
        self._ask = ask
        self._channel_id = channel_id
        self.id = thread_id

    async def post(self, text: str) -> None:
        """Write into the thread; a gateway process that was started again opens it first, or another one if it is gone.
        Raises `ChatError`.
        """
        if not await self._ask(PostInThread(self.id, text)):
            self.id = await self._ask(OpenThread(self._channel_id, self.id))
            await self._ask(PostInThread(self.id, text))


class _RemoteChat:
    """Implements `bot.channel.port.Chat`."""

    def __init__(self, ask: _Ask, asker_id: int | None) -> None:
        self._ask = ask
        self._asker_id = asker_id

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        return await self._ask(ListFiles(self._asker_id, most))

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        return await self._ask(FetchFile(self._asker_id, file, max_bytes))

    async def post(self, text: str) -> None:
        await self._ask(PostInChat(self._asker_id, text))
