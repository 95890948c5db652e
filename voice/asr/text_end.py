"""Whether a sentence is finished, as a small language model reads its words: SmolLM2 135M, which knows English.

Whisper writes a full stop after nearly all that it hears, also where somebody pauses within a sentence. A language
model has not heard that the sound ends there. What it expects next tells an end from a pause: a mark that ends a
sentence, or a comma (docs/decisions/0011).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from voice.asr.port import TextEnd
from voice.asr.scheduler import CERTAIN_AFTER_S
from voice.quick_model import QuickModel, TurnModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from voice.asr.port import LanguageHint, Recogniser, Recognition
    from voice.audio import Pcm


class ReadingRecogniser:
    """Calls `recogniser` (`voice.asr.port.Recogniser`), and lets `reader`, which serves all who ask it, read the texts
    of unfinished speech (`Recognition.text_end`). Use it on one event loop.
    """

    def __init__(
        self,
        recogniser: Recogniser,
        reader: QueuedSentenceReader,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recogniser = recogniser
        self._reader = reader
        self._monotonic = monotonic
        # Each speaker's latest request, as long as their speech is unfinished.
        self._unfinished: dict[int | None, object] = {}

    async def recognise(
        self,
        pcm: Pcm,
        *,
        language: LanguageHint = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
        careful: bool = False,
    ) -> Recognition:
        """See `Recogniser.recognise`."""
        request, asked_at = object(), self._monotonic()
        if interim:
            self._unfinished[speaker_id] = request
        try:
            heard = await self._recogniser.recognise(
                pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim, careful=careful
            )
            # What ended meanwhile needs no evidence, and its answer waits for the text.
            has_ended = self._unfinished.get(speaker_id) is not request
            if has_ended or heard.sentence_end_probability is None or self._is_old(asked_at):
                return heard
            return replace(heard, text_end=await self._reader.read(heard.text, heard.language))
        finally:
            if self._unfinished.get(speaker_id) is request:
                del self._unfinished[speaker_id]

    def confirm(self, speaker_id: int) -> None:
        self._unfinished.pop(speaker_id, None)
        self._recogniser.confirm(speaker_id)

    def _is_old(self, asked_at: float) -> bool:
        """Return whether unfinished speech must have ended by now. A recogniser elsewhere does not learn that
        (`RemoteRecogniser.confirm`).
        """
        return self._monotonic() - asked_at >= CERTAIN_AFTER_S


# The language that the model knows, as a code.
LANGUAGE: Final = "en"
# The words that are read, from the end; with more of them the answer is later and no better. A word that is longer than
# people's is cut off.
WORDS_READ = 20
_LONGEST_WORD = 30
# So few words are so little to compute that two threads wait for each other: 33 ms a text instead of 23.
THREADS = 1
# Whoever has finished waits for the answer.
ANSWER_TIMEOUT_S = 0.25
# A recogniser on a GPU returns up to eight texts at once.
MOST_WAITING = 8
# Marks at the end of the text are the recogniser's guess, so they are not read.
_LAST_MARKS = re.compile(r"[\s.?!,;:…\"”’'»)\]–—-]+$")
# Tokens of marks that end a sentence, also with quotation marks or line breaks behind them; and those that go on.
_ENDS = re.compile(r"[.?!]+[\"”')\]]*Ċ*|Ċ+")
_GOES_ON = re.compile(r"[,;:]|-|Ġ?[–—-]")
_TEXT_BEGINS = "<|endoftext|>"


class SentenceReader:
    """The model, converted for CTranslate2. Blocks while it computes; used from one thread. Raises `TurnModelError`.

    `folder`: with `model.bin`, its vocabulary and `tokenizer.json` (`bot.models`).
    """

    def __init__(self, folder: Path) -> None:
        # Imported here because only those who have the model need the libraries' second.
        import ctranslate2
        from tokenizers import Tokenizer

        try:
            self._model: Any = ctranslate2.Generator(str(folder), compute_type="int8", intra_threads=THREADS)
            self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
            vocabulary: dict[str, int] = self._tokenizer.get_vocab()
            self._first = vocabulary[_TEXT_BEGINS]
        # CTranslate2 raises RuntimeError and ValueError, tokenizers plain Exception.
        except Exception as exc:
            raise TurnModelError(
                f"The model that reads whether a sentence is finished ({folder}) could not be read; "
                "`roomtone models pull turn-text --again` brings it."
            ) from exc
        self._ends = _numbers_of(_ENDS, vocabulary)
        self._goes_on = _numbers_of(_GOES_ON, vocabulary)

    def read(self, text: str) -> TextEnd | None:
        """Return what may follow the last words of `text`; None if it has no words."""
        words = [word[:_LONGEST_WORD] for word in _LAST_MARKS.sub("", text).split()[-WORDS_READ:]]
        if not words:
            return None
        # A recogniser at an endpoint may send half of a character.
        sound = " ".join(words).encode(errors="replace").decode()
        try:
            tokens = [self._first, *self._tokenizer.encode(sound).ids]
            found = self._model.forward_batch([tokens], return_log_probs=True)
        except Exception as exc:
            raise TurnModelError(f"The model that reads whether a sentence is finished failed: {exc}") from exc
        shares = np.exp(np.array(found)[0, -1].astype(np.float64))
        return TextEnd(float(shares[self._ends].sum()), float(shares[self._goes_on].sum()))


def _numbers_of(marks: re.Pattern[str], vocabulary: dict[str, int]) -> Any:
    return np.array(sorted(number for token, number in vocabulary.items() if marks.fullmatch(token)), dtype=np.int64)


class QueuedSentenceReader(QuickModel[SentenceReader, str, "TextEnd | None"]):
    """The model in its own thread, for any number of tasks. See `QuickModel`."""

    def __init__(self, load: Callable[[], SentenceReader], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(
            load,
            lambda model, text: model.read(text),
            what="model that reads whether a sentence is finished",
            thread_name="turn-text-model",
            answer_timeout_s=ANSWER_TIMEOUT_S,
            most_waiting=MOST_WAITING,
            monotonic=monotonic,
        )

    async def read(self, text: str, language: str) -> TextEnd | None:
        """Return what may follow `text`. `language`: its code.

        None: the model does not know the language, there are no words, or no answer comes in time. Never raises.
        """
        return await self.ask(text) if language == LANGUAGE else None
