"""The voices of Kokoro, a model of 82 million parameters that speaks with many voices.

It needs several times the CPU of Piper (docs/models.md). One loaded model serves all of its voices. The phonemes come
from espeak through piper-tts, so it needs the same optional part (the extra `piper`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from voice.speaking.embedded import (
    Speak,
    VoiceEngine,
    VoiceManner,
    as_pcm,
    damaged,
    missing,
    onnx_session,
    pieces_at_pauses,
)
from voice.speaking.piper import espeak_text, phonemizer
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from voice.audio import Pcm

_RATE_HZ = 24_000
_MODEL_FILE = "model.onnx"
_THREADS = 2
# The model's limits: tokens in one call, and one style vector for each number of tokens.
_MOST_TOKENS = 510
_STYLE_SHAPE = (510, 256)
# The symbols of the model's vocabulary (config.json of Kokoro-82M v1.0), each with its token.
_VOCABULARY: Mapping[str, int] = dict(
    zip(
        ';:,.!?—…"()“” \u0303ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔ'
        "ˈˌːʰʲ↓→↗↘ᵻ",
        (
            *(1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 31, 33, 35, 36, 39),
            *(41, 42, 43, 44, 45, 46, 47, 48, *range(50, 73), 75, 76, 77, 78, 80, 81, 82, 83, 85, 86, 87, 90, 92, 99),
            *(101, 102, 103, 110, 111, 112, 113, 114, 115, 116, 118, 119, 120, 123, 125, 126, 128, 129, 130, 131, 132),
            *(133, 135, 136, 138, 139, 140, 142, 143, 147, 148, 156, 157, 158, 162, 164, 169, 171, 172, 173, 177),
        ),
        strict=True,
    )
)
# Kokoro was trained with one symbol for each of these sounds; espeak writes two.
_AFFRICATES = {"dʒ": "ʤ", "tʃ": "ʧ", "dz": "ʣ", "ts": "ʦ"}
_ENGLISH = {"dʒ": "ʤ", "tʃ": "ʧ", "eɪ": "A", "aɪ": "I", "aʊ": "W", "ɔɪ": "Y", "ɚ": "əɹ", "r": "ɹ", "x": "k", "ɐ": "ə"}
# Without a stress the model swallows the word "I", and words such as "I'm", at the beginning of a sentence.
_UNSTRESSED_I = re.compile(r"\b(?=aɪ(?:m|l|v|d)?\b)")
# American vowels have no length of their own.
_AMERICAN = {**_ENGLISH, "oʊ": "O", "ɜːɹ": "ɜɹ", "ɜː": "ɜɹ", "ɪə": "iə", "ː": ""}
_BRITISH = {**_ENGLISH, "əʊ": "Q", "eə": "ɛː", "iə": "ɪə"}

# By the letter with which a voice's name begins: its language, as espeak calls it, and how its sounds are written.
_LANGUAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "a": ("en-us", _AMERICAN),
    "b": ("en-gb-x-rp", _BRITISH),
    "f": ("fr", _AFFRICATES),
    "e": ("es", _AFFRICATES),
    "i": ("it", _AFFRICATES),
}


def token_pieces(phonemes: str, sounds: Mapping[str, str]) -> list[list[int]]:
    """Return the tokens of espeak's phonemes, in pieces that the model can take; no piece for what has no sound.

    `sounds`: how this language's sounds are written for the model. A piece ends at a pause if it can.
    """
    if "aɪ" in sounds:
        phonemes = _UNSTRESSED_I.sub("ˌ", phonemes)
    for written, known in sounds.items():
        phonemes = phonemes.replace(written, known)
    kept = "".join(symbol for symbol in phonemes if symbol in _VOCABULARY)
    return [[_VOCABULARY[symbol] for symbol in piece] for piece in pieces_at_pauses(kept, _MOST_TOKENS)]


def _load(directory: Path) -> Any:
    """Return the folder with the loaded model: its voices are beside it."""
    model = directory / _MODEL_FILE
    if not model.is_file():
        raise missing(directory)
    try:
        return directory, onnx_session(model, _THREADS)
    except Exception as exc:
        # onnxruntime raises its own untyped errors for a damaged file.
        raise damaged(directory) from exc


def _speaker(loaded: tuple[Path, Any], style: str, manner: VoiceManner) -> Speak:
    """Return what speaks with one of the voices. `style`: its name in the model, such as 'af_heart'. 'ef_dora@a' is the
    Spanish voice, which reads like an American one.
    """
    directory, session = loaded
    name, _, other = style.partition("@")
    language, sounds = _LANGUAGES[(other or name)[0]]
    try:
        vectors = np.fromfile(directory / f"{name}.bin", dtype="<f4").reshape(_STYLE_SHAPE)
    except (OSError, ValueError) as exc:
        raise damaged(directory) from exc
    prepare, phonemes = espeak_text(language), phonemizer(language)

    def speak_piece(tokens: list[int]) -> Pcm:
        inputs = {
            # Token 0 begins and ends what is spoken.
            "input_ids": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": vectors[min(len(tokens), len(vectors)) - 1][np.newaxis],
            "speed": np.array([manner.speed], dtype=np.float32),
        }
        return as_pcm(session.run(None, inputs)[0])

    def speak(text: str) -> AudioChunk:
        pieces = [speak_piece(piece) for piece in token_pieces(phonemes(prepare(text)), sounds)]
        return AudioChunk(np.concatenate([np.zeros(0, np.int16), *pieces]), _RATE_HZ)

    return speak


KOKORO = VoiceEngine("Kokoro", "Apache-2.0", _load, _speaker)
