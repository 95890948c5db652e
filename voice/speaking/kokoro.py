"""A second embedded engine: Kokoro, a model of 82 million parameters that speaks with many voices.

It needs several times the CPU of Piper (docs/models.md). One loaded model serves all of its voices. The phonemes come
from espeak through piper-tts, so it needs the same optional part (the extra `piper`).
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

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
from voice.speaking.piper import phonemizer
from voice.speaking.port import Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from voice.audio import Pcm
    from voice.daemon_thread import DaemonThread

RATE_HZ = 24_000
MODEL_FILE = "model.onnx"
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

KokoroLanguage = Literal["en-us", "en-gb-x-rp", "fr", "es", "it"]
_SOUNDS: Mapping[KokoroLanguage, Mapping[str, str]] = {
    "en-us": _AMERICAN,
    "en-gb-x-rp": _BRITISH,
    "fr": _AFFRICATES,
    "es": _AFFRICATES,
    "it": _AFFRICATES,
}


@dataclass(frozen=True, slots=True)
class KokoroStyle:
    """One of the model's voices. `file`: its style vectors, beside the model. `language`: how it reads, for espeak."""

    file: str
    language: KokoroLanguage


class KokoroModel:
    """The loaded model. Created by `open`; `voice` makes its voices, and any number of tasks may use them.

    *Ownership*: holds one thread and one ONNX session.
    """

    def __init__(self, directory: Path, session: Any, worker: DaemonThread) -> None:
        self._directory = directory
        self._session = session
        self._worker = worker

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path, *, threads: int = 2) -> AsyncIterator[KokoroModel]:
        """Load the model in `directory` (`model.onnx`, and a file for each voice). Raises `SynthesisError`."""
        async with voice_thread("kokoro") as worker:
            session = await loaded(partial(_load, directory, threads), worker, directory)
            yield cls(directory, session, worker)

    async def voice(self, style: KokoroStyle, *, speed: float = 1.0) -> EmbeddedSynthesizer:
        """Return one of the voices, ready to speak. `speed`: 1.0 is its own. Raises `SynthesisError`."""
        load_speaker = partial(_speaker, self._directory, self._session, style, speed)
        speaker = await loaded(load_speaker, self._worker, self._directory)
        synthesizer = EmbeddedSynthesizer(speaker.speak, self._worker)
        # The first run allocates memory and is slow, so do it before anybody is listening.
        await synthesizer.synthesize("Yes.")
        return synthesizer


@dataclass(frozen=True, slots=True)
class _Speaker:
    """What the thread needs to speak with one voice."""

    session: Any
    language: KokoroLanguage
    phonemes: Callable[[str], str]
    vectors: NDArray[np.float32]
    speed: float

    def speak(self, text: str) -> Speech:
        require_readable(text, self.language)
        try:
            tokens = token_pieces(self.phonemes(text), _SOUNDS[self.language])
            pieces = [self._speak_piece(piece) for piece in tokens]
        except Exception as exc:
            # espeak and onnxruntime raise untyped errors. The message must not contain the spoken words.
            raise SynthesisError("The embedded voice failed on a sentence; it was left out.") from exc
        pcm = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int16)
        return Speech(text, trim_leading_silence(pcm, RATE_HZ), RATE_HZ)

    def _speak_piece(self, tokens: list[int]) -> Pcm:
        inputs = {
            # Token 0 begins and ends what is spoken.
            "input_ids": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": self.vectors[min(len(tokens), len(self.vectors)) - 1][np.newaxis],
            "speed": np.array([self.speed], dtype=np.float32),
        }
        sound = np.asarray(self.session.run(None, inputs)[0], dtype=np.float64).reshape(-1)
        return np.rint(np.clip(np.nan_to_num(sound), -1.0, 1.0) * 32767).astype(np.int16)


def token_pieces(phonemes: str, sounds: Mapping[str, str]) -> list[list[int]]:
    """Return the tokens of espeak's phonemes, in pieces that the model can take; no piece for what has no sound.

    `sounds`: how this language's sounds are written for the model. A piece ends at a pause if it can.
    """
    if "aɪ" in sounds:
        phonemes = _UNSTRESSED_I.sub("ˌ", phonemes)
    for written, known in sounds.items():
        phonemes = phonemes.replace(written, known)
    kept = "".join(symbol for symbol in phonemes if symbol in _VOCABULARY)
    pieces = []
    while any(symbol.isalpha() for symbol in kept):
        cut = len(kept)
        if cut > _MOST_TOKENS:
            pauses = (kept.rfind(mark, 1, _MOST_TOKENS) for mark in (".", ",", " "))
            cut = next((pause + 1 for pause in pauses if pause > 0), _MOST_TOKENS)
        pieces.append([_VOCABULARY[symbol] for symbol in kept[:cut].strip()])
        kept = kept[cut:]
    return pieces


def _load(directory: Path, threads: int) -> Any:
    model = directory / MODEL_FILE
    if not model.is_file():
        raise SynthesisError(
            "There is no Kokoro in {directory}. Run `roomtone models pull voice-kokoro`.", directory=directory
        )
    try:
        return onnx_session(model, threads)
    except Exception as exc:
        # onnxruntime raises its own untyped errors for a damaged file.
        raise _damaged(directory) from exc


def _speaker(directory: Path, session: Any, style: KokoroStyle, speed: float) -> _Speaker:
    try:
        vectors = np.fromfile(directory / style.file, dtype="<f4").reshape(_STYLE_SHAPE)
    except (OSError, ValueError) as exc:
        raise _damaged(directory) from exc
    return _Speaker(session, style.language, phonemizer(style.language), vectors, speed)


def _damaged(directory: Path) -> SynthesisError:
    return SynthesisError(
        "Kokoro in {directory} cannot be read. Run `roomtone models pull voice-kokoro --again`.", directory=directory
    )
