"""Whether the bot can come into a voice channel: permissions, full channels, stages and the AFK channel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import discord
import pytest

from bot.discord.voice_channels import MOST_EVENTS_ELSEWHERE, MOST_TOPICS, ChannelFacts, entry_refusal, occasions_of
from bot.texts.text import in_language
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec
from tests.bot.discord.client import ADA, BEN, online
from tests.patience import PATIENCE_S, settle

ALL = discord.Permissions(view_channel=True, connect=True, speak=True, request_to_speak=True)
VOICE = ChannelFacts(600, "Evening", ALL)
STAGE = replace(VOICE, is_stage=True)


def without(facts: ChannelFacts, **taken: bool) -> ChannelFacts:
    """Return the channel where the bot lacks these permissions."""
    permissions = discord.Permissions(facts.permissions.value)
    permissions.update(**dict.fromkeys(taken, False))
    return replace(facts, permissions=permissions)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (VOICE, None),
        (STAGE, None),
        (without(VOICE, speak=True), "permissions there: Speak."),
        (
            without(VOICE, view_channel=True, connect=True, speak=True),
            "permissions there: View Channel, Connect, Speak.",
        ),
        # A listener on a stage needs no right to speak, but to ask for it.
        (without(STAGE, speak=True), None),
        (without(STAGE, request_to_speak=True), "permissions there: Request to Speak."),
        (replace(STAGE, permissions=discord.Permissions(view_channel=True, connect=True, mute_members=True)), None),
        (replace(VOICE, is_afk=True), "for people who are away"),
        (replace(VOICE, people=2, limit=3), None),
        (replace(VOICE, people=3, limit=3), "is full: only 3 people can be there"),
        (replace(VOICE, people=3, limit=3, is_inside=True), None),
        (replace(VOICE, people=3, limit=3, permissions=discord.Permissions.all()), None),
    ],
)
def test_each_reason_is_one_sentence(facts: ChannelFacts, reason: str | None) -> None:
    """The bot names what is missing and the channel; where nothing is, it comes."""
    refused = entry_refusal(facts)
    assert (refused is None) == (reason is None)
    if refused is not None and reason is not None:
        assert reason in refused
        assert "Evening" in refused


def test_the_missing_permissions_are_named_in_the_readers_language() -> None:
    """Discord's own German names are used for the permissions."""
    refused = entry_refusal(without(VOICE, speak=True, connect=True))
    assert refused is not None
    assert "Verbinden, Sprechen" in in_language(refused, "de")


def test_only_the_channels_that_the_server_has_chosen_are_entered() -> None:
    """The refusal says whose choice it is."""
    assert entry_refusal(VOICE, chosen_here=(600,)) is None
    refused = entry_refusal(VOICE, chosen_here=(602,))
    assert refused is not None
    assert "This server has chosen" in refused


GUILD = GuildSpec(
    voice_channels=(
        Channel(600, "Evening"),
        Channel(602, "Locked", denied=int(DiscordPermission.SPEAK | DiscordPermission.CONNECT)),
        Channel(603, "Small", user_limit=1),
        Channel(604, "Away", afk=True),
    )
)


@pytest.mark.parametrize(
    ("channel_id", "answered"),
    [(602, "permissions there: Connect, Speak."), (603, "Small is full"), (604, "for people who are away")],
)
async def test_join_says_why_it_cannot_come(channel_id: int, answered: str) -> None:
    """/join checks before it tries, on the local Discord, and the bot stays where it is."""
    async with online(GUILD) as (local, client, rooms):
        await local.join(ADA, channel_id=channel_id)
        await settle(lambda: client.get_channel(channel_id).members)  # type: ignore[union-attr]
        result = await local.invoke(ADA, "join")
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        assert answered in result.replies[0].content
        assert rooms.room_channel is None
        await local.join(BEN, channel_id=600)
        await settle(lambda: client.get_channel(600).members)  # type: ignore[union-attr]
        result = await local.invoke(BEN, "join")
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        assert "coming to Evening" in result.replies[0].content


NOW = datetime(2026, 1, 5, 20, tzinfo=UTC)
STATUS = discord.EventStatus
ME, EVERYBODY = "the bot", "everybody"
GAMES, OTHERS = 900, 901


def a_channel(
    channel_id: int, topic: str | None = None, *, category: int | None = GAMES, sees: str = f"{ME} {EVERYBODY}"
) -> Any:
    """Return a channel that those in `sees` may see. Private ones have other overwrites than the voice channel."""
    return SimpleNamespace(
        id=channel_id,
        topic=topic,
        category_id=category,
        overwrites={} if EVERYBODY in sees else {"a role": channel_id},
        permissions_for=lambda who: discord.Permissions(view_channel=who in sees),
    )


def a_voice_channel(*others: Any, events: list[Any] | None = None, sees: str = f"{ME} {EVERYBODY}") -> Any:
    """Return the voice channel 600 of a server with these text channels and events."""
    channel = a_channel(600, sees=sees)
    known = {other.id: other for other in (*others, channel)}
    channel.guild = SimpleNamespace(
        scheduled_events=events or [],
        text_channels=list(others),
        me=ME,
        default_role=EVERYBODY,
        get_channel=known.get,
    )
    return channel


def an_event(name: str, channel_id: int | None, status: discord.EventStatus = STATUS.scheduled, hours: int = 1) -> Any:
    return SimpleNamespace(name=name, channel_id=channel_id, status=status, start_time=NOW + timedelta(hours=hours))


def test_what_goes_on_here_comes_first_then_what_comes_next() -> None:
    """Events that are over are left out, and at most two of the channel are told."""
    events = [
        an_event("The week after", 600, hours=168),
        an_event("Tomorrow", 600, hours=24),
        an_event("Now", 600, STATUS.active, 0),
        an_event("Yesterday", 600, STATUS.completed, -24),
    ]
    assert occasions_of(a_voice_channel(events=events)) == ["Now", "Tomorrow"]


def test_topics_of_the_text_channels_beside_it_are_told() -> None:
    """Those of the same category, without the empty ones, and not all of many."""
    beside = [a_channel(number, f"Topic {number}") for number in range(1, 5)]
    channel = a_voice_channel(a_channel(8, "Elsewhere", category=OTHERS), a_channel(9, ""), *beside)
    assert occasions_of(channel) == ["Topic 1", "Topic 2"][:MOST_TOPICS]


def test_the_servers_other_events_come_last() -> None:
    """They are at a place outside Discord or in a channel that everybody sees, and not all of many."""
    text = a_channel(1, "Valheim")
    events = [an_event(f"Meeting {number}", None, hours=number) for number in range(2, 9)]
    events += [an_event("Concert", 1, hours=1), an_event("Here", 600, hours=50)]
    assert occasions_of(a_voice_channel(text, events=events)) == ["Here", "Valheim", "Concert", "Meeting 2"]
    assert MOST_EVENTS_ELSEWHERE == 2


def test_what_people_in_the_channel_may_not_read_is_not_expected() -> None:
    """Words of channels for a few, or that the bot does not see, are not told; nor are events there or nowhere."""
    private, hidden = a_channel(1, "The surprise for Ada", sees=ME), a_channel(2, "Unseen", sees=EVERYBODY)
    events = [an_event("Surprise", 1), an_event("Unseen", 2), an_event("Gone", 3)]
    assert occasions_of(a_voice_channel(private, hidden, events=events)) == []


def test_a_private_channel_expects_the_words_of_its_neighbours_for_the_same_people() -> None:
    """A text channel with the same permissions as the voice channel is read by the same people."""
    channel = a_voice_channel(a_channel(1, "The surprise", sees=ME), a_channel(2, "Other people's", sees=ME), sees=ME)
    channel.overwrites = {"a role": 1}
    assert occasions_of(channel) == ["The surprise"]
