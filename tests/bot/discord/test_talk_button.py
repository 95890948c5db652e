"""The button *Talk again* on the local Discord."""

from __future__ import annotations

import pytest

from bot.discord.access import PEOPLE, Who
from bot.discord.connection import connected
from bot.participation.all_guilds import MAY_SPEAK, SILENCED_FOR_GOOD
from bot.texts.text import verbatim
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import FakeSupervisor, settings_for, settle

GUILD, LOUNGE, ADA, BEN, CHLOE = 500, 600, 2001, 2002, 2003


class FakeSilences:
    """Notes who ended a silence. `always`: only a moderator ends it."""

    def __init__(self, *, always: bool = False) -> None:
        self.lifted: list[tuple[int, int, bool]] = []
        self.always = always

    async def lift_silence(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Note the press."""
        self.lifted.append((guild_id, by, moderator))
        return moderator or not self.always


@pytest.mark.parametrize(
    ("person", "always", "told", "lifted"),
    [
        (ADA, True, MAY_SPEAK, [(GUILD, ADA, True)]),
        (BEN, False, MAY_SPEAK, [(GUILD, BEN, False)]),
        (BEN, True, SILENCED_FOR_GOOD, [(GUILD, BEN, False)]),
        (CHLOE, False, f"Only {PEOPLE[Who.PRESENT_OR_MODERATORS]} can do that.", []),
    ],
)
async def test_a_press_is_a_talk_command(person: int, always: bool, told: str, lifted: list[object]) -> None:
    """With its rules, and an answer that only the person sees. It stands below the sentence about the silence, and
    below no other. Ada moderates, Ben is in the channel, and Chloe is not.
    """
    silences, supervisor = FakeSilences(always=always), FakeSupervisor()
    async with LocalDiscord() as local, connected(settings_for(local), supervisor, silences=silences) as client:
        place = supervisor.place = client.place(local.guild.id, LOUNGE)
        assert place is not None
        await local.join(BEN, channel_id=LOUNGE)
        await settle(lambda: bool(supervisor.movements))
        await place.offer_talk(verbatim("I am silent."))
        await place.write(verbatim("I am not."))
        silent, other = local.messages
        assert not other.payload.get("components")
        (reply,) = (await local.press(person, silent.id, "Talk again")).replies
        assert (reply.content, reply.ephemeral, silences.lifted) == (told, True, lifted)
