"""The voice that a server has chosen reaches its rooms, and the bot's usual voice is not loaded a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.channel.notice_queue import NoticeQueue
from bot.conversation.room_voice import RoomVoice
from bot.models.voices import DEFAULT_VOICE
from bot.server_settings import MemoryServerSettings, ServerSettings, ServerSettingsBook
from bot.settings import ModelsSettings
from bot.wiring.speech_models import open_voices
from tests.fakes.brain import FakeVoice
from tests.fakes.room_channel import FakeRoomChannel
from voice.speaking.port import synthesize_all
from voice.speaking.settings import SpeakingSettings

ELSEWHERE = SpeakingSettings(base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("chosen", "speaking", "told"),
    [
        (None, SpeakingSettings(), ""),
        ("hibari", SpeakingSettings(), ""),
        ("joe", SpeakingSettings(), "I cannot speak with the voice Joe now"),
        ("joe", ELSEWHERE, "I cannot speak with the voice Joe now"),
        ("emma", SpeakingSettings(), "I cannot speak with the voice Emma now"),
        ("otto", SpeakingSettings(), "I no longer have a voice with that name."),
    ],
)
async def test_after_a_restart_a_room_has_the_voice_that_was_stored(
    tmp_path: Path, chosen: str | None, speaking: SpeakingSettings, told: str
) -> None:
    """Where no model is installed, the usual voice speaks, and the status says so unless the usual one was chosen."""
    store, channel, usual = MemoryServerSettings(), FakeRoomChannel(), FakeVoice()
    await store.put(channel.guild_id, ServerSettings(voice=chosen), by=None)
    servers = ServerSettingsBook(store)
    await servers.load()
    async with open_voices(speaking, ModelsSettings(directory=tmp_path), [servers]) as voices:
        room_voice = RoomVoice(
            channel,
            usual,
            NoticeQueue(channel, name="notices"),
            servers=servers,
            voices=voices,
            usual_voice=None if speaking.by_endpoint else DEFAULT_VOICE,
        )
        await synthesize_all(room_voice, "Hello.")
        assert (told in room_voice.status()) if told else (room_voice.status() == "")
    assert usual.spoken == ["Hello."]
