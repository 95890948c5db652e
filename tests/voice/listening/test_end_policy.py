"""How much silence ends speech, by what is known about the pause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.port import TextEnd
from voice.listening.end_policy import END_POLICY, EndPolicy, PauseEvidence
from voice.listening.endpointing import ENDPOINTING, UNREAD_ENDPOINTING, EndpointingParameters

probabilities = st.floats(0.0, 1.0)
text_ends = st.builds(TextEnd, probabilities, probabilities)
evidence = st.builds(PauseEvidence, probabilities, st.none() | probabilities, st.none() | text_ends)
HEARING_ONLY = replace(END_POLICY, reading=None)
policies = st.sampled_from((END_POLICY, HEARING_ONLY))


@given(policies, evidence)
def test_the_silence_is_within_its_bounds(policy: EndPolicy, known: PauseEvidence) -> None:
    """Whatever is known, speech ends after at least the shortest and at most the longest silence."""
    assert policy.shortest_s <= policy.silence_needed_s(known) <= policy.longest_s


@given(policies, evidence, probabilities, probabilities)
def test_surer_evidence_never_waits_longer(policy: EndPolicy, known: PauseEvidence, one: float, other: float) -> None:
    """Each probability that is known can only shorten the silence as it grows; only that of a comma lengthens it."""
    low, high = sorted((one, other))
    pairs = [(replace(known, finished=low), replace(known, finished=high))]
    if known.sentence_end is not None:
        pairs.append((replace(known, sentence_end=low), replace(known, sentence_end=high)))
    if known.text_end is not None:
        ends, goes_on = replace(known.text_end, ends=low), replace(known.text_end, goes_on=high)
        pairs.append((replace(known, text_end=ends), replace(known, text_end=replace(ends, ends=high))))
        pairs.append((replace(known, text_end=goes_on), replace(known, text_end=replace(goes_on, goes_on=low))))
    for less, more in pairs:
        assert policy.silence_needed_s(more) <= policy.silence_needed_s(less)


@given(policies, st.builds(PauseEvidence, probabilities), probabilities, st.none() | text_ends)
def test_no_text_can_end_speech_sooner_or_later_than_was_thought_possible(
    policy: EndPolicy, known: PauseEvidence, sentence_end: float, text_end: TextEnd | None
) -> None:
    """Before the text is there, its decision is bounded."""
    least, most = policy.silences_with_text_s(known)
    with_text = replace(known, sentence_end=sentence_end, text_end=text_end)
    assert least <= policy.silence_needed_s(with_text) <= most


@given(st.builds(PauseEvidence, probabilities))
def test_fewer_texts_could_decide_where_none_is_read(known: PauseEvidence) -> None:
    """So no text is waited for there that would be waited for only because it might be read."""
    (least, most), (unread_least, unread_most) = (
        each.policy.silences_with_text_s(known) for each in (ENDPOINTING, UNREAD_ENDPOINTING)
    )
    assert least <= unread_least <= unread_most <= most


def test_the_pause_is_announced_before_the_shortest_silence() -> None:
    """Recognition begins in a pause, so the shortest silence must leave it time."""
    parameters = EndpointingParameters()
    assert parameters.pause_s + 0.1 < END_POLICY.shortest_s
    assert parameters.end_silence_s < END_POLICY.longest_s


@pytest.mark.parametrize(
    ("sure", "unsure"),
    [
        # A finished sentence that sounds finished; half a sentence that sounds like half of one.
        (PauseEvidence(0.99, 0.98), PauseEvidence(0.02, 0.5)),
        # The same intonation after a whole and after half a sentence.
        (PauseEvidence(0.95, 0.98), PauseEvidence(0.95, 0.3)),
        # The same text, said as a whole and with a comma.
        (PauseEvidence(0.98, 0.96), PauseEvidence(0.05, 0.96)),
        # The text is unknown.
        (PauseEvidence(0.98), PauseEvidence(0.9)),
        # The words are a whole sentence, or end before a comma, and nothing else tells them apart.
        (PauseEvidence(0.5, 0.95, TextEnd(0.6, 0.1)), PauseEvidence(0.5, 0.95, TextEnd(0.05, 0.4))),
    ],
)
def test_who_is_surer_is_waited_for_less(sure: PauseEvidence, unsure: PauseEvidence) -> None:
    """The silence after the surer end is shorter by a tenth of a second at least."""
    assert END_POLICY.silence_needed_s(sure) + 0.1 < END_POLICY.silence_needed_s(unsure)


@given(st.floats(END_POLICY.surely_finished, 1.0), st.none() | probabilities)
def test_who_sounds_surely_finished_is_waited_for_least_whatever_the_text_says(
    finished: float, sentence_end: float | None
) -> None:
    """The text comes later, so nobody waits for it then."""
    assert END_POLICY.silence_needed_s(PauseEvidence(finished, sentence_end)) == END_POLICY.shortest_s
