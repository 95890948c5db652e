"""What a room says aloud: its voice, samples of voices, and replies that were prepared."""

from __future__ import annotations

from pathlib import Path

from structlog.typing import EventDict

from bot.channel.port import UnfinishedWords
from bot.models.voices import DEFAULT_VOICE
from bot.server_settings import ServerSettings
from tests.bot.room.room_scene import Judge, a_house, living, thinking
from tests.fakes.hearing import speech
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle


async def test_a_sample_of_a_voice_is_played_where_the_bot_may_speak(tmp_path: Path) -> None:
    """A sample is said with its own voice and becomes no turn; a silenced bot says none."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        sample = house.sample
        assert await room.play_sample(DEFAULT_VOICE) is None
        assert (sample.spoken, house.voice.spoken) == ([DEFAULT_VOICE.sample], [])
        assert house.turns == []
        sample.mute.add(DEFAULT_VOICE.sample)
        assert "could not speak" in str(await room.play_sample(DEFAULT_VOICE))
        asked = len(sample.spoken)
        await house.participation.silence_for_now(house.channel.guild_id, by=BO.id)
        assert "Use /talk" in str(await room.play_sample(DEFAULT_VOICE))
        await house.participation.silence_always(house.channel.guild_id, by=BO.id)
        assert "to be silent" in str(await room.play_sample(DEFAULT_VOICE))
    assert len(sample.spoken) == asked


async def test_a_room_speaks_with_the_voice_that_its_server_has_chosen(tmp_path: Path) -> None:
    """Its usual voice says what that one cannot, and /status tells it."""
    async with a_house(tmp_path) as house:
        await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(voice="joe"), by=ADA.id)
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, where is the spare key?")
            await house.reply(1)
            assert (bool(house.sample.spoken), house.voice.spoken) == (True, [])
            await house.servers.change(house.channel.guild_id, lambda _: ServerSettings(voice="otto"), by=ADA.id)
            assert "no longer have a voice with that name" in room.status()
            await house.say(ADA.id, "Roomtone, where is the map?")
            await house.reply(2)
            assert house.voice.spoken != []


async def test_the_answer_has_begun_when_the_end_is_sure(tmp_path: Path, logs: list[EventDict]) -> None:
    """The model is asked once, before the turn is recorded, and nothing is spoken until the turn has ended."""
    async with a_house(tmp_path) as house:
        house.turn_end_detector, responder = Judge(), thinking(house, "Bo brings it.")
        async with living(house) as (room, _):
            house.recogniser.texts.append("Roomtone, who brings the lantern?")
            await house.pass_time(2.0)
            house.channel.connections[-1].hear(speech(ADA.id, at=house.clock.monotonic() - 2.0))
            await house.pass_time(0.25)
            await settle(lambda: bool(house.voice.spoken))
            # The first sound is ready, and none of it is played.
            assert house.turns == []
            assert house.channel.connections[-1].frames_sent == 0
            assert room.unfinished() == (UnfinishedWords("Ada", "Roomtone, who brings the lantern?"),)
            await house.pass_time(1.2)
            reply = await house.reply(1)
            assert reply.text == "Bo brings it."
            assert house.voice.spoken == ["Bo brings it."]
            events = {str(line["event"]) for line in logs}
            assert events & {"held_reply_used", "reply_withdrawn"} == {"held_reply_used"}
            assert len(responder.contexts) == 1
            assert responder.contexts[0].current.parts == house.turns[0].parts
            assert [turn.seq for turn in house.turns] == [0, 1]
