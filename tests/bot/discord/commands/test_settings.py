"""/settings against the local Discord: managers see and change what the bot does on their server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from bot.discord.commands.setting_sentences import (
    CHANNELS_OF_OPERATOR,
    ROLES_OF_OPERATOR,
    OperatorSettings,
    auto_join_sentence,
    channels_sentence,
    empty_sentence,
    longest_sentence,
    retention_sentence,
    roles_sentence,
    setting_fields,
)
from bot.discord.commands.settings import add_settings_command, language_choices, with_or_without
from bot.discord.commands.voice import VoiceCommands, voice_sentence
from bot.discord.connection import connected
from bot.discord.failures import NOT_FOUND
from bot.guild import VoiceMode
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.server_settings import (
    MOST_CHANNELS,
    MOST_PEOPLE,
    MemoryServerSettings,
    ServerSettings,
    ServerSettingsBook,
    no_server_settings,
)
from bot.texts.text import in_language
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.spec import Channel, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import LocalDiscordError
from tests.bot.discord.test_client import ADA, BEN, FakeSupervisor, settings_for
from tests.fakes.choices import FakeGuildChoices, FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.voices import FakePlayer, FakeVoices
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

GUILD = 500
ONLY_THE_SECOND = (
    "I come into <#2> by myself as soon as 2 people are there. I do not come into <#1> by myself: I may not come there."
)


class Server:
    """A local Discord with the bot, and what its managers have chosen."""

    def __init__(self, local: LocalDiscord, book: ServerSettingsBook) -> None:
        self.local, self.book = local, book

    async def change(self, command: str, user_id: int = ADA, **options: object) -> str:
        """Use one of the commands and return the private answer."""
        reply = (await self.use(command, user_id, **options)).replies[0]
        assert reply.ephemeral
        return str(reply.content)

    async def use(self, command: str, user_id: int = ADA, **options: object) -> Any:
        result = await self.local.invoke(user_id, f"settings {command}", options)
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        return result

    @property
    def now(self) -> ServerSettings:
        return self.book.of(GUILD)


def operator(*, retention_days: float = 0, asks: bool = False) -> OperatorSettings:
    return OperatorSettings(leave_when_empty_s=300.0, retention_days=retention_days, asks=lambda _: asks)


@asynccontextmanager
async def online(
    of: OperatorSettings | None = None, *, book: ServerSettingsBook | None = None, guild: GuildSpec | None = None
) -> AsyncIterator[Server]:
    """Start a local Discord with the bot and the command."""
    book = book or no_server_settings()
    participation = GuildParticipations(
        FakeGuildChoices(), FakeOptOuts(), ParticipationSettings(), wake_names=("Roomtone",), clock=FakeClock()
    )
    command = partial(
        add_settings_command,
        servers=book,
        participation=participation,
        operator=of or operator(retention_days=90),
        voice_commands=VoiceCommands(FakeVoices(), book, FakePlayer()),
    )
    async with (
        LocalDiscord(guild=guild or GuildSpec()) as local,
        connected(settings_for(local), FakeSupervisor(), [command], servers=book),
    ):
        yield Server(local, book)


@pytest.mark.asyncio
async def test_each_change_is_stored_and_says_when_it_takes_effect() -> None:
    """A manager changes one thing after the other, and reads its new value and when it applies."""
    async with online() as server:
        assert await server.change("language", language="de") == (
            "What everybody in a channel reads is in this language: Deutsch. This takes effect at once."
        )
        assert "I know these languages: English, Deutsch." in await server.change("language", language="tlh")
        assert "in this language: Deutsch." in await server.change("language", language=" deutsch ")
        chosen = await server.use("voice", name="joe")
        await chosen.until(lambda current: "next sentence" in str(current.replies[-1].content), timeout_s=PATIENCE_S)
        assert str(chosen.replies[-1].content).startswith("I speak with the voice Joe here.")
        told = await server.change("notice", text="I write down what you say, for the minutes. @everyone")
        assert "for the minutes." in told
        assert "takes effect with the next session" in told
        assert "only people who press" in await server.change("consent", whom="ask")
        assert "<#602>" in await server.change("channel", channel=602, allowed=True)
        assert "I may not come there" in await server.change("auto-join", channel=600)
        assert "only when I am called" in await server.change("auto-join", channel=600, joins=False)
        told = await server.change("auto-join", channel=602, people=3)
        assert told.startswith("I come into <#602> by myself as soon as 3 people are there. This takes effect when")
        assert f"<@{BEN}>" in await server.change("join-with", person=BEN)
        assert "when the last of you goes" in await server.change("follow", whom="everybody")
        assert "after 2.5 minutes" in await server.change("leave-when-empty", minutes=2.5)
        assert "less than an hour. Choose 1 to 24 hours" in await server.change("longest-session", hours=0.5)
        assert "after 3 hours" in await server.change("longest-session", hours=3)
        assert "nothing longer than 90 days" in await server.change("retention", days=91)
        assert "after 30 days. This takes effect within a day" in await server.change("retention", days=30)
        assert "manage the server may read" in await server.change("history", opened=True)
        assert "I post in the channel" in await server.change("recap", posted=True)
        assert "offered nothing" in await server.change("catch-up", offered=False)
        assert "No message" in await server.change("live-message", shown=False)
        assert server.now == ServerSettings(
            language="de",
            voice="joe",
            notice="I write down what you say, for the minutes. @everyone",
            asks=True,
            channels=(602,),
            auto_join_channels=(602,),
            auto_join_people=3,
            auto_join_with=(BEN,),
            follow="everybody",
            leave_when_empty_s=150.0,
            longest_session_h=3,
            opens_history=True,
            retention_days=30.0,
            posts_recap=True,
            offers_catch_up=False,
            live_message=False,
        )


class BusyStore(MemoryServerSettings):
    """Stores nothing until two changes have begun."""

    def __init__(self) -> None:
        super().__init__()
        self.both_have_begun = asyncio.Event()

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        await self.both_have_begun.wait()
        await super().put(guild_id, settings, by=by)


class BusyBook(ServerSettingsBook):
    """Counts the changes that have begun, for its `BusyStore`."""

    def __init__(self, store: BusyStore) -> None:
        super().__init__(store)
        self._busy, self._begun = store, 0

    async def change(
        self, guild_id: int, change: Callable[[ServerSettings], ServerSettings], *, by: int | None
    ) -> ServerSettings:
        self._begun += 1
        if self._begun == 2:
            self._busy.both_have_begun.set()
        return await super().change(guild_id, change, by=by)


@pytest.mark.asyncio
async def test_what_two_managers_change_at_the_same_time_holds() -> None:
    """The database takes its time. Each answer tells of all that holds."""
    async with online(book=BusyBook(BusyStore())) as server:
        answers = await asyncio.gather(
            server.change("channel", channel=602, allowed=True), server.change("channel", channel=600, allowed=True)
        )
        assert set(server.now.channels) == {600, 602}
        assert sum("<#600>" in told and "<#602>" in told for told in answers) == 1


@pytest.mark.asyncio
async def test_a_server_chooses_so_many_channels_and_people() -> None:
    """One more is refused with the limit, and nothing is changed."""
    channels = tuple(range(603, 603 + MOST_CHANNELS))
    rooms = tuple(Channel(number, f"Room {number}") for number in (602, *channels))
    async with online(guild=GuildSpec(voice_channels=rooms)) as server:
        full = ServerSettings(
            channels=channels,
            auto_join_channels=channels,
            auto_join_with=tuple(range(1, 1 + MOST_PEOPLE)),
        )
        await server.book.change(GUILD, lambda _: full, by=ADA)
        assert await server.change("channel", channel=602, allowed=True) == "At most 25 channels can be chosen."
        assert await server.change("auto-join", channel=602) == "At most 25 channels can be chosen."
        assert await server.change("join-with", person=BEN) == "At most 10 people can be chosen."
        assert server.now == full


@pytest.mark.asyncio
async def test_channels_and_roles_that_were_deleted_leave_the_lists() -> None:
    """Nobody could pick them any more. Alone in a list they would keep the bot, or all who are no moderators, out."""
    async with online() as server:
        gone = ServerSettings(channels=(7,), roles=(8,), auto_join_channels=(602, 9))
        await server.book.change(GUILD, lambda _: gone, by=ADA)
        assert "all voice channels" in await server.change("channel", channel=602, allowed=False)
        assert "Everybody may call me" in await server.change("role", role=GUILD, allowed=False)
        assert "<#602>, <#600> by myself" in await server.change("auto-join", channel=600)
        assert server.now == ServerSettings(auto_join_channels=(602, 600))


@pytest.mark.asyncio
async def test_who_has_left_the_server_is_taken_off_the_list_by_their_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord describes them as users who are no members. They cannot be put on it."""

    def departed(guild: GuildSpec, user_id: int, resolved: dict[str, Any]) -> str:
        resolved["users"] = {str(user_id): payloads.guild_user(guild, user_id)}
        return str(user_id)

    async with online() as server:
        await server.book.change(GUILD, lambda now: replace(now, auto_join_with=(BEN,)), by=ADA)
        monkeypatch.setattr("rehearsal.discord.interactions.commands._resolve_user", departed)
        assert "only when I am called" in await server.change("join-with", person=BEN, joins=False)
        assert await server.change("join-with", person=BEN) == NOT_FOUND
        assert server.now == ServerSettings()


@pytest.mark.asyncio
async def test_defaults_bring_the_operators_settings_back() -> None:
    """The word `default` and 0 undo a choice, and allowed: False takes a channel off the list."""
    async with online() as server:
        before = ServerSettings("de", None, "Hi.", True, (602,), (), (600,), longest_session_h=3, leave_when_empty_s=9)
        await server.book.change(GUILD, lambda _: before, by=ADA)
        await server.change("language", language="default")
        await server.change("notice", text="Default")
        await server.change("consent", whom="notice")
        assert "all voice channels" in await server.change("channel", channel=602, allowed=False)
        assert "only when I am called" in await server.change("auto-join", channel=600, joins=False)
        await server.change("longest-session", hours=0)
        assert "after 5 minutes" in await server.change("leave-when-empty", minutes=0)
        assert server.now == ServerSettings()


@pytest.mark.asyncio
async def test_a_server_may_be_stricter_than_the_operator_and_never_laxer() -> None:
    """Where the operator's settings ask for consent, the server cannot do without."""
    async with online(operator(asks=True)) as server:
        assert "I may not hear more" in await server.change("consent", whom="notice")
        assert server.now == ServerSettings()


def test_what_the_operator_has_limited_is_told_with_what_the_server_has_chosen() -> None:
    """Nobody reads that all may call the bot, or that it comes everywhere, where the operator's settings forbid it."""
    limited = replace(operator(), channels=(1,), limits_roles=True)
    nothing, chosen = ServerSettings(), ServerSettings(channels=(1,), roles=(2,))
    assert channels_sentence(nothing, operator()) == "I may come into all voice channels."
    assert channels_sentence(nothing, limited) == CHANNELS_OF_OPERATOR
    assert channels_sentence(chosen, limited) == f"{channels_sentence(chosen, operator())} {CHANNELS_OF_OPERATOR}"
    assert roles_sentence(nothing, operator()) == "Everybody may call me."
    assert roles_sentence(nothing, limited) == ROLES_OF_OPERATOR
    assert roles_sentence(chosen, limited) == f"{roles_sentence(chosen, operator())} {ROLES_OF_OPERATOR}"


def test_one_minute_hour_or_day_is_no_minutes_hours_or_days() -> None:
    """The smallest values that can be chosen read well, in German too."""
    least = ServerSettings(leave_when_empty_s=60.0, longest_session_h=1.0, retention_days=1.0)
    assert empty_sentence(least, operator()) == "I leave a voice channel after 1 minute without people."
    assert longest_sentence(least) == "A session ends after 1 hour; /join begins a new one."
    assert in_language(retention_sentence(least, operator()), "de") == "Was gesagt wurde, lösche ich nach 1 Tag."
    assert (
        retention_sentence(ServerSettings(), operator(retention_days=1.5)) == "I delete what was said after 1.5 days."
    )


@pytest.mark.asyncio
async def test_everything_is_shown_to_managers_alone() -> None:
    """One embed has every setting with its value. Discord does not offer the command to others."""
    async with online() as server:
        result = await server.use("show")
        (embed,) = result.replies[0].payload["embeds"]
        shown = {field["name"]: field["value"] for field in embed["fields"]}
        assert embed["title"] == "Settings of The local guild"
        assert shown["retention"] == "I delete what was said after 90 days."
        assert shown["my names (/wake-names)"] == "Roomtone"
        assert shown["voice"] == "I speak with my usual voice here."
        with pytest.raises(LocalDiscordError, match="lacks a permission"):
            await server.use("show", BEN)


@pytest.mark.asyncio
async def test_languages_are_suggested_while_somebody_types() -> None:
    """Discord gets the languages for what is typed so far."""
    async with online() as server:
        suggested = await server.local.suggest(ADA, "settings language", "language", "de")
        assert suggested == [("default", "default"), ("Deutsch", "de")]
        suggested = await server.local.suggest(ADA, "settings voice", "name", "thor")
        assert suggested == [("Thorsten: German, Piper, to download: 64 MB", "thorsten")]


def test_every_setting_has_its_field_and_fits_discord() -> None:
    """The longest values fit into one embed."""
    ids = tuple(10**18 + number for number in range(25))
    full = ServerSettings("de", "joe", "x" * 1_000, True, ids, ids, ids, 99, ids[:10])
    voice = voice_sentence(FakeVoices(), "thorsten")
    strict = replace(operator(), channels=ids[:12], limits_roles=True)
    fields = setting_fields(full, strict, guild_id=1, mode=VoiceMode.ENGAGED, names=("Roomtone",), voice=voice)
    assert len(fields) <= 25
    assert all(len(field.text) <= 1_024 for field in fields)


@pytest.mark.parametrize(
    ("allowed", "of_operator", "sentence"),
    [
        ((), (), "I come into <#1>, <#2> by myself as soon as 2 people are there."),
        ((1, 2, 3), (2, 1), "I come into <#1>, <#2> by myself as soon as 2 people are there."),
        ((2, 3), (), ONLY_THE_SECOND),
        ((), (2, 3), ONLY_THE_SECOND),
        ((3,), (), "I do not come into <#1>, <#2> by myself: I may not come there."),
        ((1,), (2,), "I do not come into <#1>, <#2> by myself: I may not come there."),
    ],
)
def test_a_channel_that_is_not_allowed_is_not_promised(
    allowed: tuple[int, ...], of_operator: tuple[int, ...], sentence: str
) -> None:
    """Only channels that the server and the operator let the bot into are those it comes into by itself."""
    settings = ServerSettings(channels=allowed, auto_join_channels=(1, 2))
    assert auto_join_sentence(settings, replace(operator(), channels=of_operator)) == sentence


def test_languages_are_completed() -> None:
    """What somebody has typed is completed by code and by name."""
    assert [choice.value for choice in language_choices("")] == ["default", "en", "de"]
    assert [choice.value for choice in language_choices("DEU")] == ["de"]
    assert language_choices("x") == []


def test_an_id_is_in_a_list_once() -> None:
    """Choosing twice changes nothing."""
    assert with_or_without((1, 2), 1, wanted=True) == (2, 1)
    assert with_or_without((1, 2), 1, wanted=False) == (2,)
    assert with_or_without((), 1, wanted=False) == ()
