"""A language model that is away: memory answers in its place. Everything is real except sound, models and Discord."""

from __future__ import annotations

from datetime import UTC
from functools import partial

import pytest

from bot import events
from bot.brain.embedded.chat import MODEL_AWAY, EmbeddedResponder
from bot.brain.responder import ModelOrMemory
from bot.brain.speech_output import MODEL_BROKE_OFF, MODEL_FAILED
from bot.llm.port import NO_ANSWER, ChatModelError, FilteredError
from bot.texts.text import OperatorText, in_language
from tests.bot.room.messages import Message
from tests.bot.room.room_scene import House, living
from tests.fakes.brain import ScriptedResponder
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle

WHERE = "http://10.0.0.9:8000/v1"
KEY = "Bo said: The key is under the pot."


def away() -> ChatModelError:
    """Return the failure of a model that nobody reaches."""
    sentence = OperatorText("No language model answers at {where}. Check llm.base_url.", NO_ANSWER, where=WHERE)
    return ChatModelError(sentence, retryable=True)


def furnish(house: House, *pieces: str | BaseException) -> ScriptedResponder:
    """Let a model answer with these pieces, and memory if it does not."""
    model = ScriptedResponder(*pieces)
    stand_in = partial(EmbeddedResponder, MODEL_AWAY, zone=UTC)
    house.new_responder, house.can_skip = lambda _: ModelOrMemory(model, stand_in), True
    return model


def read_by_people(house: House) -> list[str]:
    """Return what stands in the channel."""
    return [in_language(text, "en") for text in house.channel.written]


async def test_memory_answers_while_the_model_is_away_and_says_so_once(house: House) -> None:
    """In the voice channel and in writing, until the model has answered again. Nobody reads the address."""
    model = furnish(house, away())
    async with living(house) as (room, _):
        await house.say(BO.id, "The key is under the pot.")
        await house.say(ADA.id, "Roomtone, where is the key?")
        assert (await house.reply(1)).text == f"{KEY} {MODEL_AWAY}"
        await house.say(ADA.id, "Roomtone, where is the key?")
        assert (await house.reply(2)).text == KEY
        message = Message("Where is the key?")
        assert await room.take_typed(message) is None
        await settle(lambda: message.answers == [KEY])
        model.pieces = ("Under the pot.",)
        await house.say(ADA.id, "Roomtone, where is the key?")
        assert (await house.reply(3)).text == "Under the pot."
        model.pieces = (away(),)
        await house.say(ADA.id, "Roomtone, where is the key?")
        assert (await house.reply(4)).text == f"{KEY} {MODEL_AWAY}"
    assert not any("10.0.0.9" in text for text in (*read_by_people(house), *message.answers, *house.said))


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("It is under the pot. And", away()), f"It is under the pot. {MODEL_BROKE_OFF}"),
        ((FilteredError(),), MODEL_FAILED),
    ],
)
async def test_what_memory_does_not_answer(house: House, pieces: tuple[str | BaseException, ...], said: str) -> None:
    """After its first word a model's failure is told as before. One whose filter refused is not away."""
    furnish(house, *pieces)
    async with living(house):
        await house.say(ADA.id, "Roomtone, where is the key?")
        assert (await house.reply(1)).text == said
        await settle(lambda: len(house.channel.written) > 0)
    assert not any("10.0.0.9" in text for text in read_by_people(house))


async def test_who_goes_on_without_the_name_may_be_answered_from_memory(house: House) -> None:
    """A question right after an answer goes to the bot, as without a model. Whether other words do only the model can
    tell: nothing is said then, and when it is back they still need no name.
    """
    model = furnish(house, "Under the pot.")
    async with living(house):
        await house.say(BO.id, "The key is under the pot.")
        await house.say(ADA.id, "Roomtone, where is the key?")
        await house.reply(1)
        model.pieces = (away(),)
        await house.say(ADA.id, "And where is the key?")
        assert (await house.reply(2)).text == f"{KEY} {MODEL_AWAY}"
        await house.say(ADA.id, "I mean the key of the boat house.")
        await settle(lambda: len(house.of(events.ReplyFinished)) == 3)
        assert house.of(events.ReplyFinished)[-1].outcome is events.ReplyOutcome.SKIPPED
        model.pieces = ("In the boat.",)
        await house.say(ADA.id, "I mean the one of the boat house.")
        assert (await house.reply(3)).text == "In the boat."


async def test_an_answer_from_memory_is_a_problem_and_no_model_s_work(house: House) -> None:
    """Who runs the bot sees it, but nobody bills it."""
    furnish(house, away())
    async with living(house):
        await house.say(ADA.id, "Roomtone, where is the key?")
        reply = await house.reply(1)
        await settle(lambda: len(house.of(events.ReplyFinished)) == 1)
        (problem,) = house.of(events.Problem)
        assert (problem.where, WHERE in problem.sentence) == ("reply", True)
        assert reply.model_first_token_ms is None
