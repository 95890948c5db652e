"""Topics and titles of events are words to expect, if people in the channel can read them too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import discord

from bot.discord.voice_channels import MOST_EVENTS_ELSEWHERE, MOST_TOPICS, occasions_of

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
