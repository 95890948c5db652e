"""What the embedded voices share: a model in a worker thread that speaks one sentence at a time."""

from __future__ import annotations

import unicodedata
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from voice.daemon_thread import LOAD_TIMEOUT_S, STOP_TIMEOUT_S, DaemonThread
from voice.errors import SynthesisError, UnreadableTextError
from voice.speaking.port import AudioChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from voice.audio import Pcm
    from voice.speaking.port import Speech

T = TypeVar("T")

# Piper is thirty times faster than real time; Kokoro takes 0.6 s of CPU time for a second of speech, and a long
# sentence has 10 s. Nobody waits longer in silence: another voice says the sentence then.
SENTENCE_TIMEOUT_S = 15.0
# The model begins each sentence with about 50 ms of near silence, which would delay every answer. Below -54 dBFS counts
# as silence. 10 ms of it are kept for sounds that begin softly. The pause between two sentences is at the end of each.
_SILENT_RMS = 65.0
_LEAD_S = 0.01
_STEP_S = 0.005
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


class EmbeddedSynthesizer:
    """Speaks one sentence at a time, with `speak`, which blocks in the voice's thread. Any number of tasks may use it.

    *Cancellation*: a cancelled call returns at once; the thread finishes the sentence, and the result is dropped.
    """

    def __init__(self, speak: Callable[[str], Speech], worker: DaemonThread) -> None:
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
            return await self._worker.run(partial(self._speak, text), within_s=SENTENCE_TIMEOUT_S)
        except TimeoutError as exc:
            raise SynthesisError(
                "The embedded voice took too long over one sentence; the machine is overloaded."
            ) from exc


@asynccontextmanager
async def voice_thread(name: str) -> AsyncIterator[DaemonThread]:
    """Yield a thread for one model. Its end does not wait long for a sentence that nobody wants any more."""
    worker = DaemonThread(name)
    try:
        yield worker
    finally:
        await worker.stop(within_s=STOP_TIMEOUT_S)


async def loaded(load: Callable[[], T], worker: DaemonThread, directory: Path) -> T:
    """Return what `load` reads from the voice in `directory`, in the voice's thread. Raises `SynthesisError`."""
    try:
        return await worker.run(load, within_s=LOAD_TIMEOUT_S)
    except TimeoutError as exc:
        raise SynthesisError(
            "The voice in {directory} was not loaded within {within_s:g} s: its disk hangs, or the machine is "
            "overloaded.",
            directory=directory,
            within_s=LOAD_TIMEOUT_S,
        ) from exc


def onnx_session(model: Path, threads: int, *, plan_memory: bool = True) -> Any:
    """Return the session of a model file. Raises onnxruntime's own untyped errors for a damaged one.

    `plan_memory`: keep a plan of the memory for each length of sentence met.
    """
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = plan_memory
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


def require_readable(text: str, language: str) -> None:
    """Raise `UnreadableTextError` if a voice would name most of the letters of `text` instead of reading them.

    espeak reads some scripts in any language. Of others it names every letter: an English voice says 'Japanese letter'
    for each sign of a Japanese sentence, which takes half a minute and tells nobody anything. `language`: the voice's,
    as espeak calls it, such as `en-us`.
    """
    named = _NAMED.get(language.partition("-")[0], frozenset())
    letters = [sign for sign in text if not sign.isascii() and sign.isalpha()]
    unreadable = sum(_script(sign) in named for sign in letters)
    if unreadable > sum(map(str.isalpha, text)) - unreadable:
        raise UnreadableTextError(
            "My voice cannot read this script, so I write. A voice at an endpoint can (speaking.base_url)."
        ).for_people("My voice cannot read this script, so I write.")


def _script(letter: str) -> str:
    # 'KATAKANA-HIRAGANA PROLONGED SOUND MARK'
    return unicodedata.name(letter, "").replace("-", " ").partition(" ")[0]
