"""The bot's own voice in English: hibari, a model of 6 million parameters that comes in its library's wheel.

hibari-tts (Apache-2.0) needs no espeak: it has a dictionary, and a small network for words that are not in it. It
writes out most numbers and signs itself (docs/decisions/0004-embedded-voice.md). The package is imported only here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from voice.errors import SynthesisError
from voice.speaking.embedded import (
    Speak,
    VoiceEngine,
    VoiceManner,
    as_pcm,
    pieces_at_pauses,
    require_readable,
    script,
    unreadable,
)
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from pathlib import Path


# More phonemes at once than the 400 that hibari cuts sentences to cost memory by the square: 2 GB for 5,000 letters.
_MOST_PHONEMES = 400


def _load(_directory: Path) -> Any:
    """Return the voice, with everything that it reads from files. Nothing is downloaded: this voice is in the wheel."""
    try:
        from hibari import Hibari

        # One thread: it takes a hundredth of the time that the sentence lasts.
        voice = Hibari(threads=1)
        # The name is in no dictionary, so this reads the network for unknown words too.
        voice("Roomtone")
    except Exception as exc:
        # Python and onnxruntime raise their own errors for what is absent or damaged.
        raise SynthesisError(
            "My voice, hibari-tts, is missing or damaged. Run `{python} -m pip install "
            "--force-reinstall --no-deps 'hibari-tts>=0.2.1,<0.3'`. Then start me again.",
            python=sys.executable,
        ).for_people("My voice is missing or damaged. Please tell the owner of this bot.") from exc
    return voice


def _speaker(voice: Any, _style: str, manner: VoiceManner) -> Speak:
    def speak(text: str) -> AudioChunk:
        require_readable(script(letter) == "LATIN" for letter in text if letter.isalpha())
        # What differs from time to time is only the noise in the sound.
        noise = np.random.default_rng(None if manner.variety else 0)
        pieces = [piece for sentence in voice.phonemize(text) for piece in pieces_at_pauses(sentence, _MOST_PHONEMES)]
        if not pieces and any(map(str.isalnum, text)):
            raise unreadable()
        sounds = [voice.from_ids(voice.ids(piece), manner.speed, noise) for piece in pieces]
        return AudioChunk(as_pcm(np.concatenate([np.zeros(0, np.float32), *sounds])), int(voice.sample_rate))

    return speak


HIBARI = VoiceEngine("Hibari", "Apache-2.0", _load, _speaker)


def written_out(text: str) -> str:
    """Return an English text with its times, dates, units and abbreviations in words, for voices that read them less
    well. The text itself if the library is absent.
    """
    try:
        from hibari.g2p.normalize import normalize
    except ImportError:
        return text
    return str(normalize(text))
