"""What both clocks do to observed pauses, what each source can do at best, and which targets a set has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.listen.endpointing import (
    SENDING_S,
    SILENT_AFTER_S,
    SYNTHESIS_S,
    TEXT_S,
    WORDS_A_SECOND,
    answered,
    both_clocks,
    endpointing_targets,
    unanswered,
)
from benchmarks.listen.observed_pauses import ObservedPause
from benchmarks.listen.operating_points import operating_points
from benchmarks.report import Json
from voice.listening.end_policy import LONG_SILENCE_S, PauseEvidence
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count

UNKNOWN = PauseEvidence()
LONG = window_count(LONG_SILENCE_S)
# After so long a text is there, and after so long a sound of its answer is heard.
TEXT_AFTER_S = window_count(ENDPOINTING.pause_s) * WINDOW_S + TEXT_S
HEARD_AFTER_S = TEXT_AFTER_S + SYNTHESIS_S + SENDING_S


def paused(windows: int | None, *, voice_end_s: float = 0.0) -> ObservedPause:
    """Return a pause of which nothing is known."""
    return ObservedPause(windows, UNKNOWN, voice_end_s)


def test_a_pause_is_cut_that_is_as_long_as_the_silence() -> None:
    """One window less is kept; an end is known after the silence and what the voice left of it."""
    done = unanswered([paused(LONG), paused(LONG - 1), paused(None, voice_end_s=0.1)])
    assert (done.inside, done.cut, done.talked_over) == (2, 1, None)
    assert list(done.known_after_s) == pytest.approx([0.1 + LONG * WINDOW_S], abs=0.02)
    assert unanswered([]).as_json()["cut_share"] is None


@pytest.mark.parametrize(
    ("gate_s", "windows", "cut", "talked_over"),
    [
        # The gate is open, but no answer is heard yet.
        (0.2, window_count(0.2), 1, 0),
        (0.2, window_count(HEARD_AFTER_S) + 1, 1, 1),
        (0.8, window_count(HEARD_AFTER_S) + 1, 0, 0),
        (0.8, window_count(0.8), 1, 0),
        (0.8, window_count(0.8 + SENDING_S) + 1, 1, 1),
    ],
)
def test_who_goes_on_is_talked_over_once_the_answer_is_heard(
    gate_s: float, windows: int, cut: int, talked_over: int
) -> None:
    """The answer is heard after the gate and after what text, synthesis and sending take."""
    done = answered([paused(windows)], lambda _: gate_s)
    assert (done.cut, done.talked_over) == (cut, talked_over)


def test_an_answer_that_came_too_soon_is_heard_until_it_gives_way() -> None:
    """Its words are those of the rest of the pause, and of the time in which it falls silent."""
    longer = [
        answered([paused(window_count(HEARD_AFTER_S) + more)], lambda _: 0.2).words_heard or () for more in (1, 33)
    ]
    [[least], [most]] = longer
    assert 0 < least - WORDS_A_SECOND * SILENT_AFTER_S < WORDS_A_SECOND * 2 * WINDOW_S
    assert most - least == pytest.approx(WORDS_A_SECOND * 32 * WINDOW_S)


@given(st.floats(0.1, 1.2))
def test_an_answer_waits_for_its_text(gate_s: float) -> None:
    """No answer begins before the text of what it answers is there."""
    [known_s] = answered([paused(None)], lambda _: gate_s).known_after_s
    assert known_s >= max(gate_s, TEXT_AFTER_S) - 1e-9


@given(st.lists(st.none() | st.integers(7, 100)), st.booleans())
def test_each_clock_is_told(lengths: list[int | None], addressed: bool) -> None:
    """The one that applies comes first, and the other one has an entry of its own."""
    pauses = [paused(length) for length in lengths]
    told = both_clocks(pauses, addressed=addressed)
    other = told["if_not_addressed" if addressed else "if_addressed"]
    assert told["addressed"] is addressed
    assert ("talked_over" in told) is addressed
    assert isinstance(other, dict)
    assert ("talked_over" in other) is not addressed
    assert told["pauses_inside"] == other["pauses_inside"] == sum(length is not None for length in lengths)


REQUESTS: dict[str, Json] = {
    "addressed": True,
    "recordings": 100,
    "passes": 2,
    "pauses_inside": 16,
    "talked_over": 6,
    "talked_over_share": 0.375,
    "end_known_after_ms": {"count": 200, "p50": 380.0, "p95": 651.0},
}
TALK: dict[str, Json] = {
    **REQUESTS,
    "pauses_inside": 200,
    "talked_over_share": 0.16,
    "words_heard": {"count": 32, "p95": 2.1},
}
STORIES: dict[str, Json] = {"addressed": False, "cut": 9, "pauses_inside": 100, "cut_share": 0.09}


@pytest.mark.parametrize(
    ("figures", "met"),
    [
        (STORIES, [False, None, None, None, None, None]),
        (TALK, [None, True, False, None, None, None]),
        (REQUESTS, [None, None, None, True, True, False]),
        ({"addressed": REQUESTS, "not_addressed": STORIES}, [False, None, None, True, True, False]),
    ],
)
def test_each_kind_of_speech_has_its_targets(figures: dict[str, Json], met: list[bool | None]) -> None:
    """Requests are to be answered soon; who tells something is not to be talked over, or cut if nobody answers."""
    assert [target.met for target in endpointing_targets({"endpointing": figures})] == met


def test_operating_points_are_those_of_the_best_rule() -> None:
    """Silence alone cuts every pause that is as long; a source that tells ends from pauses cuts none."""
    known = PauseEvidence(0.999, speech_s=3.0)
    going_on = PauseEvidence(0.001, speech_s=1.0)
    pauses = [
        *(ObservedPause(None, known) for _ in range(10)),
        *(ObservedPause(12, going_on) for _ in range(10)),
    ]
    table = operating_points(pauses)
    assert table["silence"] == {
        "cut_share_at_300_ms": 1.0,
        "cut_share_at_600_ms": 0.0,
        "known_after_ms_at_5_percent_cut": 420,
        "known_after_ms_at_10_percent_cut": 420,
    }
    for source in ("sound", "all"):
        figures = table[source]
        assert isinstance(figures, dict)
        assert figures["cut_share_at_300_ms"] == 0.0
