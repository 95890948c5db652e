"""What the room's policy does to observed pauses, and what each source can do at best."""

from __future__ import annotations

import pytest

from benchmarks.listen.endpointing import outcome, windows_needed
from benchmarks.listen.observed_pauses import Asked, ObservedPause
from benchmarks.listen.operating_points import operating_points
from voice.listening.end_policy import END_POLICY, PauseEvidence
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count

SURE, UNSURE = PauseEvidence(0.999), PauseEvidence(0.001)


def paused(windows: int | None, told: PauseEvidence | None, *, voice_end_s: float = 0.0) -> ObservedPause:
    """Return a pause at whose beginning the models said `told`."""
    return ObservedPause(windows, None if told is None else Asked(4, told), voice_end_s)


def test_a_pause_is_cut_that_is_as_long_as_the_silence_needed() -> None:
    """One window less is kept; an end is known after the silence and what the voice left of it."""
    needed = windows_needed(paused(None, SURE))
    done = outcome([paused(needed, SURE), paused(needed - 1, SURE), paused(None, SURE, voice_end_s=0.1)])
    assert (done.inside, done.cut) == (2, 1)
    assert list(done.known_after_s) == pytest.approx([0.1 + needed * WINDOW_S], abs=0.02)
    assert outcome([]).as_json()["cut_share"] is None


SHORTEST, LONGEST = window_count(END_POLICY.shortest_s), window_count(END_POLICY.longest_s)


@pytest.mark.parametrize(
    ("told", "needed"),
    [
        (SURE, SHORTEST),
        (UNSURE, LONGEST),
        (None, window_count(ENDPOINTING.end_silence_s)),
    ],
)
def test_the_silence_needed_follows_what_is_known_by_then(told: PauseEvidence | None, needed: int) -> None:
    """Without the end-of-turn model the fixed silence counts."""
    assert windows_needed(paused(None, told)) == needed


def test_operating_points_are_those_of_the_best_rule() -> None:
    """Silence alone cuts every pause that is as long; a source that tells ends from pauses cuts none."""
    known = PauseEvidence(0.999, sentence_end=0.9)
    going_on = PauseEvidence(0.001, sentence_end=0.1)
    pauses = [*(paused(None, known) for _ in range(10)), *(paused(12, going_on) for _ in range(10))]
    table = operating_points(pauses)
    assert table["silence"] == {
        "cut_share_at_300_ms": 1.0,
        "cut_share_at_600_ms": 0.0,
        "known_after_ms_at_5_percent_cut": 420,
        "known_after_ms_at_10_percent_cut": 420,
    }
    for source in ("sound", "text", "both"):
        figures = table[source]
        assert isinstance(figures, dict)
        assert figures["cut_share_at_300_ms"] == 0.0
