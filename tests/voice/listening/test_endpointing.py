"""The endpointing state machine turns VAD windows into utterances, after as much silence as its policy wants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.asr.port import TextEnd
from voice.listening.end_policy import END_POLICY, EndPolicy, PauseEvidence
from voice.listening.endpointing import (
    ENDPOINTING,
    UNREAD_ENDPOINTING,
    AudioWindow,
    Endpointer,
    EndpointingEvent,
    EndpointingParameters,
    SpeechClosed,
    SpeechDismissed,
    SpeechOpened,
    SpeechPaused,
    SpeechResumed,
    window_count,
)

SETTINGS = EndpointingParameters()
VOICED = AudioWindow(0.9, 0.1)
SILENT = AudioWindow(0.05, 0.0)
END = window_count(SETTINGS.end_silence_s)
PRE_ROLL = window_count(SETTINGS.pre_roll_s)
TAIL = window_count(SETTINGS.tail_s)


PAUSE = window_count(SETTINGS.pause_s)
FINISHED = window_count(SETTINGS.policy.shortest_s)
UNFINISHED = window_count(SETTINGS.policy.longest_s)
SURE, UNSURE = PauseEvidence(0.99, 0.99), PauseEvidence(0.1, 0.5)


def _feed_all(endpointing: Endpointer, *windows: AudioWindow) -> list[EndpointingEvent]:
    return [effect for window in windows for effect in endpointing.handle(window)]


def _feed(endpointing: Endpointer, *windows: AudioWindow) -> list[EndpointingEvent]:
    """Feed windows and return the events without those about pauses."""
    return _lasting(_feed_all(endpointing, *windows))


def _lasting(effects: list[EndpointingEvent]) -> list[EndpointingEvent]:
    return [effect for effect in effects if not isinstance(effect, (SpeechPaused, SpeechResumed))]


def test_an_utterance_has_pre_roll_and_tail() -> None:
    """An utterance begins 300 ms before the first voiced window and ends 128 ms after the last one."""
    endpointing = Endpointer(SETTINGS)
    effects = _feed(endpointing, *[SILENT] * 50, *[VOICED] * 40, *[SILENT] * END)
    assert effects == [SpeechOpened(50), SpeechClosed(50 - PRE_ROLL, 90 + TAIL, 50, 90, cut=False)]


def test_a_click_is_dismissed() -> None:
    """Four voiced windows are no speech, and their sound can still be part of the next utterance's pre-roll."""
    endpointing = Endpointer(SETTINGS)
    dip = 7
    effects = _feed(endpointing, *[VOICED] * 4, *[SILENT] * dip, *[VOICED] * 10, *[SILENT] * END)
    assert effects[0] == SpeechDismissed(0, 4)
    assert effects[2] == SpeechClosed(max(0, 4 + dip - PRE_ROLL), 4 + dip + 10 + TAIL, 4 + dip, 4 + dip + 10, cut=False)


def test_unbroken_speech_is_cut_at_its_quietest_point() -> None:
    """After 30 s, speech is cut at the quietest point of the last ten seconds, and the rest is the next utterance."""
    endpointing = Endpointer(SETTINGS)
    loud = [AudioWindow(0.9, 0.2)] * 2000
    loud[800] = loud[801] = loud[802] = AudioWindow(0.9, 0.01)
    loud[300] = loud[301] = loud[302] = AudioWindow(0.9, 0.001)
    effects = _feed(endpointing, *loud[:1000])
    assert effects == [SpeechOpened(0), SpeechClosed(0, 801, 0, 801, cut=True), SpeechOpened(801)]
    assert endpointing.is_speaking
    rest = _feed(endpointing, *[SILENT] * END)
    assert rest == [SpeechClosed(801, 1000 + TAIL, 801, 1000, cut=False)]


def test_an_utterance_that_ends_at_the_limit_is_not_called_cut() -> None:
    """If the silence at the end of the speech reaches the 30 s limit, the utterance is not marked as cut and no other
    follows.
    """
    endpointing = Endpointer(SETTINGS)
    longest = int(SETTINGS.max_utterance_s * 16_000 / 512)
    effects = _feed(endpointing, *[VOICED] * (longest - 10), *[SILENT] * 40)
    closed = [effect for effect in effects if isinstance(effect, SpeechClosed)]
    assert len(closed) == 1
    assert not closed[0].cut
    assert closed[0].last == longest - 10
    assert (endpointing.is_speaking, endpointing.voiced_windows) == (False, 0)


def test_who_sounds_finished_has_finished_sooner() -> None:
    """Evidence of an end ends the utterance after the shortest silence, evidence against one after the longest, and
    no answer after 0.7 s.
    """
    for evidence, silence in ((SURE, FINISHED), (UNSURE, UNFINISHED), (None, END)):
        endpointing = Endpointer(SETTINGS, judged=True)
        _feed(endpointing, *[VOICED] * 20, *[SILENT] * PAUSE)
        assert endpointing.answer(20, evidence) == []
        assert _feed(endpointing, *[SILENT] * (silence - PAUSE - 1)) == []
        assert _feed(endpointing, SILENT) == [SpeechClosed(0, 20 + TAIL, 0, 20, cut=False)]


def test_where_the_answer_decides_it_is_waited_for() -> None:
    """After the shortest silence the endpointer waits for the answer, which then ends the utterance or does not."""
    finished, unfinished = Endpointer(SETTINGS, judged=True), Endpointer(SETTINGS, judged=True)
    for endpointing in (finished, unfinished):
        _feed(endpointing, *[VOICED] * 20, *[SILENT] * (FINISHED - 1))
        assert not endpointing.awaits_answer
        _feed(endpointing, SILENT)
        assert endpointing.awaits_answer
    assert finished.answer(20, SURE) == [SpeechClosed(0, 20 + TAIL, 0, 20, cut=False)]
    assert unfinished.answer(20, UNSURE) == []
    assert not unfinished.awaits_answer
    assert _feed(unfinished, VOICED) == []
    assert unfinished.is_speaking


windows = st.lists(
    st.tuples(st.sampled_from([VOICED, SILENT, AudioWindow(0.4, 0.02), AudioWindow(0.6, 0.3)]), st.integers(1, 60)),
    max_size=60,
).map(lambda runs: [window for window, count in runs for _ in range(count)])


@given(windows)
def test_utterances_are_ordered_disjoint_and_bounded(line: list[AudioWindow]) -> None:
    """For any input, utterances do not overlap, do not exceed the limit, and contain the speech that they name."""
    settings = EndpointingParameters(max_utterance_s=5)
    endpointing = Endpointer(settings)
    free_from = 0
    for count, window in enumerate(line, start=1):
        for effect in endpointing.handle(window):
            if isinstance(effect, SpeechClosed):
                assert free_from <= effect.start <= effect.first < effect.last <= effect.end <= count
                assert (effect.end - effect.start) * 0.032 <= settings.max_utterance_s
                free_from = effect.end
        assert endpointing.oldest_needed >= free_from
        assert (count - endpointing.oldest_needed) * 0.032 <= settings.max_utterance_s


@given(windows)
def test_speech_long_enough_is_never_lost(line: list[AudioWindow]) -> None:
    """Every window over the upper threshold is part of an utterance or was dismissed as too short."""
    endpointing = Endpointer(SETTINGS)
    effects = _feed(endpointing, *line, *[SILENT] * END)
    covered: set[int] = set()
    for effect in effects:
        match effect:
            case SpeechClosed(start=start, end=end):
                covered.update(range(start, end))
            case SpeechDismissed(first=first, last=last):
                covered.update(range(first, last))
            case SpeechOpened() | SpeechPaused() | SpeechResumed():
                pass
    loud = {index for index, window in enumerate(line) if window.probability >= SETTINGS.speech_on}
    assert loud <= covered


evidence = st.sampled_from([None, SURE, UNSURE, PauseEvidence(0.9), PauseEvidence(0.2, 0.99), PauseEvidence(0.97, 0.7)])


@given(windows, st.lists(evidence, min_size=8, max_size=8), st.data())
def test_when_an_answer_comes_changes_nothing(
    line: list[AudioWindow], answers: list[PauseEvidence | None], data: st.DataObject
) -> None:
    """Answers at once, in two steps, and at the last moment give the same utterances."""
    settings = EndpointingParameters(max_utterance_s=5)
    line = [*line, *[SILENT] * UNFINISHED]
    prompt, late = Endpointer(settings, judged=True), Endpointer(settings, judged=True)
    expected: list[EndpointingEvent] = []
    actual: list[EndpointingEvent] = []
    asked = 0
    for window in line:
        effects = prompt.handle(window)
        expected += effects
        for effect in effects:
            if isinstance(effect, SpeechPaused):
                expected += prompt.answer(effect.last, answers[asked % 8])
                asked += 1
    open_question: SpeechPaused | None = None
    asked = 0
    for window in line:
        if open_question is not None and (late.awaits_answer or data.draw(st.booleans())):
            actual += late.answer(open_question.last, answers[(asked - 1) % 8])
            open_question = None
        for effect in late.handle(window):
            actual.append(effect)
            if isinstance(effect, SpeechPaused):
                open_question, asked = effect, asked + 1
                known = answers[(asked - 1) % 8]
                if known is not None and data.draw(st.booleans()):
                    assert late.answer(effect.last, PauseEvidence(known.finished), complete=False) == []
    if open_question is not None:
        actual += late.answer(open_question.last, answers[(asked - 1) % 8])
    assert _lasting(actual) == _lasting(expected)


probabilities = st.floats(0.0, 1.0)
text_ends = st.builds(TextEnd, probabilities, probabilities)
pauses = st.builds(PauseEvidence, probabilities, st.none() | probabilities, st.none() | text_ends)
HEARING_ONLY = replace(END_POLICY, reading=None)
policies = st.sampled_from((END_POLICY, HEARING_ONLY))


@given(policies, pauses)
def test_the_silence_is_within_its_bounds(policy: EndPolicy, known: PauseEvidence) -> None:
    """Whatever is known, speech ends after at least the shortest and at most the longest silence."""
    assert policy.shortest_s <= policy.silence_needed_s(known) <= policy.longest_s


@given(policies, pauses, probabilities, probabilities)
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
