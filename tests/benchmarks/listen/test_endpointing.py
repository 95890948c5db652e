"""What the room's policy does to observed pauses, and what each source can do at best."""

from __future__ import annotations

import pytest

from benchmarks.listen.endpointing import outcome, windows_needed
from benchmarks.listen.observed_pauses import Asked, ObservedPause
from voice.listening.end_policy import END_POLICY, PauseEvidence
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count

SURE, UNSURE = PauseEvidence(0.999), PauseEvidence(0.001)
FIRST, LATER = 4, 16


def paused(windows: int | None, *told: PauseEvidence, voice_end_s: float = 0.0) -> ObservedPause:
    """Return a pause before which the models said `told`: at its beginning, and after half a second."""
    asked = tuple(Asked(at, each) for at, each in zip((FIRST, LATER), told, strict=False))
    return ObservedPause(windows, asked, voice_end_s)


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
        ((SURE,), SHORTEST),
        ((UNSURE,), LONGEST),
        # The room asks once in a pause.
        ((UNSURE, SURE), LONGEST),
        ((), window_count(ENDPOINTING.end_silence_s)),
    ],
)
def test_the_silence_needed_follows_what_is_known_by_then(told: tuple[PauseEvidence, ...], needed: int) -> None:
    """Without the end-of-turn model the fixed silence counts."""
    assert windows_needed(paused(None, *told)) == needed
