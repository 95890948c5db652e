"""Whose rooms somebody sees on the dashboard, by roles and permissions in a local Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
from discord import Guild, Member, Permissions, VoiceChannel

from bot.dashboard.access import NOTHING, Access
from bot.discord.connection import connected
from bot.discord.dashboard_access import ABSENT_S, DiscordDirectory
from bot.server_settings import no_server_settings
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, BEN, FakeRooms, settings_for
from tests.bot.discord.refusals import NOT_FOUND
from tests.fakes.clock import FakeClock

GUILD = 500
STRANGER = 987_654_321
ROOMS = frozenset({600, 602})


@asynccontextmanager
async def directory(
    *, roles: tuple[int, ...] = (), clock: FakeClock | None = None, owners: tuple[int, ...] = ()
) -> AsyncIterator[DiscordDirectory]:
    """Connect the client. `roles`: those that the server has chosen; `owners`: who run the bot."""
    servers = no_server_settings()
    await servers.change(GUILD, lambda _: replace(servers.of(GUILD), roles=roles), by=ADA)
    async with open_discord() as opened:
        wanted = settings_for(opened.discord).model_copy(update={"owners": owners, "guilds": (GUILD,)})
        async with connected(wanted, FakeRooms()) as client:
            yield DiscordDirectory(client, servers, clock=clock or FakeClock())


async def test_managers_see_the_rooms_of_their_server_and_others_do_not() -> None:
    """Without roles in the settings only those who manage the server see rooms, and prompts too."""
    async with directory() as found:
        ada = await found.access_of(ADA)
        assert ada.channels is not None
        assert ada.channels[GUILD] >= ROOMS
        assert ada.sees(GUILD, 600)
        assert not ada.sees(GUILD + 1, 600)
        assert not ada.sees(GUILD, 1)
        assert not ada.sees(None, None)
        assert ada.sees_prompts(GUILD)
        assert await found.access_of(BEN) == NOTHING
        assert await found.access_of(STRANGER) == NOTHING
        assert found.client_id is not None
        assert list(await found.names({(GUILD, 600), (GUILD, 1), (1, 600)})) == [(GUILD, 600)]


async def test_of_a_server_about_which_discord_does_not_answer_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it is known that this is not all, also when the connection has ended before the pages."""

    async def late(*_: object) -> Member:
        raise TimeoutError

    async with directory() as found:
        assert (await found.access_of(ADA)).is_whole
        monkeypatch.setattr(Guild, "fetch_member", late)
        assert await found.access_of(ADA) == Access(is_whole=False)
        monkeypatch.undo()
    assert await found.access_of(ADA) == Access(is_whole=False)


async def test_of_a_server_that_discord_does_not_show_it_is_not_known_what_its_members_see(local: LocalDiscord) -> None:
    """During an outage, and for moments in a new session: without its roles there would be no managers. Who is not
    on it sees nothing there, whatever its roles are.
    """
    async with connected(settings_for(local), FakeRooms()) as client:
        client._connection._add_guild_from_data(cast("Any", {"id": str(GUILD), "unavailable": True}))
        found = DiscordDirectory(client, no_server_settings(), clock=FakeClock())
        assert await found.access_of(ADA) == Access(is_whole=False)
        assert await found.access_of(STRANGER) == NOTHING


async def test_discord_is_not_asked_again_and_again_about_a_server_that_somebody_is_not_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members are asked about each time. A server that somebody has joined counts a few minutes later, and one that
    they have left no more at once.
    """
    clock = FakeClock()
    asked: list[int] = []
    there = {ADA}

    async def fetch(guild: Guild, user_id: int) -> Member:
        asked.append(user_id)
        if user_id not in there:
            raise NOT_FOUND
        return await real(guild, user_id)

    real = Guild.fetch_member
    async with directory(roles=(GUILD,), clock=clock) as found:
        monkeypatch.setattr(Guild, "fetch_member", fetch)
        for _ in range(3):
            assert (await found.access_of(ADA)).sees(GUILD, 600)
            assert await found.access_of(BEN) == NOTHING
        assert asked == [ADA, BEN, ADA, ADA]
        there.add(BEN)
        clock.advance(ABSENT_S - 1)
        assert await found.access_of(BEN) == NOTHING
        clock.advance(1)
        assert (await found.access_of(BEN)).sees(GUILD, 600)
        there.remove(BEN)
        assert await found.access_of(BEN) == NOTHING


@pytest.mark.parametrize(("roles", "sees"), [((), False), ((GUILD,), True), ((77,), False)])
async def test_members_with_a_role_see_rooms_but_no_prompts(roles: tuple[int, ...], *, sees: bool) -> None:
    """With one of those that the server has chosen."""
    async with directory(roles=roles) as found:
        ben = await found.access_of(BEN)
        assert ben.sees(GUILD, 600) is sees
        assert not ben.sees_prompts(GUILD)


async def test_who_runs_the_bot_sees_the_servers_where_they_are() -> None:
    """An owner of the bot counts as a manager of every server of which they are a member."""
    async with directory(owners=(BEN, STRANGER)) as found:
        assert (await found.access_of(BEN)).sees_prompts(GUILD)
        assert await found.access_of(STRANGER) == NOTHING


@pytest.mark.parametrize("who", [ADA, BEN])
async def test_rooms_that_discord_keeps_people_out_of_are_not_shown(monkeypatch: pytest.MonkeyPatch, who: int) -> None:
    """Of their server people see the rooms of the channels that they may see and enter. Discord keeps minors out of
    age-restricted ones, managers or not, whatever their permissions say; the bot cannot.
    """

    def but_not_602(channel: VoiceChannel, member: object) -> Permissions:
        return Permissions(view_channel=True, connect=channel.id != 602)

    async with directory(roles=(GUILD,)) as found:
        for attribute, replaced in (("permissions_for", but_not_602), ("is_nsfw", lambda channel: channel.id == 602)):
            with monkeypatch.context() as patch:
                patch.setattr(VoiceChannel, attribute, replaced)
                seen = await found.access_of(who)
            assert (seen.sees(GUILD, 600), seen.sees(GUILD, 602)) == (True, False)
