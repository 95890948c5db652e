"""The embedded voice, with its real model where one is installed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest
from structlog.testing import capture_logs

from bot.texts.text import in_language, sentence_of
from tests.patience import PATIENCE_S
from voice.daemon_thread import DaemonThread
from voice.errors import SynthesisError, UnreadableTextError, VoiceHungError
from voice.speaking import piper
from voice.speaking.piper import EspeakVoice, PiperSynthesizer, trim_leading_silence
from voice.speaking.port import Speech

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")

VOICE = Path(__file__).parents[3] / "data" / "models" / "voice-joe"


@pytest.mark.asyncio
async def test_a_sentence_becomes_sound() -> None:
    """The voice from `roomtone models pull voice` speaks a sentence of plausible length and level."""
    async with PiperSynthesizer.open(VOICE) as voice:
        speech = await voice.synthesize("The blue canoe leaves on Friday.")
    assert 1.0 < len(speech.pcm) / speech.rate_hz < 4.0
    assert int(abs(speech.pcm.astype(int)).max()) > 3000


@pytest.mark.asyncio
async def test_it_begins_to_speak_at_once() -> None:
    """The speech has no silence before it, so that people who wait for a reply hear it earlier."""
    async with PiperSynthesizer.open(VOICE) as voice:
        speech = await voice.synthesize("The blue canoe leaves on Friday.")
    assert int(abs(speech.pcm[: speech.rate_hz // 50].astype(int)).max()) > 100


@pytest.mark.asyncio
async def test_another_script_is_not_spelled_out() -> None:
    """The voice refuses what it could only spell, and speaks the next sentence."""
    async with PiperSynthesizer.open(VOICE) as voice:
        with pytest.raises(UnreadableTextError):
            await voice.synthesize("Доброе утро, друзья.")
        assert len((await voice.synthesize("Good morning.")).pcm)


@pytest.mark.asyncio
async def test_without_variety_the_same_words_sound_the_same() -> None:
    """Without variety the same words give the same samples, so that a rehearsal is repeatable. With variety they never
    do.
    """
    for variety, alike in ((0.0, True), (1.0, False)):
        async with PiperSynthesizer.open(VOICE, variety=variety) as voice:
            first, second = [(await voice.synthesize("Friday.")).pcm for _ in range(2)]
        assert np.array_equal(first, second) is alike


def test_only_the_silence_before_the_first_sound_goes() -> None:
    """Only the silence before the first sound is removed, except for 10 ms. Silence inside and entirely silent sound
    stay.
    """
    sound = np.concatenate([np.zeros(2_205), np.full(2_205, 3_000), np.zeros(2_205)]).astype(np.int16)
    assert len(trim_leading_silence(sound, 22_050)) == pytest.approx(4_410 + 220, abs=110)
    np.testing.assert_array_equal(trim_leading_silence(sound, 22_050)[-4_410:], sound[-4_410:])
    for quiet in (np.zeros(500, np.int16), np.zeros(0, np.int16), np.zeros(50, np.int16)):
        assert len(trim_leading_silence(quiet, 22_050)) == len(quiet)


@pytest.mark.asyncio
async def test_a_missing_voice_says_what_to_run(tmp_path: Path) -> None:
    """The error for an empty voice directory names the command that fetches the voice."""
    with pytest.raises(SynthesisError, match="roomtone models pull voice"):
        async with PiperSynthesizer.open(tmp_path):
            pass


@pytest.mark.asyncio
async def test_a_damaged_voice_says_what_to_run(tmp_path: Path) -> None:
    """The error for a damaged voice file names the option that fetches the voice again."""
    (tmp_path / "voice.onnx").write_bytes(b"not a model")
    (tmp_path / "voice.onnx.json").write_text("{}")
    with pytest.raises(SynthesisError, match="--again"):
        async with PiperSynthesizer.open(tmp_path):
            pass


@pytest.mark.asyncio
async def test_a_voice_that_is_never_loaded_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk hangs. The bot goes on without it, and says so."""
    gate = threading.Event()
    monkeypatch.setattr(piper, "_load", lambda *_: gate.wait(PATIENCE_S))
    monkeypatch.setattr(piper, "LOAD_TIMEOUT_S", 0.0)
    monkeypatch.setattr(piper, "STOP_TIMEOUT_S", 0.0)
    with pytest.raises(SynthesisError, match="was not loaded within 0 s") as failed:
        async with PiperSynthesizer.open(tmp_path):
            pass
    assert in_language(sentence_of(failed.value), "de").startswith("Die Stimme in")
    gate.set()


class PromptThread(DaemonThread):
    """A thread that has begun each call when `submit` returns."""

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """See `DaemonThread.submit`."""
        begun = threading.Event()

        def noted() -> T:
            begun.set()
            return call()

        future = super().submit(noted)
        begun.wait(PATIENCE_S)
        return future


@pytest.mark.asyncio
async def test_whether_what_hangs_has_come_back_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that, another attempt would only leave a second thread behind."""
    gate, threads = threading.Event(), list[threading.Thread]()

    def load(*_: object) -> None:
        threads.append(threading.current_thread())
        gate.wait(PATIENCE_S)

    monkeypatch.setattr(piper, "DaemonThread", PromptThread)
    monkeypatch.setattr(piper, "_load", load)
    monkeypatch.setattr(piper, "LOAD_TIMEOUT_S", 0.0)
    monkeypatch.setattr(piper, "STOP_TIMEOUT_S", 0.0)
    with pytest.raises(VoiceHungError) as failed:
        async with PiperSynthesizer.open(tmp_path):
            pass
    assert not failed.value.has_ended()
    gate.set()
    threads[0].join(PATIENCE_S)
    assert failed.value.has_ended()


@pytest.mark.asyncio
async def test_a_voice_that_hangs_holds_up_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing it waits for so long only, and the process can end."""
    begun, gate = threading.Event(), threading.Event()

    def speak(_: object, text: str, *__: float) -> Speech:
        if text != "Yes.":
            begun.set()
            gate.wait(PATIENCE_S)
        return Speech(text, np.zeros(0, np.int16), 22_050)

    monkeypatch.setattr(piper, "_load", lambda *_: None)
    monkeypatch.setattr(piper, "_speak", speak)
    monkeypatch.setattr(piper, "STOP_TIMEOUT_S", 0.0)
    with capture_logs() as logs:
        async with PiperSynthesizer.open(tmp_path) as voice:
            speaking = asyncio.create_task(voice.synthesize("Good morning."))
            await asyncio.to_thread(begun.wait)
            speaking.cancel()
    assert [line["event"] for line in logs] == ["model_thread_left_behind"]
    gate.set()


def test_espeaks_voice_is_set_when_another_one_is_wanted() -> None:
    asked: list[str] = []

    def set_voice(name: str) -> None:
        asked.append(name)
        if name == "nonsense":
            raise RuntimeError("no such voice")

    voice = EspeakVoice(set_voice)
    for name in ("en-us", "en-us", "de", "en-us"):
        voice(name)
    with pytest.raises(RuntimeError):
        voice("nonsense")
    # Nobody knows what espeak has now.
    voice("en-us")
    assert asked == ["en-us", "de", "en-us", "nonsense", "en-us"]
