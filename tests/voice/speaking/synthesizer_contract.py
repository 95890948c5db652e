"""Contract tests for every `Synthesizer`, real or remote. A test class inherits them and provides a `synthesizer`
fixture.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from voice.speaking.port import synthesize_all

if TYPE_CHECKING:
    from voice.speaking.port import Speech, Synthesizer

SENTENCE = "The blue canoe leaves on Friday."


def length_s(speech: Speech) -> float:
    """Return the length of the speech in seconds."""
    return len(speech.pcm) / speech.rate_hz


class SynthesizerContract:
    """Subclasses provide a `synthesizer` fixture: an open synthesizer."""

    @pytest.mark.asyncio
    async def test_a_sentence_becomes_sound(self, synthesizer: Synthesizer) -> None:
        """A sentence gives mono int16 sound of plausible length and level, with the sentence as its text."""
        speech = await synthesize_all(synthesizer, SENTENCE)
        assert speech.text == SENTENCE
        assert speech.pcm.dtype == np.int16
        assert speech.pcm.ndim == 1
        assert 8_000 <= speech.rate_hz <= 48_000
        assert 1.0 < length_s(speech) < 4.0
        assert int(np.abs(speech.pcm.astype(int)).max()) > 3000

    @pytest.mark.asyncio
    async def test_many_callers_get_each_their_own(self, synthesizer: Synthesizer) -> None:
        """Several simultaneous callers get their own speech, and longer texts sound longer."""
        texts = ["Yes.", "Yes, I think so.", f"{SENTENCE} {SENTENCE}"]
        spoken = await asyncio.gather(*(synthesize_all(synthesizer, text) for text in texts))
        assert [speech.text for speech in spoken] == texts
        lengths = [length_s(speech) for speech in spoken]
        assert lengths == sorted(lengths)
        assert lengths[0] < lengths[2] / 2

    @pytest.mark.asyncio
    async def test_any_text_is_answered(self, synthesizer: Synthesizer) -> None:
        """Foreign letters, a text without letters and a very long word are all answered without an error."""
        for text in ("…", "Straße, naïve, 日本", "a" * 300):
            assert (await synthesize_all(synthesizer, text)).text == text
