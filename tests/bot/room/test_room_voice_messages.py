"""Voice messages to the bot while a session is open. Everything is real except the models and Discord."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from bot.channel.port import ChatError, MembershipChange, Person, Recording
from bot.conversation.typed_talk import COME_IN, NOT_HEARD
from bot.conversation.voice_messages import (
    MOST_BYTES,
    MOST_S,
    NO_WORDS,
    OTHER_FORMAT,
    PLACES,
    TOO_LONG,
)
from bot.room.room import Room
from bot.texts.text import Text
from compaction.model import TurnKind
from rehearsal.people.clip import encode_ogg
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, living, thinking
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle
from voice.asr.port import UsualLanguage
from voice.audio import DISCORD_RATE_HZ

ABSENT = Person(9, "Cy", False)


@cache
def sound(seconds: float, *, level: int = 12_000) -> bytes:
    """Return a tone as Discord's client records it. Not when this module is imported, as each worker does."""
    times = np.arange(round(seconds * DISCORD_RATE_HZ)) / DISCORD_RATE_HZ
    return encode_ogg(iter([(level * np.sin(2 * np.pi * 200.0 * times)).astype(np.int16)]))


SPOKEN = partial(sound, 2.0)


def voice_message(
    content: Callable[[], bytes] | bytes | Exception = SPOKEN,
    *,
    person: Person = ADA,
    duration_s: float = 2.0,
    size_bytes: int = 0,
    to_bot: bool = True,
) -> Message:
    """Return a voice message. An exception is raised when it is fetched."""

    async def fetch() -> bytes:
        if isinstance(content, Exception):
            raise content
        return content() if callable(content) else content

    return Message("", person=person, recording=Recording(duration_s, size_bytes, fetch, to_bot=to_bot))


@pytest.mark.parametrize("to_bot", [True, False])
async def test_a_voice_message_is_heard_and_answered_in_writing(house: House, to_bot: bool) -> None:
    """As a typed line is: it is a turn, and the answer knows it. Nothing is said aloud."""
    responder = thinking(house, "Under the pot.")
    async with living(house) as (room, _):
        house.recogniser.texts.append("Where is the key?")
        message = voice_message(to_bot=to_bot)
        assert await room.take_typed(message) is None
        await settle(lambda: message.answers == ["Under the pot."])
        assert [(turn.kind, turn.text) for turn in house.turns[:1]] == [(TurnKind.TYPED, "Where is the key?")]
        assert "Where is the key?" in responder.contexts[0].messages[-1].content
        assert house.voice.spoken == []
        # It is finished speech, and none of it is missing.
        assert not any(house.recogniser.interims)
        assert len(house.recogniser.sounds[0]) > 1.5 * 16_000


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (voice_message(duration_s=MOST_S + 1.0), TOO_LONG),
        (voice_message(size_bytes=MOST_BYTES + 1), TOO_LONG),
        # Whatever its sender says of it.
        (voice_message(partial(sound, MOST_S + 2.0)), TOO_LONG),
        (voice_message(partial(sound, 2.0, level=0)), NO_WORDS),
        (voice_message(b"RIFF" + bytes(400)), OTHER_FORMAT),
        (voice_message(ChatError(Text("Not now."))), Text("Not now.")),
        (voice_message(person=ABSENT), COME_IN),
        (voice_message(person=ABSENT, to_bot=False), None),
    ],
)
async def test_what_is_not_heard_gets_one_sentence(
    house: House, room: Room, message: Message, sentence: Text | None
) -> None:
    """With what to do; and nothing is recorded."""
    assert await room.take_typed(message) == sentence
    assert (house.turns, house.recogniser.sounds, message.answers) == ([], [], [])


async def test_nothing_is_recognised_of_who_may_not_be_heard(house: House, room: Room) -> None:
    """Who replies to the bot reads why. Who opts out while their message is recognised leaves nothing of it."""
    guild_id = house.channel.guild_id
    await house.participation.set_opt_out(guild_id, ADA.id, out=True)
    assert await room.take_typed(voice_message()) == NOT_HEARD
    assert await room.take_typed(voice_message(to_bot=False)) is None
    assert house.recogniser.sounds == []

    recognise = house.recogniser.recognise

    async def opting_out(*sound: object, **how: object) -> object:
        found = await recognise(*sound, **how)  # type: ignore[arg-type]
        await house.participation.set_opt_out(guild_id, BO.id, out=True)
        return found

    house.recogniser.recognise = opting_out  # type: ignore[method-assign,assignment]
    assert await room.take_typed(voice_message(person=BO)) is None
    assert len(house.recogniser.sounds) == 1
    assert house.turns == []


async def test_one_person_cannot_take_all_places(house: House, room: Room) -> None:
    """Whose last ones are not recognised yet reads that they must wait; somebody else is heard."""
    goes_on, recognise = asyncio.Event(), house.recogniser.recognise

    async def slowly(*sound: object, **how: object) -> object:
        await goes_on.wait()
        return await recognise(*sound, **how)  # type: ignore[arg-type]

    house.recogniser.recognise = slowly  # type: ignore[method-assign,assignment]
    sent = [asyncio.create_task(room.take_typed(voice_message())) for _ in range(PLACES.of_one)]
    await asyncio.sleep(0)
    assert await room.take_typed(voice_message()) == PLACES.full_for_one
    sent.append(asyncio.create_task(room.take_typed(voice_message(person=BO))))
    goes_on.set()
    assert await asyncio.gather(*sent) == [None] * len(sent)


async def test_who_leaves_while_their_message_is_recognised_is_not_recorded(house: House, room: Room) -> None:
    """They would not hear of it, and are told why nothing comes."""
    recognise = house.recogniser.recognise

    async def leaving(*sound: object, **how: object) -> object:
        house.channel.people = [BO]
        return await recognise(*sound, **how)  # type: ignore[arg-type]

    house.recogniser.recognise = leaving  # type: ignore[method-assign,assignment]
    assert await room.take_typed(voice_message()) == COME_IN
    assert house.turns == []


async def test_nothing_is_kept_of_who_has_left(house: House, room: Room) -> None:
    """Their language is expected as long as they are there."""
    house.recogniser.languages[ADA.id] = "de"
    for moves in ((), (False, True), ()):
        await room.take_typed(voice_message(sound(3.0)))
        for joined in moves:
            room.on_membership(MembershipChange(ADA, joined=joined))
    assert [language for _, language, _ in house.recogniser.asked] == [None, UsualLanguage("de"), None]
