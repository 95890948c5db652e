"""The rehearsal's ear: what other participants heard of the bot, recognised as the bot recognises people."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from voice.asr.scheduler import QueuedRecognizer
from voice.asr.whisper import WhisperEngine
from voice.audio import LISTEN_RATE_HZ

if TYPE_CHECKING:
    from types import TracebackType

    from voice.asr.port import Recognizer
    from voice.asr.settings import AsrSettings
    from voice.audio import Pcm

# The recogniser hears 30 s at once; a longer answer is cut where it stands.
PIECE_SAMPLES = 28 * LISTEN_RATE_HZ


class Ear:
    """`rehearsal.runner.observation.Recogniser`. Loads the model when it is first needed: after the run, as a rule.

    `names`: whom the listeners know, as people in a room know each other's names. *Ownership*: an async context
    manager that owns the recogniser.
    """

    def __init__(self, settings: AsrSettings, *, names: tuple[str, ...] = ()) -> None:
        self._settings = settings
        self._names = names
        self._stack = AsyncExitStack()
        self._recognizer: Recognizer | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def transcribe(self, pcm: Pcm) -> str:
        """Return the text of mono int16 sound at 16 kHz. Raises `RecogniserError`."""
        if self._recognizer is None:
            self._recognizer = await self._stack.enter_async_context(
                QueuedRecognizer(lambda: WhisperEngine(self._settings), self._settings)
            )
        language = None if self._settings.language == "auto" else self._settings.language
        pieces = [pcm[at : at + PIECE_SAMPLES] for at in range(0, len(pcm), PIECE_SAMPLES)]
        heard = [await self._recognizer.recognize(piece, language=language, glossary=self._names) for piece in pieces]
        return " ".join(recognition.text for recognition in heard if recognition.text)
