"""Serves a voice channel of the gateway process to a room in another process: tells it facts, and does what it asks.

The facts are told whole whenever they have changed: at once when somebody comes or goes, so that a room never tells
newcomers what they may not hear; soon after anything else that Discord tells; and every second for what it does not.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from bot.background_task import logged_task
from bot.channel.port import Card
from bot.remote.gateway_side.served_gateway import ServedGateways
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from bot.channel.port import Chat, DroppedFile, Place, Thread
    from bot.clock import Clock
    from bot.remote.gateway_side.served_gateway import ServedGateway
    from bot.remote.link.message_link import MessageLink
    from voice.transport.gateway import MainGateway

log = structlog.get_logger()

# Discord tells of a change in several messages; this gathers them.
SOON_S = 0.1
# For what nobody tells: a server's settings, the state of the connection to Discord.
LOOK_EVERY_S = 1.0
# Threads that a room has opened. It opens one, and another after each restart of the gateway process.
MOST_THREADS = 20
# People whose listed files are remembered. A file is fetched within seconds of the list.
MOST_CHATS = 20


class ServedPlace:
    """One place, served over one link. Made by `ServedPlaces.serve`."""

    def __init__(self, place: Place, link: MessageLink, served: ServedGateway, gateway: MainGateway) -> None:
        self._place = place
        self._link = link
        self._served = served
        self._gateway = gateway
        self._told: PlaceFacts | None = None
        # Worked out from the rights of everybody present in every channel of the server, so not each second.
        self._shared: frozenset[int] | None = None
        self._threads: dict[int, Thread] = {}
        # For who asked for the files: a file is fetched from the chat that has listed it.
        self._chats: dict[int | None, Chat] = {}
        self._due: asyncio.TimerHandle | None = None
        served.serve(link, gateway, on_change=self.tell)
        answer = link.handlers.answer
        answer(AskCurrent, lambda _: place.is_current())
        answer(RefreshRights, self._refresh_rights)
        answer(WriteSentence, lambda asked: place.write(asked.sentence))
        answer(WriteNotice, lambda asked: place.write_notice(asked.text, asks=asked.asks))
        answer(ShowCard, self._show_card)
        answer(OpenThread, self._open_thread)
        answer(PostInThread, self._post_in_thread)
        answer(PostFile, lambda asked: place.post_file(asked.name, asked.content, asked.text))
        answer(WriteRecap, lambda asked: place.write_recap(asked.digest))
        answer(RenewRecap, lambda asked: place.renew_recap(asked.message_id, asked.digest))
        answer(OfferCatchUp, lambda asked: place.offer_catch_up(asked.person, minutes=asked.minutes))
        answer(ShowListening, lambda asked: place.show_listening(on=asked.on))
        answer(ListFiles, self._list_files)
        answer(FetchFile, self._fetch_file)
        answer(PostInChat, lambda asked: place.chat_for(asked.asker_id).post(asked.text))

    def tell(self) -> None:
        """Tell the room the facts if they have changed. Never raises: discord.py's client calls this."""
        try:
            facts = self._facts()
        except Exception:
            # discord.py's memory is incomplete for moments; the room keeps the facts that it has.
            log.exception("facts_not_told", guild_id=self._place.guild_id)
            return
        if facts != self._told:
            self._link.tell(facts)
            self._told = facts

    def tell_changed(self) -> None:
        """Tell the facts, after a change that may be about rights."""
        self._shared = None
        self.tell()

    def tell_soon(self) -> None:
        """Tell the facts once Discord has told the rest of what has changed."""
        self._shared = None
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(SOON_S, self._tell_due)

    def close(self) -> None:
        """Tell nothing more."""
        if self._due is not None:
            self._due.cancel()

    def _tell_due(self) -> None:
        self._due = None
        self.tell()

    def _facts(self) -> PlaceFacts:
        place = self._place
        if self._shared is None:
            self._shared = place.shared_channels()
        return PlaceFacts(
            name=place.name,
            guild_name=place.guild_name,
            occasions=tuple(place.occasions),
            language=place.language,
            members=tuple(place.members()),
            shared_channels=self._shared,
            audible=place.audible,
            muted=place.muted,
            deafened=place.deafened,
            refusal=place.refusal(),
            voice=self._served.facts(self._link, self._gateway),
        )

    async def _refresh_rights(self, asked: RefreshRights) -> None:
        await self._place.refresh_rights(newcomers_only=asked.newcomers_only)
        self.tell_changed()

    async def _show_card(self, asked: ShowCard) -> int | None:
        return await self._place.show_card(Card(asked.title, asked.text, asked.fields), edits=asked.edits)

    async def _open_thread(self, asked: OpenThread) -> int:
        thread = await self._place.open_thread(asked.channel_id, begun=asked.begun)
        self._threads[thread.id] = thread
        if len(self._threads) > MOST_THREADS:
            del self._threads[next(iter(self._threads))]
        return thread.id

    async def _post_in_thread(self, asked: PostInThread) -> bool:
        thread = self._threads.get(asked.thread)
        if thread is not None:
            await thread.post(asked.text)
        return thread is not None

    async def _list_files(self, asked: ListFiles) -> tuple[DroppedFile, ...]:
        chat = self._place.chat_for(asked.asker_id)
        files = tuple(await chat.files(most=asked.most))
        self._chats.pop(asked.asker_id, None)
        self._chats[asked.asker_id] = chat
        if len(self._chats) > MOST_CHATS:
            del self._chats[next(iter(self._chats))]
        return files

    async def _fetch_file(self, asked: FetchFile) -> bytes:
        chat = self._chats.get(asked.asker_id) or self._place.chat_for(asked.asker_id)
        return await chat.fetch(asked.file, max_bytes=asked.max_bytes)


class ServedPlaces:
    """The places that rooms in other processes have now. Whoever makes it calls `on_change` with the client's changes
    (`RoomtoneClient.on_change`).

    `gateway_of`: returns a place's channel at the main gateway, or raises `LinkError`. `newest_claim`: returns that of
    a server; None if the database does not say.
    """

    def __init__(
        self,
        gateway_of: Callable[[Place], MainGateway],
        newest_claim: Callable[[int], Awaitable[int | None]],
        *,
        clock: Clock,
    ) -> None:
        self._gateway_of = gateway_of
        self._clock = clock
        self._gateways = ServedGateways(newest_claim)
        self._served: dict[ServedPlace, Place] = {}

    @contextmanager
    def serve(self, place: Place, link: MessageLink) -> Iterator[None]:
        """Answer what the room behind `link` asks of `place`, and tell it the facts. Raises `LinkError`.

        *Ownership*: a task that looks for changes; it ends with the block.
        """
        gateway = self._gateway_of(place)
        served = ServedPlace(place, link, self._gateways.of(place.guild_id), gateway)
        self._served[served] = place
        looking = logged_task(self._look(served), name=f"place-{place.guild_id}")
        served.tell()
        try:
            yield
        finally:
            looking.cancel()
            served.close()
            del self._served[served]

    async def leave_channel(self, guild_id: int, /, *, taken_over: bool) -> None:
        """See `bot.room.guild_room.LeaveChannel`."""
        await self._gateways.of(guild_id).leave(taken_over=taken_over)

    def on_change(self, guild_id: int | None, *, at_once: bool, channels: frozenset[int] | None = None) -> None:
        """Tell what Discord has changed in a server, or in any (None). `at_once`: before anything else is handled.
        `channels`: the only voice channels that it is about.
        """
        for served, place in self._served.items():
            if guild_id not in (None, place.guild_id) or (channels is not None and place.channel_id not in channels):
                continue
            if at_once:
                served.tell_changed()
            else:
                served.tell_soon()

    async def _look(self, served: ServedPlace) -> None:
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            served.tell()
