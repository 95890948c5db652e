"""A recogniser beside a language model that reads what was recognised, so that one model serves all who ask it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from voice.asr.scheduler import CERTAIN_AFTER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.asr.port import LanguageHint, Recogniser, Recognition
    from voice.asr.text_end import QueuedSentenceReader
    from voice.audio import Pcm


class ReadingRecogniser:
    """Calls `recogniser` (`voice.asr.port.Recogniser`), and lets `reader` read the texts of unfinished speech
    (`Recognition.text_end`). Use it on one event loop.
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
