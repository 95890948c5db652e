"""The voices of Piper, and what others need of espeak.

piper-tts is licensed under GPL-3 and is therefore an optional part (the extra `piper`). The package is imported only
here; other engines get its phonemes from here.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from voice.errors import SynthesisError
from voice.speaking.embedded import (
    Speak,
    VoiceEngine,
    VoiceManner,
    damaged,
    missing,
    onnx_session,
    require_readable,
    script,
)
from voice.speaking.hibari import written_out
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_NOT_INSTALLED = (
    "This voice needs Piper, but Piper is not installed. In the checkout, run `make setup`, or `uv "
    "tool install '.[piper]'`."
)
_MODEL_FILE = "voice.onnx"
_CONFIG_FILE = "voice.onnx.json"
# Two threads take two thirds of the time of one, for the same CPU time.
_THREADS = 2
# Tried with espeak-ng 1.52 (piper-tts 1.8) in the languages of the embedded voices. Scripts are the first words of
# Unicode's names for their letters.
_NAMED_BY_ALL = frozenset(
    {
        "ARABIC", "CHEROKEE", "CJK", "CYRILLIC", "ETHIOPIC", "HEBREW", "HIRAGANA", "KATAKANA", "KHMER", "LAO",
        "MONGOLIAN", "MYANMAR", "TELUGU", "THAI", "TIBETAN",
    }
)  # fmt: skip
# By language. A voice of another one, which somebody has put in the place of ours, may read all.
_NAMED = {"en": _NAMED_BY_ALL | {"GREEK"}, **dict.fromkeys(("de", "es", "fr", "it"), _NAMED_BY_ALL)}


class EspeakVoice:
    """Sets espeak's voice when another one is wanted. piper-tts (1.8) does so for each sentence, and espeak keeps 1.3
    kB each time: a room that says a thousand sentences an hour would grow by as much.

    Use it where piper-tts does, under its lock. `bridge`: of piper-tts to espeak, as it was.
    """

    def __init__(self, bridge: Any) -> None:
        self._set_voice = bridge.set_voice
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
        espeakbridge.set_voice = EspeakVoice(espeakbridge)  # type: ignore[assignment]


def _load(directory: Path) -> Any:
    try:
        from piper import PiperVoice
        from piper.config import PiperConfig

        _keep_espeak_voice()
    except ImportError as exc:
        raise SynthesisError(_NOT_INSTALLED) from exc
    model, config = directory / _MODEL_FILE, directory / _CONFIG_FILE
    if not model.is_file() or not config.is_file():
        raise missing(directory)
    try:
        # onnxruntime would keep the memory of the longest sentence for good: 450 MB after one of 50 words.
        session = onnx_session(model, _THREADS, keep_memory=False)
        settings = PiperConfig.from_dict(json.loads(config.read_text("utf-8")))
        return PiperVoice(session=session, config=settings)
    except Exception as exc:
        # onnxruntime raises its own untyped errors for a damaged file.
        raise damaged(directory) from exc


def _speaker(voice: Any, _style: str, manner: VoiceManner) -> Speak:
    from piper.config import SynthesisConfig

    own = voice.config
    config = SynthesisConfig(
        # The voice's own length scale is not always 1.
        length_scale=own.length_scale / manner.speed,
        noise_scale=own.noise_scale * manner.variety,
        noise_w_scale=own.noise_w_scale * manner.variety,
    )
    prepare = espeak_text(own.espeak_voice)

    def speak(text: str) -> AudioChunk:
        chunks = [chunk.audio_int16_array for chunk in voice.synthesize(prepare(text), config)]
        pcm = np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int16)
        return AudioChunk(pcm, int(own.sample_rate))

    return speak


PIPER = VoiceEngine("Piper", "GPL-3.0", _load, _speaker)


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


def espeak_text(language: str) -> Callable[[str], str]:
    """Return what makes a text ready for espeak's voice of a language, such as `en-us`.

    It raises `UnreadableTextError` if espeak would name most of the letters instead of reading them. espeak reads some
    scripts in any language. Of others it names every letter: an English voice says 'Japanese letter' for each sign of a
    Japanese sentence, which takes half a minute and tells nobody anything.

    English times and dates are written out first, by the rules of the bot's own voice: espeak says '8:00' like eight
    thousand.
    """
    code = language.partition("-")[0]
    named = _NAMED.get(code, frozenset())

    def ready(text: str) -> str:
        require_readable(script(letter) not in named for letter in text if letter.isalpha())
        return written_out(text) if code == "en" else text

    return ready
