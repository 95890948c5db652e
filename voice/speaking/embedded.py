"""What the embedded voices share: a model in a worker thread that speaks one sentence at a time.

A new kind of voice is a module with a `VoiceEngine`, and its entry in `bot/models/voices.py`.
"""

from __future__ import annotations

import unicodedata
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from voice.daemon_thread import LOAD_TIMEOUT_S, STOP_TIMEOUT_S, DaemonThread
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.port import AudioChunk, Speech

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from voice.audio import Pcm

T = TypeVar("T")
# Says one sentence. Blocks.
Speak: TypeAlias = "Callable[[str], AudioChunk]"

# hibari is ninety times faster than real time; Kokoro takes 0.6 s of CPU time for a second of speech, and a long
# sentence has 10 s. Nobody waits longer in silence: another voice says the sentence then.
SENTENCE_TIMEOUT_S = 15.0
# The model begins each sentence with about 50 ms of near silence, which would delay every answer. Below -54 dBFS counts
# as silence. 10 ms of it are kept for sounds that begin softly. The pause between two sentences is at the end of each.
_SILENT_RMS = 65.0
_LEAD_S = 0.01
_STEP_S = 0.005


@dataclass(frozen=True, slots=True)
class VoiceManner:
    """How a voice speaks. `speed`: 1.0 is its own speed, 2.0 twice as fast. `variety`: how differently the same words
    sound each time; 1.0 is its default, and 0.0 means always the same.
    """

    speed: float = 1.0
    variety: float = 1.0


USUAL_MANNER = VoiceManner()


@dataclass(frozen=True, slots=True)
class VoiceEngine:
    """What makes embedded voices of one kind. One module of this package has it, and alone imports its library.

    `licence`: of the library. `load`: reads the model in a folder. `speaker`: returns what speaks with one of its
    voices, by the name of the voice in the model. All of them run in the model's thread, and raise `SynthesisError`
    with the remedy. Any other error of what `speaker` returns means that this sentence cannot be said.
    """

    name: str
    licence: str
    load: Callable[[Path], Any]
    speaker: Callable[[Any, str, VoiceManner], Speak]


class EmbeddedModel:
    """A loaded model. Created by `open`; `voice` makes its voices, and any number of tasks may use them.

    *Ownership*: holds one thread, and the model in it.
    """

    def __init__(self, engine: VoiceEngine, directory: Path, model: object, worker: DaemonThread) -> None:
        self._engine = engine
        self._directory = directory
        self._model = model
        self._worker = worker

    @classmethod
    @asynccontextmanager
    async def open(cls, engine: VoiceEngine, directory: Path) -> AsyncIterator[EmbeddedModel]:
        """Load the model in `directory`. Its end does not wait long for a sentence that nobody wants any more.

        Raises `SynthesisError`.
        """
        worker = DaemonThread(engine.name.lower())
        try:
            loading = worker.run(partial(engine.load, directory), within_s=LOAD_TIMEOUT_S)
            yield cls(engine, directory, await _loaded(loading, directory), worker)
        finally:
            await worker.stop(within_s=STOP_TIMEOUT_S)

    async def voice(self, style: str = "", manner: VoiceManner = USUAL_MANNER) -> EmbeddedSynthesizer:
        """Return one of the model's voices, ready to speak. Raises `SynthesisError`."""
        load_speaker = partial(self._engine.speaker, self._model, style, manner)
        loading = self._worker.run(load_speaker, within_s=LOAD_TIMEOUT_S)
        synthesizer = EmbeddedSynthesizer(await _loaded(loading, self._directory), self._worker)
        # The first run allocates memory and is slow, so do it before anybody is listening.
        await synthesizer.synthesize("Yes.")
        return synthesizer


class EmbeddedSynthesizer:
    """Speaks one sentence at a time, with `speak`, which blocks in the model's thread. Any number of tasks may use it.

    *Cancellation*: a cancelled call returns at once; the thread finishes the sentence, and the result is dropped.
    """

    def __init__(self, speak: Speak, worker: DaemonThread) -> None:
        self._speak = speak
        self._worker = worker

    async def stream(self, text: str) -> AsyncGenerator[AudioChunk, None]:
        """Yield `text` as one chunk: synthesis is faster than real time. Raises `SynthesisError`."""
        speech = await self.synthesize(text)
        if len(speech.pcm):
            yield AudioChunk(speech.pcm, speech.rate_hz)

    async def synthesize(self, text: str) -> Speech:
        """Return `text` as speech. Raises `SynthesisError`."""
        try:
            sound = await self._worker.run(partial(self._speak, text), within_s=SENTENCE_TIMEOUT_S)
        except SynthesisError:
            raise
        except TimeoutError as exc:
            raise SynthesisError(
                "My voice needed too long for one sentence, because my computer has too much to do."
            ) from exc
        except Exception as exc:
            # The libraries raise untyped errors. The message must not contain the spoken words.
            raise SynthesisError("My voice failed on one sentence, so I left this sentence out.") from exc
        return Speech(text, trim_leading_silence(sound.pcm, sound.rate_hz), sound.rate_hz)


async def _loaded(loading: Awaitable[T], directory: Path) -> T:
    """Return what `loading` reads from the voice in `directory`. Raises `SynthesisError`."""
    try:
        return await loading
    except TimeoutError as exc:
        raise SynthesisError(
            "The voice in {directory} was not loaded within {within_s:g} seconds. Its disk does not "
            "answer, or the computer has too much to do.",
            directory=directory,
            within_s=LOAD_TIMEOUT_S,
        ) from exc


def missing(directory: Path) -> SynthesisError:
    """Return the error of a model that is not in its folder."""
    return SynthesisError(
        "There is no voice in {directory}. Run `roomtone models pull {model}`.",
        directory=directory,
        model=directory.name,
    )


def damaged(directory: Path) -> SynthesisError:
    """Return the error of a model whose files cannot be read."""
    return SynthesisError(
        "The voice in {directory} cannot be read. Run `roomtone models pull {model} --again`.",
        directory=directory,
        model=directory.name,
    )


def onnx_session(model: Path, threads: int, *, keep_memory: bool = True) -> Any:
    """Return the session of a model file. Raises onnxruntime's own untyped errors for a damaged one.

    `keep_memory`: keep what a sentence takes for the next one. Giving it back costs a tenth of the CPU time.
    """
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = options.enable_cpu_mem_arena = keep_memory
    # Spinning threads would take CPU time from everything else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return InferenceSession(str(model), sess_options=options, providers=["CPUExecutionProvider"])


def trim_leading_silence(pcm: Pcm, rate_hz: int) -> Pcm:
    """Return `pcm` with at most 10 ms of silence before its first sound. If all of `pcm` is silent, return it
    unchanged.
    """
    step = int(_STEP_S * rate_hz)
    whole = pcm[: len(pcm) // step * step].astype(np.float64).reshape(-1, step)
    sounding = np.flatnonzero(np.sqrt(np.mean(whole**2, axis=1)) > _SILENT_RMS) if len(whole) else np.zeros(0)
    if not len(sounding):
        return pcm
    return pcm[max(0, int(sounding[0]) * step - int(_LEAD_S * rate_hz)) :]


def require_readable(letters: Iterable[bool]) -> None:
    """Raise `UnreadableTextError` unless a voice can read most of the letters of a text. Some foreign words may be in
    it. `letters`: of each, whether the voice can read it.
    """
    readable = list(letters)
    if sum(readable) < len(readable) / 2:
        raise unreadable()


def unreadable() -> UnreadableTextError:
    """Return the error of a text in a script that a voice cannot read."""
    return UnreadableTextError(
        "My voice cannot read these letters, so I write. A voice at an endpoint can read them (speaking.base_url)."
    ).for_people("My voice cannot read these letters, so I write.")


def script(letter: str) -> str:
    """Return the first word of Unicode's name for a letter, which is that of its script: 'LATIN', 'CYRILLIC'."""
    # 'KATAKANA-HIRAGANA PROLONGED SOUND MARK'
    return unicodedata.name(letter, "").replace("-", " ").partition(" ")[0]


def pieces_at_pauses(phonemes: str, most: int) -> list[str]:
    """Return phonemes in pieces of at most `most`, each cut where it pauses, if it does. Marks alone are no piece: a
    model would make a noise of them.
    """
    pieces = []
    while any(map(str.isalpha, phonemes)):
        cut = len(phonemes)
        if cut > most:
            pauses = (phonemes.rfind(mark, 1, most) for mark in (".", ",", " "))
            cut = next((pause + 1 for pause in pauses if pause > 0), most)
        pieces.append(phonemes[:cut].strip())
        phonemes = phonemes[cut:]
    return pieces


def as_pcm(sound: NDArray[Any]) -> Pcm:
    """Return a model's samples (-1.0 to 1.0) as int16."""
    whole = np.nan_to_num(np.asarray(sound, dtype=np.float64).reshape(-1))
    return np.rint(np.clip(whole, -1.0, 1.0) * 32767).astype(np.int16)
