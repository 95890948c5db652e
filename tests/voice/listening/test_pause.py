"""What is done in a pause: when the words are acted on, and what ends the speech."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.listening.end_policy import GateLine, PauseEvidence, gate_s
from voice.listening.pause import (
    Began,
    Heard,
    PauseAct,
    PauseEvent,
    PauseState,
    PauseVerdict,
    Previewed,
    Silent,
    TextKnown,
    step,
)

LONG_S = 10.0
BEGAN, HEARD, TEXT = Began(2.0, 0.0), Heard(0.9), TextKnown()
HELD, DUE, UNANSWERED = (Previewed(each) for each in (PauseVerdict.HELD, PauseVerdict.DUE, PauseVerdict.UNANSWERED))
GATE_S = gate_s(PauseEvidence(0.9))


def acts(*events: PauseEvent) -> list[PauseAct]:
    """Return what is done about these events, in order."""
    state, done = PauseState(), []
    for event in events:
        state, act = step(state, event)
        if act is not None:
            done.append(act)
    return done


@pytest.mark.parametrize(
    ("events", "done"),
    [
        # Both models are asked at once, and what would become of the words as soon as there are some.
        ((BEGAN, HEARD, TEXT), [PauseAct.JUDGE, PauseAct.PREVIEW]),
        # A reply that is ready is released at the gate, and its first sound ends the speech.
        ((HEARD, TEXT, HELD, Silent(GATE_S, ready=True)), [PauseAct.PREVIEW, PauseAct.RELEASE]),
        ((HEARD, HELD, Silent(LONG_S, ready=True), Silent(LONG_S, sounding=True)), [PauseAct.RELEASE, PauseAct.END]),
        ((HEARD, HELD, Silent(LONG_S, ready=True), Silent(LONG_S)), [PauseAct.RELEASE]),
        # Not before the gate, not before it is ready, not before the end-of-turn model has answered, not over others.
        ((HEARD, TEXT, HELD, Silent(GATE_S - 0.05, ready=True)), [PauseAct.PREVIEW]),
        ((HEARD, HELD, Silent(LONG_S)), []),
        ((HELD, Silent(LONG_S, ready=True)), []),
        ((Heard(None), HELD, Silent(LONG_S, ready=True)), [PauseAct.RELEASE]),
        ((HEARD, HELD, Silent(LONG_S, others_first=True, ready=True)), []),
        # Where no reply is waited for, the gate alone decides; where nobody acts on the words, nothing does.
        ((HEARD, DUE, Silent(LONG_S)), [PauseAct.RELEASE]),
        ((HEARD, UNANSWERED, Silent(LONG_S, ready=True)), []),
        ((HEARD, Silent(LONG_S, ready=True)), []),
        # The model that has heard it has a line of its own.
        ((Heard(0.9, GateLine(begin_s=9.0)), HELD, Silent(GATE_S, ready=True)), []),
        # A release that found another reply waits for that.
        ((HEARD, HELD, Silent(LONG_S, ready=True), HELD, Silent(LONG_S)), [PauseAct.RELEASE]),
        ((HEARD, HELD, Silent(LONG_S, ready=True), HELD, Silent(LONG_S, ready=True)), [PauseAct.RELEASE] * 2),
    ],
)
def test_what_is_done(events: tuple[PauseEvent, ...], done: list[PauseAct]) -> None:
    """Each row is a pause from its beginning on."""
    assert acts(*events) == done


@pytest.mark.parametrize("order", list(permutations((HEARD, TEXT, HELD))))
def test_the_order_of_the_answers_changes_nothing(order: tuple[PauseEvent, ...]) -> None:
    """The models answer when they can."""
    state = PauseState()
    for event in order:
        state, _ = step(state, event)
    assert step(state, Silent(GATE_S, ready=True))[1] is PauseAct.RELEASE


seconds = st.floats(0.0, 2.0)
events = st.one_of(
    st.builds(Heard, st.none() | st.floats(0.0, 1.0)),
    st.builds(Began, st.floats(0.1, 20.0), st.floats(0.0, 3.0)),
    st.just(TextKnown()),
    st.builds(Previewed, st.sampled_from(PauseVerdict)),
    st.builds(Silent, seconds, st.booleans(), st.booleans(), st.booleans()),
)


@given(st.lists(events, max_size=20))
def test_speech_is_ended_only_by_what_sounds_after_a_release(given_events: list[PauseEvent]) -> None:
    """Whatever comes, nothing is acted on that nobody wants, and nothing ends before it was released."""
    state, released = PauseState(), False
    for event in given_events:
        wanted, before = state.verdict, state.released
        state, act = step(state, event)
        if act is PauseAct.RELEASE:
            assert wanted in {PauseVerdict.HELD, PauseVerdict.DUE}
            assert not before
            assert isinstance(event, Silent)
            assert event.seconds >= gate_s(state.evidence)
            assert not event.others_first
            released = True
        if act is PauseAct.END:
            assert released
            assert before
