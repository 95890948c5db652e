"""/help on the local Discord: people of each kind read of the commands that they may use, in their language."""

from __future__ import annotations

import pytest

from bot.discord.access import RULES
from bot.discord.connection import connected
from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import FakeRooms, settings_for
from tests.bot.discord.commands.all_commands import all_command_adders
from tests.bot.discord.remembered import seen
from tests.patience import settle

ADA, BEN, CHLOE, DORA = 2001, 2002, 2003, 2004
GUILD = GuildSpec(
    people=(
        Member(ADA, "Ada", moderator=True),
        Member(BEN, "Ben"),
        Member(CHLOE, "Chloe", locale="de"),
        Member(DORA, "Dora", moderator=True, locale="de"),
    )
)


@pytest.mark.parametrize("local_guild", [GUILD])
async def test_people_read_of_what_they_may_do(local: LocalDiscord) -> None:
    """Members are told of members' commands, managers of all; who is in the channel also of those for people there.

    All of it fits into Discord's limits, in German too, where texts are longest. Each command can be pressed.
    """
    rooms = FakeRooms()
    async with connected(settings_for(local), rooms, all_command_adders()) as client:

        async def helped(person: int, locale: str = "en-US") -> str:
            (reply,) = (await local.invoke(person, "help")).replies
            assert reply.ephemeral
            assert "</" in seen(reply)
            return local.state.shown(seen(reply), locale)

        rooms.room_channel = client.find_channel(local.guild.id, 600)
        member = await helped(BEN)
        assert member.index("Jeeves") < member.index("- *Jeeves, ")
        assert member.count("- *Jeeves, ") == 3
        assert "**/transcript**: Get a file with what was said" in member
        assert "/leave" not in member
        assert "/settings" not in member
        assert "more commands. You can use" in member
        manager = await helped(ADA)
        assert "**/leave** *(people in my voice channel, and server managers)*: Send me away" in manager
        assert "**/settings** *(server managers)*: See and change" in manager
        assert "/watch look" not in manager
        assert "**/mitschrift**: Hol dir" in await helped(CHLOE, "de")
        before = len(rooms.movements)
        for person in (ADA, BEN, DORA):
            await local.join(person, channel_id=600)
        await settle(lambda: len(rooms.movements) == before + 3)
        assert "**/leave** *(people in my voice channel, and server managers)*" in await helped(BEN)
        everything = await helped(DORA, "de")
        assert "für andere" not in everything
        everybody = await helped(ADA)
        assert [name for name in RULES if f"/{name.split()[0]}" not in everybody] == []
