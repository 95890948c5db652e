"""The voice of one server: the chosen one from the next sentence on, the usual one when it fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import numpy as np

from bot.channel.notice_queue import NoticeQueue
from bot.conversation.room_voice import RoomVoice
from bot.models.loaded_voices import LoadedVoices
from bot.models.voices import DEFAULT_VOICE, EmbeddedVoice
from bot.server_settings import ServerSettings, ServerSettingsBook
from bot.texts.text import Text
from tests.fakes.room_channel import FakeRoomChannel
from voice.errors import SynthesisError, UnreadableTextError, VoiceLoadingError
from voice.speaking.port import AudioChunk, Synthesizer, synthesize_all

USUAL_HZ, CHOSEN_HZ = 22_050, 24_000


class Tone:
    """Says every sentence as a tone, or fails."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.fails = self.reads_nothing = False

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        if self.reads_nothing:
            raise UnreadableTextError("It has no glasses.")
        if self.fails:
            raise SynthesisError("The disk is gone.")
        yield AudioChunk(np.full(1_000 * len(text.split()), 900, np.int16), self.rate_hz)


class OneVoice:
    """Has one voice for every name. `trouble`: what is wrong with it; `loading`: it is not ready yet."""

    def __init__(self) -> None:
        self.tone = Tone(CHOSEN_HZ)
        self.prepared: list[str] = []
        self.retried: list[str] = []
        self.trouble: Text | None = None
        self.loading = False

    @asynccontextmanager
    async def using(self, voice: EmbeddedVoice) -> AsyncIterator[Synthesizer]:
        assert self.trouble is None
        if self.loading:
            raise VoiceLoadingError(f"The voice {voice.title} is still being loaded.")
        yield self.tone

    def prepare(self, voice: EmbeddedVoice) -> None:
        self.prepared.append(voice.name)

    def retry(self, voice: EmbeddedVoice) -> None:
        self.retried.append(voice.name)

    def problem(self, voice: EmbeddedVoice) -> Text | None:
        return self.trouble


class Server:
    """A server that chooses voices."""

    def __init__(self, chosen: str | None = None) -> None:
        self.chosen = chosen
        self.source, self.told = OneVoice(), list[str]()
        self.voice = RoomVoice(
            FakeRoomChannel(),
            Tone(USUAL_HZ),
            cast("NoticeQueue", self),
            servers=cast("ServerSettingsBook", self),
            voices=cast("LoadedVoices", self.source),
            usual_voice=DEFAULT_VOICE,
        )

    def of(self, guild_id: int) -> ServerSettings:
        return ServerSettings(voice=self.chosen)

    def add(self, text: Text) -> None:
        self.told.append(text)

    async def spoken_hz(self) -> int:
        return (await synthesize_all(self.voice, "The blue canoe leaves on Friday.")).rate_hz


async def test_a_choice_applies_to_the_next_sentence() -> None:
    """Without a choice the usual voice speaks; a choice, and its end, apply to the next sentence."""
    server = Server()
    assert server.source.prepared == []
    spoken = []
    for chosen in (None, "heart", None):
        server.chosen = chosen
        spoken.append(await server.spoken_hz())
    assert spoken == [USUAL_HZ, CHOSEN_HZ, USUAL_HZ]
    assert server.told == []


async def test_a_voice_that_fails_is_told_once_and_the_usual_one_speaks() -> None:
    """The usual voice says what the chosen one cannot; the channel is told why, once, and the status says it after
    the second failure in a row, because then the voice is left alone for a minute.
    """
    server = Server("heart")
    server.source.tone.fails = True
    assert await server.spoken_hz() == USUAL_HZ
    assert server.voice.status() == ""
    assert [await server.spoken_hz() for _ in range(2)] == [USUAL_HZ] * 2
    (told,) = server.told
    assert ("Heart" in told, "The disk is gone." in told) == (True, True)
    assert server.voice.status() == told
    server.chosen = None
    assert server.voice.status() == ""


async def test_a_voice_that_could_not_be_loaded_is_tried_again_in_the_same_session() -> None:
    """The usual voice speaks meanwhile and no sentence waits. The channel is told once that the voice failed."""
    server = Server("heart")
    server.source.trouble = Text("It cannot be read.")
    assert "It cannot be read." in server.voice.status()
    assert [await server.spoken_hz() for _ in range(2)] == [USUAL_HZ] * 2
    assert server.source.retried == ["heart", "heart"]
    server.source.trouble = None
    assert [await server.spoken_hz() for _ in range(2)] == [CHOSEN_HZ] * 2
    assert server.voice.status() == ""
    (failed,) = server.told
    assert "It cannot be read." in failed
    server.source.trouble = Text("It cannot be read.")
    assert await server.spoken_hz() == USUAL_HZ
    server.source.trouble = None
    assert await server.spoken_hz() == CHOSEN_HZ
    assert server.told == [failed]


async def test_nobody_is_told_of_a_voice_that_is_still_being_loaded() -> None:
    """The usual voice says the first sentence, and the chosen one the next."""
    server = Server("heart")
    server.source.loading = True
    assert await server.spoken_hz() == USUAL_HZ
    server.source.loading = False
    assert await server.spoken_hz() == CHOSEN_HZ
    assert server.told == []


async def test_another_language_has_its_own_voice() -> None:
    """An answer in another language has an installed voice of that language; the next one in its own has the usual or
    chosen voice again.
    """
    server = Server()
    server.voice.prefer("de")
    assert server.source.prepared == ["thorsten"]
    assert server.voice.language == "de"
    assert await server.spoken_hz() == CHOSEN_HZ
    for language in ("en", "", "ja"):
        server.voice.prefer(language)
        assert server.voice.language == "en"
        assert await server.spoken_hz() == USUAL_HZ
    server.chosen = "siwis"
    server.voice.prefer("fr")
    assert server.voice.language == "fr"
    assert await server.spoken_hz() == CHOSEN_HZ
    assert server.source.prepared == ["thorsten", "siwis"]
    server.voice.prefer("it")
    assert server.source.prepared == ["thorsten", "siwis", "sara"]
