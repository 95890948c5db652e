"""After how much silence the bot may answer: sooner for surer evidence, and never outside its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.listening.end_policy import (
    LONG_SILENCE_S,
    REMEMBERED_UTTERANCES,
    SHORTEST_GATE_S,
    SHORTEST_PAUSE_S,
    OwnPauses,
    PauseEvidence,
    gate_s,
)

probabilities = st.floats(0.0, 1.0)
lengths = st.floats(0.0, 30.0)
evidence = st.builds(
    PauseEvidence,
    finished=st.none() | probabilities,
    speech_s=st.none() | lengths,
    longest_pause_s=st.floats(0.0, LONG_SILENCE_S),
)
# A request of two and a half seconds.
ASKED = PauseEvidence(0.97, speech_s=2.5)


@given(evidence)
def test_the_gate_is_within_its_bounds(known: PauseEvidence) -> None:
    """Whatever is known or unknown: speech that nobody answers would end by then."""
    assert SHORTEST_GATE_S <= gate_s(known) <= LONG_SILENCE_S


@given(evidence, lengths, lengths)
def test_surer_evidence_never_waits_longer(known: PauseEvidence, one: float, other: float) -> None:
    """Who sounds finished, has said much, and pauses briefly is answered sooner."""
    less, more = sorted((one, other))
    assert gate_s(replace(known, finished=more / 30)) <= gate_s(replace(known, finished=less / 30))
    assert gate_s(replace(known, speech_s=more)) <= gate_s(replace(known, speech_s=less))
    assert gate_s(replace(known, longest_pause_s=less)) <= gate_s(replace(known, longest_pause_s=more))


@pytest.mark.parametrize(
    ("known", "at_least_s", "at_most_s"),
    [
        (ASKED, SHORTEST_GATE_S, SHORTEST_GATE_S),
        # Nothing is known, as without the model in somebody's first words.
        (PauseEvidence(), SHORTEST_GATE_S, 0.8),
        # Half a sentence, a single word, and somebody who makes up what they say.
        (replace(ASKED, finished=0.03), 0.7, LONG_SILENCE_S),
        (replace(ASKED, speech_s=0.3), 0.6, LONG_SILENCE_S),
        (replace(ASKED, longest_pause_s=0.8), 0.4, LONG_SILENCE_S),
    ],
)
def test_a_request_is_answered_soon_and_the_rest_is_waited_for(
    known: PauseEvidence, at_least_s: float, at_most_s: float
) -> None:
    """Each of the three kinds of evidence can open the gate late."""
    assert at_least_s <= gate_s(known) <= at_most_s


def test_pauses_are_remembered_for_some_utterances() -> None:
    """The longest one counts, in what is said now and in the utterances before it, and articulation does not."""
    own = OwnPauses()
    own.went_on(SHORTEST_PAUSE_S / 2)
    assert own.longest_s == 0.0
    own.went_on(0.5)
    own.went_on(0.3)
    for _ in range(REMEMBERED_UTTERANCES):
        assert own.longest_s == 0.5
        own.ended()
    assert own.longest_s == 0.5
    own.ended()
    assert own.longest_s == 0.0
