"""Several people speak at once: each utterance's delay is counted, and the errors of its text."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.asr import company
from benchmarks.asr.company import SpokenSound, measure_company
from benchmarks.progress import NoProgress
from tests.fakes.recogniser import FakeEngine


@pytest.mark.asyncio
async def test_everybody_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sound is recognised once, whoever speaks it, and none fails. The word errors are those of the texts."""
    monkeypatch.setattr(company, "_GAP_S", 0.0)
    monkeypatch.setattr(company, "_STAGGER_S", 0.0)
    # The engine's text is the value of the samples: one of the five is another than was said.
    said = [SpokenSound(str(number % 5), np.full(160, number, np.int16)) for number in range(1, 6)]
    engine = FakeEngine()
    figures = await measure_company(lambda: engine, said, people=2, language="en", progress=NoProgress())
    assert (figures["utterances"], figures["failed"]) == (5, 0)
    assert sorted(engine.order) == [1, 2, 3, 4, 5]
    assert (figures["word_error_rate"], figures["without_text"]) == (0.2, 0)
    delays = figures["end_certain_to_text_ms"]
    assert isinstance(delays, dict)
    assert delays["count"] == 5
