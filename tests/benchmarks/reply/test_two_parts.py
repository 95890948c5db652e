"""Questions in two parts: where they are cut, which pause each has, and what is counted of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recordings import SpeechRecording
from benchmarks.reply.two_parts import GAPS_S, Became, TwoParts, cut_at_quiet, figures, said_in_two, two_parts
from rehearsal.people.clip import RATE_HZ

RECORDING = SpeechRecording(Path("some.flac"), "Ada", "some words")


def _tone(seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return (8000 * np.sin(np.arange(round(seconds * RATE_HZ)) / 20)).astype(np.int16)


def test_each_pause_is_as_often_in_both_halves() -> None:
    """Sixty questions have each pause ten times, five of them in the half that judges."""
    table = two_parts([RECORDING] * 60)
    assert Counter((one.gap_s, one.for_tuning) for one in table) == {
        (gap_s, half): 5 for gap_s in GAPS_S for half in (True, False)
    }


def test_a_voice_is_cut_where_it_is_quietest() -> None:
    """The name comes first, and the pause lasts from the end of one part to the beginning of the other."""
    voice = np.concatenate([_tone(1.0), np.zeros(RATE_HZ // 5, np.int16), _tone(0.8)])
    before, after = cut_at_quiet(voice)
    assert len(before) / RATE_HZ == pytest.approx(1.0, abs=0.05)
    assert len(after) / RATE_HZ == pytest.approx(0.8, abs=0.05)
    sound, second_s = said_in_two(_tone(0.5), voice, 0.6)
    assert len(sound) / RATE_HZ == pytest.approx(second_s + len(after) / RATE_HZ, abs=0.001)
    pause = sound[round((second_s - 0.55) * RATE_HZ) : round((second_s - 0.05) * RATE_HZ)]
    assert np.abs(pause).max() < 200


def test_what_became_of_them_is_counted() -> None:
    """Words are counted for each answer that gave way; a gap nobody had is not listed."""
    asked = TwoParts(RECORDING, 0.4, for_tuning=True)
    counted = figures(
        [
            Became(asked, answered=True, whole=True, name_heard=True, gave_way_words=(2,)),
            Became(asked, answered=True, whole=False, name_heard=True, gave_way_words=(1, 0)),
            Became(asked, answered=False, whole=False, name_heard=False, gave_way_words=()),
        ]
    )
    assert counted["words_heard"] == {"count": 3, "p50": 1.0, "mean": 1.0, "p95": 2.0, "max": 2.0}
    assert counted["by_gap"] == {"0.4 s": [1, 3]}
    assert [counted[name] for name in ("answered_whole", "unanswered", "name_not_heard", "begun_too_soon")] == [
        1,
        1,
        1,
        2,
    ]
