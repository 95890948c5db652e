"""The Discord adapter for a room's voice channel."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.discord.place import ChannelNotAllowedError, DiscordPlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Opened:
    """A voice link that records its arguments."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.played: object = None

    def play(self, source: object) -> None:
        self.played = source


@pytest.mark.asyncio
async def test_what_is_said_goes_by_the_process_that_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place opens the voice link with the bot's metronome and with the people who are not to be heard."""
    links: list[Opened] = []

    @asynccontextmanager
    async def opened(_channel: object, **given: Any) -> AsyncIterator[Opened]:
        links.append(Opened(**given))
        yield links[-1]

    monkeypatch.setattr("bot.discord.place.VoiceLink.open", opened)
    metronome, source = cast("Any", object()), cast("Any", object())
    channel: Any = SimpleNamespace(id=600, name="Lounge", guild=SimpleNamespace(id=500))
    client: Any = SimpleNamespace(get_guild=lambda _: None)
    place = DiscordPlace(client, channel, metronome)
    async with place.connect(source, lambda _: None, excludes={7}.__contains__):
        (link,) = links
    assert link.given["metronome"] is metronome
    assert (link.given["is_excluded"](7), link.given["is_excluded"](8)) == (True, False)
    assert link.played is source


@pytest.mark.asyncio
async def test_it_joins_only_the_channels_in_the_settings() -> None:
    """However the bot comes to a voice channel, it does not connect to one that the settings leave out."""
    channel: Any = SimpleNamespace(id=600, name="Lounge", guild=SimpleNamespace(id=500))
    client: Any = SimpleNamespace(get_guild=lambda _: None)
    place = DiscordPlace(client, channel, allowed=(602,))
    with pytest.raises(ChannelNotAllowedError, match=r"called into Lounge.*discord\.channels"):
        async with place.connect(cast("Any", object()), lambda _: None, excludes=lambda _: False):
            pass
