"""Who is answered in a room, who is not, and how the bot is silenced. Everything is real except sound, models and
Discord.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.typing import EventDict

from bot import events
from bot.brain.responder import ModelResponder
from bot.brain.wakeword import SILENT_MINUTES
from bot.channel.port import MembershipChange
from bot.participation.settings import ParticipationSettings
from bot.participation.statistics import silenced_for
from bot.room.room import Room
from bot.server_settings import ServerSettings
from tests.bot.room.room_scene import TICK_S, House, Judge, a_house, living, thinking
from tests.fakes.billed import BilledEndpoint
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle


async def silent(house: House, seconds: float = 2.0) -> None:
    """Let time pass and check that the bot says nothing."""
    before = len(house.of(events.ReplySpoken))
    await house.pass_time(seconds)
    assert len(house.of(events.ReplySpoken)) == before


async def test_told_to_shut_up_it_stops_at_once_and_stays_silent(house: House, room: Room) -> None:
    """ "Shut up" with the bot's name stops a reply at once. The bot goes on listening for ten minutes."""
    connection = house.channel.connections[-1]
    await house.say(ADA.id, "The spare key is under the blue flower pot.")
    connection.pulling = False
    await house.say(BO.id, "Roomtone, where is the spare key?")
    await settle(lambda: bool(house.voice.spoken))
    await house.pass_time(TICK_S)
    connection.pull(3)
    await house.say(ADA.id, "Shut up, Roomtone!")
    reply = await house.reply(1)
    assert reply.interrupted
    await settle(lambda: house.channel.written[-1] == silenced_for(SILENT_MINUTES))
    connection.pulling = True
    await settle(lambda: len(house.turns) == 4)
    await house.say(BO.id, "Roomtone, where is the spare key?")
    await silent(house)
    assert house.said[-1] == "Bo: Roomtone, where is the spare key?"
    assert "I had to be silent: 1" in room.status()
    assert "I am silent for now" in room.status()


async def test_a_guilds_own_names_are_heard_and_told(house: House) -> None:
    """A guild's own names for the bot are used by the recogniser's glossary, the decider, the model's prompt, and the
    voice, which reads none before a colon.
    """
    responder = thinking(house, "Jeeves: Good evening.")
    async with living(house):
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(wake_names=("Jeeves",)), by=BO.id)
        await house.say(ADA.id, "Roomtone, hello.")
        await silent(house)
        await house.say(ADA.id, "Jeeves, hello.")
        await house.reply(1)
        assert 'they also call you "Jeeves"' in responder.contexts[0].messages[1].content
        assert responder.contexts[0].names == ("Roomtone", "Jeeves")
        assert house.recogniser.asked[-1][2][0] == "Jeeves"
        assert house.voice.spoken == ["Good evening."]


async def test_who_asks_is_answered_in_their_language(house: House) -> None:
    """In a room of two languages the model is told whose to answer in. Events are in the recogniser's glossary."""
    responder = thinking(house, "Half past nine.", "Halb zehn.", "Half past nine.")
    house.channel.occasions = ["The Curse of Strahd"]
    house.recogniser.languages[BO.id] = "de"
    async with living(house):
        for number, (speaker, question, answered) in enumerate(
            (
                (ADA, "Roomtone, when does the concert start tomorrow?", None),
                (BO, "Roomtone, wann fängt morgen das Konzert an?", "Answer in German."),
                (ADA, "Roomtone, when does the concert start tomorrow?", "Answer in English."),
            ),
            start=1,
        ):
            await house.say(speaker.id, question)
            await house.reply(number)
            instructions = responder.contexts[-1].messages[-2].content
            assert (answered is None and "Answer in" not in instructions) or (answered or "") in instructions
    assert [context.language for context in responder.contexts] == ["", "de", "en"]
    assert {"Ada", "Bo"} <= set(responder.contexts[0].present)
    assert {"Curse", "Strahd"} <= set(house.recogniser.asked[0][2])


async def test_a_server_narrows_the_languages_that_are_heard(tmp_path: Path) -> None:
    """At once, also in a session that runs."""
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, "We take the train at nine.")
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(spoken=("de", "fr")), by=ADA.id)
        await house.say(BO.id, "Wir nehmen den Zug um neun.")
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(spoken=("de",)), by=ADA.id)
        await house.say(ADA.id, "Und was nehmen wir mit?")
        await settle(lambda: len(house.recogniser.asked) > 2)
    heard_in = [language for _, language, _ in house.recogniser.asked]
    assert list(dict.fromkeys(heard_in)) == [None, ("de", "fr"), "de"]


async def test_who_has_opted_out_is_neither_heard_nor_answered(house: House, room: Room) -> None:
    """The sound of a person who has opted out is excluded and not even recognised, and their coming and going become
    no turns.
    """
    assert not house.channel.excludes(ADA.id)
    await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=True)
    assert house.channel.excludes(ADA.id)
    assert not house.channel.excludes(BO.id)
    # If it were recognised, the next text would be taken for hers.
    house.channel.connections[-1].hear(speech(ADA.id, at=house.clock.monotonic()))
    room.on_membership(MembershipChange(ADA, joined=False))
    await house.pass_time(3.0)
    await house.say(BO.id, "Roomtone, hello.")
    await house.reply(1)
    assert not [line for line in house.said if line.startswith("Ada")]
    assert house.channel.written == []
    await house.participation.set_opt_out(house.channel.guild_id, ADA.id, out=False)
    assert not house.channel.excludes(ADA.id)


@pytest.mark.usefixtures("room")
async def test_what_is_forgotten_while_it_is_recognised_is_shown_to_nobody(house: House) -> None:
    """Words from before /forget-me whose text comes later reach no observer, and so neither dashboard nor tail."""
    house.recogniser.texts.append("The walrus sleeps in the shed.")
    house.recogniser.gate.clear()
    started = house.clock.monotonic()
    await house.pass_time(TICK_S)
    house.channel.connections[-1].hear(speech(ADA.id, at=started))
    await house.pass_time(4.0)
    assert len(house.recogniser.asked) == 1
    house.forget(ADA)
    house.recogniser.gate.set()
    await settle(lambda: bool(house.of(events.SpeechDropped)))
    assert house.of(events.UtteranceTranscribed) + house.of(events.InterimTranscribed) == []


@pytest.mark.parametrize(("held", "quiet_s"), [(False, 0.0), (True, 0.0), (True, 0.4)])
async def test_the_third_spoken_question_of_two_is_refused(tmp_path: Path, held: bool, quiet_s: float) -> None:
    """Also where each reply is begun in a pause and held, in a task of whoever brought the sound with the pause."""
    endpoint = BilledEndpoint()
    async with a_house(tmp_path) as house:
        house.participating = ParticipationSettings(max_calls_per_hour=2)
        house.turn_end_detector = Judge() if held else None
        house.new_responder = lambda payer: ModelResponder(endpoint.paid_by(payer), max_output_tokens=50)
        async with living(house) as (room, _):
            for question in range(5):
                await house.say(ADA.id, f"Roomtone, what is the answer to question {question}?", quiet_s=quiet_s)
                await house.pass_time(3.0)
            costs = (await house.participation.of_guild(house.channel.guild_id)).costs
            assert house.voice.spoken == ["Answer 1.", "Answer 2."]
            assert (costs.total.calls, costs.total.tokens) == (2, 1_300)
            assert "the limit for this hour was reached: 3" in room.status()
    assert endpoint.calls == 2


async def test_a_withdrawn_reply_is_paid_for(house: House, logs: list[EventDict]) -> None:
    """Somebody goes on after the pause in which it was begun. It was the only call of the hour."""
    endpoint = BilledEndpoint()
    house.participating = ParticipationSettings(max_calls_per_hour=1)
    house.turn_end_detector = Judge()
    house.new_responder = lambda payer: ModelResponder(endpoint.paid_by(payer), max_output_tokens=50)
    async with living(house) as (room, _):
        connection = house.channel.connections[-1]
        house.recogniser.texts += ["Roomtone, what", "Roomtone, what is the answer?"]
        await house.pass_time(2.0)
        started = house.clock.monotonic() - 2.0
        connection.hear(speech(ADA.id, at=started, quiet_s=0.3)[:1])
        await settle(lambda: endpoint.calls == 1)
        connection.hear(speech(ADA.id, at=started + 2.0))
        await house.pass_time(4.0)
        await settle(lambda: bool(house.turns))
        costs = (await house.participation.of_guild(house.channel.guild_id)).costs
        assert "reply_withdrawn" in [line["event"] for line in logs]
        assert (costs.total.calls, costs.total.spoken_s) == (1, 0.0)
        assert "the limit for this hour was reached: 1" in room.status()
