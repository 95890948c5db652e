"""After how much silence the bot may answer: sooner for surer evidence, and never outside its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.port import TextEnd
from voice.listening.end_policy import LONG_SILENCE_S, SHORTEST_GATE_S, PauseEvidence, gate_s, usual_pause_s

probabilities = st.floats(0.0, 1.0)
lengths = st.floats(0.0, LONG_SILENCE_S)
evidence = st.builds(
    PauseEvidence,
    finished=st.none() | probabilities,
    sentence_end=st.none() | probabilities,
    text_end=st.none() | st.builds(TextEnd, probabilities, probabilities),
    speech_s=st.none() | st.floats(0.0, 30.0),
    pauses_s=st.lists(lengths, max_size=20).map(tuple),
)
# A complete request of two seconds, and a sentence that breaks off.
ASKED = PauseEvidence(0.98, 0.97, TextEnd(0.3, 0.1), 2.0)
BROKEN_OFF = PauseEvidence(0.02, 0.2, TextEnd(0.001, 0.001), 2.0)


@given(evidence)
def test_the_gate_is_within_its_bounds(known: PauseEvidence) -> None:
    """Whatever is known or unknown: speech that nobody answers would end by then."""
    assert SHORTEST_GATE_S <= gate_s(known) <= LONG_SILENCE_S


@given(evidence, probabilities, probabilities)
def test_surer_evidence_never_waits_longer(known: PauseEvidence, one: float, other: float) -> None:
    """Each probability that speaks for an end opens the gate sooner, and more speech does too."""
    least, most = sorted((one, other))
    surer = (
        (replace(known, finished=least), replace(known, finished=most)),
        (replace(known, sentence_end=least), replace(known, sentence_end=most)),
        (replace(known, text_end=TextEnd(least, 0.0)), replace(known, text_end=TextEnd(most, 0.0))),
        (replace(known, speech_s=10 * least), replace(known, speech_s=10 * most)),
    )
    for less, more in surer:
        assert gate_s(more) <= gate_s(less)


@given(evidence, lengths, lengths)
def test_who_pauses_longer_is_waited_for_longer(known: PauseEvidence, one: float, other: float) -> None:
    """What counts is a person's own pauses."""
    shorter, longer = sorted((one, other))
    assert gate_s(replace(known, pauses_s=(shorter,))) <= gate_s(replace(known, pauses_s=(longer,)))


@pytest.mark.parametrize(("known", "longest_s"), [(ASKED, SHORTEST_GATE_S), (PauseEvidence(), 1.0)])
def test_a_request_is_answered_soon(known: PauseEvidence, longest_s: float) -> None:
    """Where nothing is known, the gate lies between its bounds."""
    assert gate_s(known) <= longest_s


def test_half_a_sentence_waits_for_the_rest() -> None:
    """It is answered no sooner than speech ends that nobody answers, or nearly so."""
    assert gate_s(BROKEN_OFF) > LONG_SILENCE_S - 0.2
    assert gate_s(replace(ASKED, pauses_s=(1.0,) * 5)) > gate_s(ASKED)


def test_the_usual_pause_is_between_a_strangers_and_the_longest() -> None:
    """One long pause among none does not make it long."""
    assert usual_pause_s(()) < usual_pause_s((0.8,)) < usual_pause_s((0.8,) * 5) < 0.8
