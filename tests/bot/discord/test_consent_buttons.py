"""The buttons by which people agree to be heard, below a notice on the local Discord."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import discord
import pytest

from bot.channel.port import ChatError
from bot.discord.connection import connected
from bot.discord.consent_buttons import HEARD, NOT_HEARD, NOT_LISTENING_HERE, ConsentButtons
from bot.discord.place import DiscordPlace
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import settings_for, settle

GUILD, LOUNGE, ADA = 500, 600, 2001


class FakeConsents:
    """Stores who agreed. `refuses`: raise an error instead."""

    def __init__(self) -> None:
        self.agreed: set[int] = set()
        self.refuses = False

    async def set_agreed(self, guild_id: int, person_id: int, *, agrees: bool) -> None:
        """Store the answer."""
        if self.refuses:
            raise ChatError("Use /opt-in first.")
        (self.agreed.add if agrees else self.agreed.discard)(person_id)


class Press:
    """A press of a button in a channel, and the private answer to it."""

    def __init__(self, channel_id: int = LOUNGE) -> None:
        self.guild_id, self.channel_id = GUILD, channel_id
        self.user = SimpleNamespace(id=ADA)
        self.answers: list[tuple[str, bool]] = []
        self.locale = discord.Locale.american_english
        self.response = SimpleNamespace(send_message=self.answer, is_done=lambda: False)
        self.extras: dict[str, object] = {}
        self.created_at = discord.utils.utcnow()

    async def answer(self, text: str, *, ephemeral: bool, **_: object) -> None:
        """Store the answer."""
        self.answers.append((text, ephemeral))


def whereabouts(channel_id: int | None = LOUNGE) -> Any:
    """Return a supervisor whose bot is in that channel."""
    here = None if channel_id is None else SimpleNamespace(channel_id=channel_id)
    return SimpleNamespace(place_of=lambda _: here)


async def pressed(consents: FakeConsents, where: Any, *, agrees: bool, channel_id: int = LOUNGE) -> tuple[str, bool]:
    """Press a button, and return the answer and whether only that person sees it."""
    press: Any = Press(channel_id)
    await ConsentButtons(consents, where).press(press, agrees=agrees)
    (answer,) = press.answers
    return answer  # type: ignore[no-any-return]


async def test_a_press_is_an_answer_that_only_the_person_sees() -> None:
    """One button agrees, the other takes it back, and the bot answers privately."""
    consents = FakeConsents()
    assert await pressed(consents, whereabouts(), agrees=True) == (HEARD, True)
    assert consents.agreed == {ADA}
    assert await pressed(consents, whereabouts(), agrees=False) == (NOT_HEARD, True)
    assert consents.agreed == set()
    consents.refuses = True
    assert await pressed(consents, whereabouts(), agrees=True) == ("Use /opt-in first.", True)


async def test_nobody_agrees_and_takes_it_back_without_end() -> None:
    """Taking it back ends the bot's reply, so agreeing has a limit. Nobody waits to take it back."""
    consents = FakeConsents()
    buttons = ConsentButtons(consents, whereabouts())
    for number in range(4):
        for agrees in (True, False):
            press: Any = Press()
            await buttons.press(press, agrees=agrees)
            ((told, _),) = press.answers
            assert ("Please wait " in told) is (agrees and number == 3)
            assert consents.agreed == ({ADA} if agrees and number < 3 else set())


@pytest.mark.parametrize("where", [None, 602])
async def test_a_button_of_another_evening_agrees_to_nothing(where: int | None) -> None:
    """A press below an old notice, in a channel where the bot is not now, changes nothing."""
    consents = FakeConsents()
    assert await pressed(consents, whereabouts(where), agrees=True) == (NOT_LISTENING_HERE, True)
    assert consents.agreed == set()


async def test_the_buttons_stand_below_a_notice_that_asks() -> None:
    """A notice that asks has both buttons, any other has none."""
    async with LocalDiscord() as local:
        rooms: Any = SimpleNamespace(place_of=lambda _: None)
        async with connected(settings_for(local), rooms, consents=FakeConsents()) as client:
            place = client.place(local.guild.id, LOUNGE)
            assert isinstance(place, DiscordPlace)
            assert await place.write_notice("I ask.", asks=True)
            assert await place.write_notice("I tell.")
            await settle(lambda: len(local.messages) == 2)
            asked, told = (message.payload for message in local.messages)
            assert asked["author"]["id"] == str(ROOMTONE_BOT_ID)
            labels = [button["custom_id"] for row in asked["components"] for button in row["components"]]
            assert labels == ["roomtone:hear-me", "roomtone:do-not-hear-me"]
            assert not told.get("components")
