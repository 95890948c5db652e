"""The Discord adapter for a room's voice channel."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import discord
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


LOUNGE, STAFF, HALL = 600, 601, 602
SEES, ENTERS = discord.Permissions(view_channel=True), discord.Permissions(view_channel=True, connect=True)


@pytest.mark.parametrize(
    ("present", "shared"),
    [
        pytest.param([1], {LOUNGE, STAFF, HALL}, id="an insider"),
        pytest.param([1, 2], {LOUNGE, STAFF, HALL}, id="insiders"),
        pytest.param([1, 3], {LOUNGE, HALL}, id="a stranger"),
        pytest.param([1, 4], {LOUNGE, HALL}, id="somebody who sees the channel and may not enter"),
        pytest.param([1, 5], {LOUNGE}, id="somebody whom Discord has not told us about"),
        pytest.param([5], {LOUNGE}, id="nobody known"),
        pytest.param([], {LOUNGE}, id="nobody"),
    ],
)
def test_a_channel_is_shared_if_everybody_present_may_enter(present: list[int], shared: set[int]) -> None:
    """What was said in another channel may be told only where everybody present may see and enter that channel. The
    bot's own rights count for nothing, and a deleted channel is shared by nobody.
    """
    staff = {1: ENTERS, 2: ENTERS, 3: discord.Permissions.none(), 4: SEES}
    guild: Any = SimpleNamespace(id=500, me=SimpleNamespace(id=99))
    guild.get_member = {each: SimpleNamespace(id=each) for each in (1, 2, 3, 4, 99)}.get

    def channel(channel_id: int, allowed: dict[int, discord.Permissions]) -> Any:
        return SimpleNamespace(
            id=channel_id, guild=guild, permissions_for=lambda member: allowed.get(member.id, ENTERS)
        )

    lounge = channel(LOUNGE, {})
    lounge.voice_states = dict.fromkeys([*present, 99])
    guild.voice_channels, guild.stage_channels = [lounge, channel(STAFF, staff)], [channel(HALL, {})]
    client: Any = SimpleNamespace(get_guild=lambda _: None)
    assert DiscordPlace(client, lounge).shared_channels() == shared
    guild.voice_channels.pop()
    assert DiscordPlace(client, lounge).shared_channels() == shared - {STAFF}
