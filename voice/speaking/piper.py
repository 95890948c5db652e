"""The embedded voice: Piper, in its own worker thread.

piper-tts is licensed under GPL-3 and is therefore an optional part (the extra `piper`). The package is imported only
here; other engines get its phonemes from here.
"""

from __future__ import annotations

import json
import unicodedata
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from voice.errors import SynthesisError
from voice.speaking.embedded import (
    EmbeddedSynthesizer,
    loaded,
    onnx_session,
    require_readable,
    trim_leading_silence,
    voice_thread,
)
from voice.speaking.port import Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path


_NOT_INSTALLED = (
    "The embedded voice is not installed. In the checkout, run `make setup`, or `uv tool install '.[piper]'`."
)
_MODEL_FILE = "voice.onnx"
_CONFIG_FILE = "voice.onnx.json"


class PiperSynthesizer(EmbeddedSynthesizer):
    """An `EmbeddedSynthesizer`. Created by `open`. *Ownership*: holds one thread and one ONNX session."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, directory: Path, *, threads: int = 2, speed: float = 1.0, variety: float = 1.0
    ) -> AsyncIterator[PiperSynthesizer]:
        """Load the voice in `directory` (`voice.onnx`, `voice.onnx.json`). Raises `SynthesisError`.

        `threads`: two threads take two thirds of the time of one, for the same CPU time. `speed`: 1.0 is the voice's
        own speed; with 2.0 it is twice as fast. `variety`: how differently the same words sound each time. 1.0 is the
        voice's default, and 0.0 means always the same.
        """
        async with voice_thread("piper") as worker:
            voice = await loaded(partial(_load, directory, threads), worker, directory)
            synthesizer = cls(partial(_speak, voice, speed=speed, variety=variety), worker)
            # The first run allocates memory and is slow, so do it before anybody is listening.
            await synthesizer.synthesize("Yes.")
            yield synthesizer


class VoiceModel:
    """The voice's ONNX session, which gives the memory of each sentence back. Not thread-safe.

    onnxruntime would keep that of the longest sentence for good: 450 MB after one of 50 words. Kept for sentences of up
    to 13 words alone, it still went up and down by 120 MB. Giving back costs 5 % of a sentence's CPU time.
    """

    def __init__(self, session: Any) -> None:
        from onnxruntime import RunOptions

        self._session = session
        self._giving_back = RunOptions()
        self._giving_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, Any]) -> list[Any]:
        """Compute one sentence. `inputs["input"]`: its phonemes, shape (1, phonemes)."""
        found: list[Any] = self._session.run(outputs, inputs, self._giving_back)
        return found


class EspeakVoice:
    """Sets espeak's voice when another one is wanted. piper-tts (1.8) does so for each sentence, and espeak keeps 1.3
    kB each time: a room that says a thousand sentences an hour would grow by as much.

    Use it where piper-tts does, under its lock.
    """

    def __init__(self, set_voice: Callable[[str], None]) -> None:
        self._set_voice = set_voice
        self._name: str | None = None

    def __call__(self, name: str) -> None:
        if name != self._name:
            # After a failure nobody knows which voice espeak has.
            self._name = None
            self._set_voice(name)
            self._name = name


def _keep_espeak_voice() -> None:
    """Let piper-tts use an `EspeakVoice`. espeak has one state for the whole process. Raises ImportError."""
    from piper import espeakbridge

    if not isinstance(espeakbridge.set_voice, EspeakVoice):
        espeakbridge.set_voice = EspeakVoice(espeakbridge.set_voice)  # type: ignore[assignment]


def _load(directory: Path, threads: int) -> Any:
    try:
        from piper import PiperVoice
        from piper.config import PiperConfig

        _keep_espeak_voice()
    except ImportError as exc:
        raise SynthesisError(_NOT_INSTALLED) from exc
    model, config = directory / _MODEL_FILE, directory / _CONFIG_FILE
    if not model.is_file() or not config.is_file():
        raise SynthesisError("There is no voice in {directory}. Run `roomtone models pull voice`.", directory=directory)
    try:
        # Of no use when all memory is given back: a plan of it.
        session = onnx_session(model, threads, plan_memory=False)
        settings = PiperConfig.from_dict(json.loads(config.read_text("utf-8")))
        return PiperVoice(session=VoiceModel(session), config=settings)
    except Exception as exc:
        # onnxruntime raises its own untyped errors for a damaged file.
        raise SynthesisError(
            "The voice in {directory} cannot be read. Run `roomtone models pull voice --again`.", directory=directory
        ) from exc


def _speak(voice: Any, text: str, *, speed: float, variety: float) -> Speech:
    from piper.config import SynthesisConfig

    own = voice.config
    require_readable(text, own.espeak_voice)
    config = SynthesisConfig(
        # The voice's own length scale is not always 1.
        length_scale=own.length_scale / speed,
        noise_scale=own.noise_scale * variety,
        noise_w_scale=own.noise_w_scale * variety,
    )
    try:
        chunks = [chunk.audio_int16_array for chunk in voice.synthesize(text, config)]
    except Exception as exc:
        # espeak and onnxruntime raise untyped errors. The message must not contain the spoken words.
        raise SynthesisError("The embedded voice failed on a sentence; it was left out.") from exc
    pcm = np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int16)
    rate_hz = int(voice.config.sample_rate)
    return Speech(text=text, pcm=trim_leading_silence(pcm, rate_hz), rate_hz=rate_hz)


def phonemizer(language: str) -> Callable[[str], str]:
    """Return a function that turns text into espeak's phonemes for another engine. Raises `SynthesisError`.

    `language`: as espeak calls it, such as `en-us`. The function may be called from any thread.
    """
    try:
        from piper import PiperVoice
        from piper.config import PhonemeType, PiperConfig

        _keep_espeak_voice()
    except ImportError as exc:
        raise SynthesisError(_NOT_INSTALLED) from exc
    config = PiperConfig(
        num_symbols=0,
        num_speakers=1,
        sample_rate=0,
        espeak_voice=language,
        phoneme_id_map={},
        phoneme_type=PhonemeType.ESPEAK,
    )
    # espeak has one state for the whole process, which piper-tts guards. Without a model this only reads.
    reader = PiperVoice(session=cast("Any", None), config=config)
    return lambda text: unicodedata.normalize("NFC", " ".join("".join(each) for each in reader.phonemize(text)))
