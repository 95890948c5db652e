"""The embedded voice, with its real model where one is installed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from bot.texts.text import in_language, sentence_of
from tests.patience import PATIENCE_S
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking import embedded, piper
from voice.speaking.embedded import trim_leading_silence
from voice.speaking.piper import EspeakVoice, PiperSynthesizer

VOICE = Path(__file__).parents[3] / "data" / "models" / "voice-joe"


async def test_it_begins_to_speak_at_once_and_spells_no_other_script_out() -> None:
    """The speech has no silence before it, so that people who wait for a reply hear it earlier. What the voice could
    only spell it refuses, and speaks the next sentence.
    """
    async with PiperSynthesizer.open(VOICE) as voice:
        speech = await voice.synthesize("The blue canoe leaves on Friday.")
        assert int(abs(speech.pcm[: speech.rate_hz // 50].astype(int)).max()) > 100
        with pytest.raises(UnreadableTextError):
            await voice.synthesize("Доброе утро, друзья.")
        assert len((await voice.synthesize("Good morning.")).pcm)


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


async def test_a_missing_voice_says_what_to_run(tmp_path: Path) -> None:
    """The error for an empty voice directory names the command that fetches the voice."""
    with pytest.raises(SynthesisError, match="roomtone models pull voice"):
        async with PiperSynthesizer.open(tmp_path):
            pass


async def test_a_damaged_voice_says_what_to_run(tmp_path: Path) -> None:
    """The error for a damaged voice file names the option that fetches the voice again."""
    (tmp_path / "voice.onnx").write_bytes(b"not a model")
    (tmp_path / "voice.onnx.json").write_text("{}")
    with pytest.raises(SynthesisError, match="--again"):
        async with PiperSynthesizer.open(tmp_path):
            pass


async def test_a_voice_that_is_never_loaded_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk hangs. The bot goes on without it, and says so."""
    gate = threading.Event()
    monkeypatch.setattr(piper, "_load", lambda *_: gate.wait(PATIENCE_S))
    monkeypatch.setattr(embedded, "LOAD_TIMEOUT_S", 0.0)
    monkeypatch.setattr(embedded, "STOP_TIMEOUT_S", 0.0)
    with pytest.raises(SynthesisError, match="was not loaded within 0 s") as failed:
        async with PiperSynthesizer.open(tmp_path):
            pass
    assert in_language(sentence_of(failed.value), "de").startswith("Die Stimme in")
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
