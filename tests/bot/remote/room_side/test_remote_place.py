"""A voice channel over the wire behaves as the channel itself: the same cases run on both."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from bot.channel.port import Card, ChannelNotAllowedError, ChatError, Person
from bot.discord.chat import DiscordChat
from bot.remote.gateway_side import served_place
from bot.remote.gateway_side.served_place import ServedPlaces
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.room_side.remote_place import RemotePlace
from bot.texts.text import Text, in_language, verbatim
from compaction.memory.digest import Digest, DigestLine
from tests.bot.discord.test_chat import Attachment, Channel, message
from tests.bot.remote.peers import linked, until
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bot.channel.port import Place
    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.link.message_link import MessageLink
    from tests.bot.remote.peers import Ends
    from voice.errors import LinkError
    from voice.transport.gateway import VoiceUpdates

    Case = Callable[[Place, FakePlace], Awaitable[Any]]

COMING = Text("I am coming to {channel}.", channel="Lounge {x}")
DIGEST = Digest(1.0, 2.5, 3, ("Ada",), about=(DigestLine(1.5, "the lantern", "Ada"),), last=(DigestLine(2.0, "bye"),))


class FakeMainGateway:
    """A main gateway that answers nothing by itself."""

    def __init__(self, *, channel_id: int = 20) -> None:
        self.user_id, self.guild_id, self.channel_id = 99, 10, channel_id
        self.channel_name, self.guild_name, self.bitrate_bps = "Lounge", "The Lantern Society", 64_000
        self.is_open = True
        self.forgotten = False
        self.refused: LinkError | None = None
        self.updates: VoiceUpdates | None = None
        self.asked: list[int | None] = []
        self.inside = True

    @property
    def attached(self) -> bool:
        """Return whether somebody is told Discord's answers."""
        return self.updates is not None

    def check_entry(self) -> None:
        """Raise what the test says."""
        if self.refused is not None:
            raise self.refused

    async def attach(self, updates: VoiceUpdates) -> None:
        """Tell these."""
        self.updates = updates

    def detach(self) -> None:
        """Tell nobody."""
        self.updates = None

    async def request(self, channel_id: int | None, *, self_mute: bool = False, self_deaf: bool = False) -> bool:
        """Record what was asked for."""
        self.asked.append(channel_id)
        return True

    async def is_in_channel(self) -> bool:
        """Return what the test says."""
        return self.inside

    async def ws_connect(self, url: str, *, compress: int = 0) -> Any:
        """Nobody connects from here."""
        raise NotImplementedError


class Served:
    """A fake place behind a link, and the place that a room has of it."""

    def __init__(
        self, fake: FakePlace, remote: RemotePlace, ends: Ends, places: ServedPlaces, clock: FakeClock
    ) -> None:
        self.fake = fake
        self.remote = remote
        self.ends = ends
        self.places = places
        self.clock = clock

    async def told(self) -> None:
        """Wait until the room has been told what has changed."""
        self.places.on_change(None, at_once=True)
        # What was told before an answer is here when the answer is.
        await self.remote.refresh_rights()
        self.fake.refreshed.pop()


@asynccontextmanager
async def served(fake: FakePlace) -> AsyncIterator[Served]:
    """Serve a fake place over a real websocket."""
    clock = FakeClock()
    places = ServedPlaces(lambda _: FakeMainGateway(), AsyncMock(return_value=None), clock=clock)
    made: list[RemotePlace] = []
    with ExitStack() as stack:

        def gateway(link: MessageLink) -> None:
            stack.enter_context(places.serve(fake, link))

        def room(link: GatewayLink) -> None:
            made.append(RemotePlace(link))

        async with linked(gateway=gateway, room=room) as ends:
            await made[0].begin(fake.guild_id, fake.channel_id)
            yield Served(fake, made[0], ends, places, clock)


async def facts(place: Place, _: FakePlace) -> Any:
    """Return everything that is read."""
    return (
        place.guild_id,
        place.channel_id,
        place.name,
        place.guild_name,
        list(place.occasions),
        place.language,
        place.audible,
        place.muted,
        place.deafened,
        list(place.members()),
        place.shared_channels(),
        place.refusal(),
    )


async def writing(place: Place, fake: FakePlace) -> Any:
    """Write in every way, and return what came of it and what was written, in German too."""
    card = Card(COMING, verbatim("{x}"), ((Text("Ada"), COMING),))
    await place.write(COMING)
    await place.post_file("words.txt", "Grüße".encode(), COMING)
    await place.refresh_rights(newcomers_only=True)
    outcome = (
        await place.write_notice(COMING, asks=True),
        await place.show_card(card),
        await place.show_card(card, edits=7),
        await place.write_recap(DIGEST),
        await place.renew_recap(5, DIGEST),
        await place.renew_recap(5, None),
        await place.offer_catch_up(ADA, minutes=3),
        await place.show_listening(on=True),
        await place.show_listening(on=False),
    )
    german = [in_language(text, "de") for text in (*fake.written, *fake.notices, fake.cards[0][1].fields[0][1])]
    return outcome, german, fake.asked, fake.cards, fake.files, fake.recaps, fake.renewed, fake.offers, fake.refreshed


async def refusals(place: Place, fake: FakePlace) -> Any:
    """Return what happens if Discord refuses everything."""
    fake.writable = fake.takes_threads = fake.markable = False
    card = Card(COMING, COMING)
    outcome: list[Any] = [
        await place.write_notice(COMING),
        await place.show_card(card),
        await place.renew_recap(5, None),
        await place.show_listening(on=True),
    ]
    for act in (place.open_thread(30), place.post_file("words.txt", b"x", COMING)):
        with pytest.raises(ChatError) as refused:
            await act
        outcome.append(str(refused.value))
    return outcome


async def thread(place: Place, fake: FakePlace) -> Any:
    """Write into a thread."""
    opened = await place.open_thread(30)
    await opened.post("one")
    await opened.post("two")
    return fake.threads, fake.thread.posted


async def chat(place: Place, fake: FakePlace) -> Any:
    """Use the chat for somebody, and for nobody."""
    for asker in (1, None):
        await place.chat_for(asker).post(f"for {asker}")
    fake.chat.drop("a.txt", b"\x00\xff of a file")
    fake.chat.drop("b.txt", b"bb", by="Bo")
    there = place.chat_for(1)
    files = list(await there.files(most=5))
    content = await there.fetch(files[1], max_bytes=6)
    fake.chat.error = ChatError(Text("I cannot post a file in {channel}.", channel="Lounge"))
    with pytest.raises(ChatError, match="I cannot post a file in Lounge"):
        await there.files(most=1)
    return files, content, fake.chat.posted, set(fake.asked_by)


@pytest.mark.parametrize("case", [facts, writing, refusals, thread, chat], ids=lambda case: str(case.__name__))
@pytest.mark.asyncio
async def test_a_place_is_the_same_over_the_wire(case: Case) -> None:
    """What a room gets, and what its channel gets, does not depend on the process that the room runs in."""

    def furnished() -> FakePlace:
        fake = FakePlace(people=[ADA, BO, OTHER_BOT, Person(4, "Mod", False, is_moderator=True)])
        fake.occasions = ["the topic", "an event"]
        fake.shared = {21, 22}
        fake.refused = COMING
        fake.language = "de"
        return fake

    direct = furnished()
    async with served(furnished()) as wire:
        assert await case(wire.remote, wire.fake) == await case(direct, direct)


@pytest.mark.asyncio
async def test_a_file_that_was_listed_can_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord's chat fetches only what it has listed itself, with the rights of who asked, so that chat is kept for a
    while: one for each of the people who asked last.
    """
    monkeypatch.setattr(served_place, "MOST_CHATS", 2)
    channel = Channel([message(3, Attachment(7, "list.txt", b"eggs"))])

    def chat_for(asker_id: int | None) -> DiscordChat:
        return DiscordChat(cast("Any", channel), asker_id=asker_id)

    fake = FakePlace()
    monkeypatch.setattr(fake, "chat_for", chat_for)
    async with served(fake) as wire:
        chats = [wire.remote.chat_for(asker) for asker in (1, 2, 3)]
        (file,) = await chats[0].files(most=5)
        assert await chats[0].fetch(file, max_bytes=10) == b"eggs"
        with pytest.raises(ChatError, match="was deleted"):
            await chats[1].fetch(file, max_bytes=10)
        for chat in chats[1:]:
            await chat.files(most=5)
            assert await chat.fetch(file, max_bytes=10) == b"eggs"
        with pytest.raises(ChatError, match="was deleted"):
            await chats[0].fetch(file, max_bytes=10)


@pytest.mark.asyncio
async def test_what_changes_is_told() -> None:
    """At once when somebody comes or goes, and within a second for what nobody tells."""
    async with served(FakePlace(people=[ADA])) as wire:
        wire.fake.shared = {21}
        await wire.told()
        assert wire.remote.shared_channels() == {20, 21}
        wire.fake.people.append(BO)
        wire.fake.shared = set()
        wire.places.on_change(10, at_once=True)
        await until(lambda: len(wire.remote.members()) == 2)
        assert wire.remote.shared_channels() == {20}
        wire.fake.language = "de"
        wire.clock.advance(1.0)
        await until(lambda: wire.remote.language == "de")
        wire.fake.name = "Hall"
        wire.places.on_change(None, at_once=False)
        await until(lambda: wire.remote.name == "Hall")
        wire.fake.name = "Cellar"
        wire.places.on_change(11, at_once=True)
        wire.places.on_change(10, at_once=True, channels=frozenset({21, 22}))
        wire.fake.people[0] = Person(ADA.id, "Countess", is_bot=False)
        await wire.remote.refresh_rights()
        assert wire.remote.name == "Cellar", "a refresh tells what it finds"
        assert wire.remote.members()[0].name == "Countess"


@pytest.mark.asyncio
async def test_without_a_link_it_is_as_if_discord_refused() -> None:
    """What is only logged stays so, what is raised is raised as before, and who may do what is not known."""
    fake = FakePlace(people=[Person(4, "Mod", False, is_moderator=True)])
    fake.shared = {21}
    async with served(fake) as wire:
        await wire.told()
        assert await wire.remote.is_current()
        opened, files = await wire.remote.open_thread(30), wire.remote.chat_for(1)
    place = wire.remote
    with capture_logs() as logs:
        assert await place.write_notice(COMING) is False
        assert await place.show_card(Card(COMING, COMING)) is None
        assert await place.write_recap(DIGEST) is None
        assert await place.renew_recap(5, DIGEST) is False
        assert await place.offer_catch_up(ADA, minutes=3) is False
        assert await place.show_listening(on=True) is False
        assert await place.is_current() is False
        await place.write(COMING)
    assert len(logs) == 8
    assert {each["log_level"] for each in logs} == {"warning"}
    acts = (
        opened.post("x"),
        place.open_thread(30),
        place.post_file("x", b"", COMING),
        files.files(most=1),
        files.post("x"),
    )
    for act in acts:
        with pytest.raises(ChatError, match="not there at the moment"):
            await act
    assert place.members() == [Person(4, "Mod", False, is_moderator=False)]
    assert place.shared_channels() == {20}
    assert place.name == "Lounge"


@pytest.mark.asyncio
async def test_rights_are_not_asked_for_while_the_gateway_process_is_away() -> None:
    """A room asks every two seconds, so its log would be full of it. It asks again once the link is back."""
    fake = FakePlace(people=[ADA])
    async with served(fake) as wire:
        wire.ends.gateway.close()
        await until(lambda: not wire.remote._link.is_open)
        with capture_logs() as logs:
            await wire.remote.refresh_rights()
        assert logs == []
        await until(lambda: wire.remote._link.is_open)
        await wire.remote.refresh_rights(newcomers_only=True)
        assert len(fake.refreshed) == 1


@pytest.mark.asyncio
async def test_who_comes_while_the_gateway_process_is_away_is_not_heard_yet() -> None:
    """It may be another bot, and nobody could tell it that the bot listens. Those who were there are heard on."""
    fake = FakePlace(people=[ADA, OTHER_BOT])
    async with served(fake) as wire:
        place = wire.remote
        assert [place._is_unheard(each.id) for each in (ADA, BO, OTHER_BOT)] == [False, False, True]
        wire.ends.gateway.close()
        await until(lambda: not place._link.is_open)
        assert [place._is_unheard(each.id) for each in (ADA, BO, OTHER_BOT)] == [False, True, True]
        fake.people.append(BO)
        await until(lambda: place._link.is_open and not place._is_unheard(BO.id))


@pytest.mark.asyncio
async def test_a_thread_outlives_the_gateway_process() -> None:
    """One that does not know the thread any more opens it again, and what was to be written is in it."""
    async with served(FakePlace()) as wire:
        opened = await wire.remote.open_thread(30)
        (one,) = wire.places._served
        one._threads.clear()
        await opened.post("one")
        await opened.post("two")
        assert (wire.fake.threads, wire.fake.thread.posted) == ([30], ["one", "two"])


@pytest.mark.asyncio
async def test_a_thread_that_is_gone_after_a_restart_of_the_gateway_process_has_another_id() -> None:
    """Another one is begun, and whoever stores the id can see it."""
    async with served(FakePlace()) as wire:
        opened = await wire.remote.open_thread(30)
        begun = opened.id
        (one,) = wire.places._served
        one._threads.clear()
        wire.fake.thread.id = begun + 1
        await opened.post("one")
        assert (opened.id, wire.fake.threads, wire.fake.thread.posted) == (begun + 1, [30, 30], ["one"])


@pytest.mark.asyncio
async def test_a_room_does_not_join_where_it_may_not() -> None:
    """The last facts say so, without a question."""
    fake = FakePlace()
    fake.refused = COMING
    source: Any = object()
    async with served(fake) as wire:
        with pytest.raises(ChannelNotAllowedError, match="I am coming to Lounge"):
            async with wire.remote.connect(source, lambda _: None, excludes=lambda _: False, claim=1):
                pass


@pytest.mark.asyncio
async def test_a_room_that_is_told_nothing_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without facts there is nothing to read."""
    monkeypatch.setattr("bot.remote.room_side.remote_place.FACTS_S", 0.01)
    made: list[RemotePlace] = []
    async with linked(room=lambda link: made.append(RemotePlace(link))):
        with pytest.raises(OtherProcessError, match="tells this room nothing"):
            await made[0].begin(10, 20)


@pytest.mark.asyncio
async def test_a_moment_without_facts_changes_nothing() -> None:
    """discord.py's memory may be incomplete while it connects anew; the room keeps what it knew."""
    async with served(FakePlace()) as wire:
        del wire.fake.language
        with capture_logs() as logs:
            wire.places.on_change(None, at_once=True)
        assert [each["event"] for each in logs] == ["facts_not_told"]
        wire.fake.language = "de"
        wire.places.on_change(None, at_once=True)
        await until(lambda: wire.remote.language == "de")
        await asyncio.sleep(0)
