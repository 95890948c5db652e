"""Contract tests for every `Recogniser`, real or fake. A test class inherits them and provides a
`recogniser` fixture.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.voice.recordings import bicycle, silence
from voice.audio import duration_s

if TYPE_CHECKING:
    from voice.asr.port import Recogniser


class RecogniserContract:
    """Subclasses provide a `recogniser` fixture: an open recogniser that returns some text for `bicycle()`."""

    @pytest.mark.asyncio
    async def test_speech_becomes_text(self, recogniser: Recogniser) -> None:
        """The result has stripped text, the language, the figures that the guards need, and the length of the audio."""
        pcm = bicycle()
        heard = await recogniser.recognise(pcm, language="en")
        assert heard.text
        assert heard.text == heard.text.strip()
        assert heard.language == "en"
        assert heard.mean_logprob <= 0
        assert heard.compression_ratio > 0
        assert 0 <= heard.no_speech_probability <= 1
        assert heard.duration_s == pytest.approx(duration_s(pcm))
        assert heard.compute_s >= 0

    @pytest.mark.asyncio
    async def test_the_sound_is_left_alone(self, recogniser: Recogniser) -> None:
        """The recogniser does not change the caller's audio array."""
        pcm = bicycle()
        before = pcm.copy()
        await recogniser.recognise(pcm, language="en", glossary=("Roomtone",))
        np.testing.assert_array_equal(pcm, before)

    @pytest.mark.asyncio
    async def test_the_language_may_be_left_open(self, recogniser: Recogniser) -> None:
        """Without a given language, the recogniser detects the language and reports its probability."""
        heard = await recogniser.recognise(bicycle())
        assert heard.language == "en"
        assert 0 <= heard.language_probability <= 1

    @pytest.mark.asyncio
    async def test_many_callers_get_each_their_own(self, recogniser: Recogniser) -> None:
        """Each of several simultaneous callers gets the answer for its own audio, which has its own length."""
        sounds = [silence(seconds) for seconds in (0.5, 1.0, 1.5, 2.0)]
        heard = await asyncio.gather(
            *(recogniser.recognise(pcm, language="en", speaker_id=user) for user, pcm in enumerate(sounds))
        )
        assert [one.duration_s for one in heard] == [0.5, 1.0, 1.5, 2.0]

    @pytest.mark.asyncio
    async def test_no_sound_at_all_is_no_mistake(self, recogniser: Recogniser) -> None:
        """Empty audio gives an answer and no error."""
        heard = await recogniser.recognise(silence(0), language="en")
        assert heard.duration_s == 0

    @pytest.mark.asyncio
    async def test_a_cancelled_caller_hurts_nobody(self, recogniser: Recogniser) -> None:
        """After one caller is cancelled, the next recognition is still answered."""
        task = asyncio.create_task(recogniser.recognise(bicycle(), language="en"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await recogniser.recognise(silence(0.5), language="en")).duration_s == 0.5

    @pytest.mark.asyncio
    async def test_confirming_nothing_is_no_mistake(self, recogniser: Recogniser) -> None:
        """Confirming a speaker without a waiting interim request raises no error."""
        recogniser.confirm(1)
        heard = await recogniser.recognise(silence(0.5), language="en", speaker_id=1, interim=True)
        recogniser.confirm(1)
        assert heard.duration_s == 0.5
