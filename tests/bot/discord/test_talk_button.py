"""The button *Talk again* on the local Discord."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bot.discord.commands.participation import TalkButton
from bot.discord.connection import connected
from bot.discord.place import DiscordPlace
from bot.participation.all_guilds import MAY_SPEAK, SILENCED_FOR_GOOD
from bot.texts.text import Text
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import settings_for, settle
from tests.bot.discord.test_consent_buttons import ADA, GUILD, LOUNGE, Press

if TYPE_CHECKING:
    import discord

NOT_HERE = Text("You are not in my voice channel.")


class FakeSilences:
    """Notes who ended a silence. `always`: only a moderator ends it."""

    def __init__(self, *, always: bool = False) -> None:
        self.lifted: list[tuple[int, int, bool]] = []
        self.always = always

    async def lift_silence(self, guild_id: int, *, by: int, moderator: bool) -> bool:
        """Note the press."""
        self.lifted.append((guild_id, by, moderator))
        return moderator or not self.always


class FakeTree:
    """The rules of /talk. `refused`: they do not allow it."""

    def __init__(self, refused: Text | None = None) -> None:
        self._refused = refused

    async def refusal_of_press(self, interaction: discord.Interaction, *, command: str) -> Text | None:
        """Return the refusal."""
        del interaction
        return self._refused if command == "talk" else Text("Another command.")

    def user_of(self, interaction: discord.Interaction) -> Any:
        """Return somebody who is no moderator."""
        del interaction
        return SimpleNamespace(is_moderator=False)


@pytest.mark.parametrize(
    ("always", "refused", "answer", "lifted"),
    [
        (False, None, MAY_SPEAK, [(GUILD, ADA, False)]),
        (True, None, SILENCED_FOR_GOOD, [(GUILD, ADA, False)]),
        (False, NOT_HERE, NOT_HERE, []),
    ],
)
async def test_a_press_is_a_talk_command(always: bool, refused: Text | None, answer: Text, lifted: list[Any]) -> None:
    """With its rules, and an answer that only the person sees."""
    silences, tree, press = FakeSilences(always=always), FakeTree(refused), Press()
    button: Any = TalkButton(silences, tree)  # type: ignore[arg-type]
    await button.talk_again.callback(press)
    assert (press.answers, silences.lifted) == ([(answer, True)], lifted)


async def test_it_stands_below_the_sentence_about_the_silence() -> None:
    """And below no other."""
    async with LocalDiscord() as local:
        rooms: Any = SimpleNamespace(place_of=lambda _: None)
        async with connected(settings_for(local), rooms, silences=FakeSilences()) as client:
            place = client.place(local.guild.id, LOUNGE)
            assert isinstance(place, DiscordPlace)
            await place.offer_talk("I am silent.")
            await place.write("I am not.")
            await settle(lambda: len(local.messages) == 2)
            silent, other = (message.payload for message in local.messages)
            assert [button["custom_id"] for row in silent["components"] for button in row["components"]] == [
                "roomtone:talk-again"
            ]
            assert not other.get("components")
