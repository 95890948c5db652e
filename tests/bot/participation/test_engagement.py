"""Which people are engaged (in a conversation with the bot), and what ends that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.decider import Decision, Reason
from bot.participation.engagement import TAKES_OVER_S, Engagement
from bot.words import Words

ADA, BO, CY = 1, 2, 3
WINDOW_S = 35.0
FOR_IT = Decision(True, Reason.WAKE_NAME)
AMONG_THEM = Decision(False, Reason.NOT_ADDRESSED)
TO_OTHER = Decision(False, Reason.ADDRESSED_TO_OTHER)
NODDED = Decision(False, Reason.WANTS_NO_ANSWER)
KEPT_SILENT = Decision(False, Reason.SILENCED)


def talking(text: str = "It is green.") -> Engagement:
    """Return the engagement after the bot has answered Ada at 100 s."""
    engagement = Engagement(Words(), window_s=WINDOW_S)
    engagement.on_reply_begun(ADA)
    engagement.on_reply_ended(ADA, text, now=100.0)
    return engagement


@pytest.fixture
def engagement() -> Engagement:
    """The engagement after the bot has answered Ada at 100 s."""
    return talking()


def test_who_was_answered_may_go_on_for_a_while(engagement: Engagement) -> None:
    """After an answer, the person who asked stays engaged for `WINDOW_S` seconds; other people are not engaged."""
    assert engagement.is_engaged(ADA, at=100.0 + WINDOW_S)
    assert not engagement.is_engaged(ADA, at=100.1 + WINDOW_S)
    assert not engagement.is_engaged(BO, at=101.0)


def test_while_the_answer_is_in_the_works_they_have_its_ear() -> None:
    """A person stays engaged while their answer is made, however long that takes. An answer without sound does not
    count.
    """
    engagement = Engagement(Words(), window_s=WINDOW_S)
    engagement.on_reply_begun(ADA)
    assert engagement.is_engaged(ADA, at=500.0)
    engagement.on_reply_ended(ADA, "", now=501.0)
    assert not engagement.is_engaged(ADA, at=501.0)


def test_a_question_of_the_bots_waits_for_an_answer() -> None:
    """A person whom the bot has asked something counts as asked until the window ends."""
    assert talking("Shall I post it?").was_asked(ADA, at=100.0 + WINDOW_S)
    assert not talking("Shall I post it?").was_asked(ADA, at=100.1 + WINDOW_S)
    assert not talking().was_asked(ADA, at=120.0)
    assert not talking("Shall I post it?").was_asked(BO, at=120.0)


def test_without_a_model_the_next_sentence_alone_goes_on(engagement: Engagement) -> None:
    """Whoever has said something since the answer calls again. A nod is no sentence."""
    engagement.on_utterance(ADA, NODDED, started_at=100.2, ended_at=100.4)
    assert engagement.is_engaged(ADA, at=101.0, at_once=True)
    engagement.on_utterance(ADA, FOR_IT, started_at=101.0, ended_at=102.0)
    assert not engagement.is_engaged(ADA, at=103.0, at_once=True)
    assert engagement.is_engaged(ADA, at=103.0)


@pytest.mark.parametrize("question", ["Which one?", "どれですか？", "أيهما؟"])
def test_it_can_ask_in_any_writing(question: str) -> None:
    """A question mark of any script is recognised."""
    engagement = Engagement(Words(), window_s=35.0)
    engagement.on_reply_ended(1, question, now=0.0)
    assert engagement.was_asked(1, at=1.0)


def test_others_take_over_and_remarks_do_not(engagement: Engagement) -> None:
    """A long utterance of another person that is not for the bot ends the engagement; a short remark does not."""
    engagement.on_utterance(BO, AMONG_THEM, started_at=100.5, ended_at=100.5 + 0.5)
    engagement.on_utterance(BO, FOR_IT, started_at=100.5, ended_at=100.5 + 2.0)
    engagement.on_utterance(BO, KEPT_SILENT, started_at=100.5, ended_at=100.5 + 2.0)
    engagement.on_utterance(ADA, NODDED, started_at=100.5, ended_at=100.5 + 0.5)
    assert engagement.is_engaged(ADA, at=101.0)
    engagement.on_utterance(BO, AMONG_THEM, started_at=100.5, ended_at=100.5 + TAKES_OVER_S)
    assert not engagement.is_engaged(ADA, at=101.0)


def test_who_says_something_to_others_has_ended_it(engagement: Engagement) -> None:
    """Even a short utterance to others ends the engagement of its own speaker, and only of that person."""
    engagement.on_reply_ended(BO, "It is blue.", now=100.0)
    engagement.on_utterance(ADA, AMONG_THEM, started_at=100.5, ended_at=100.5 + 0.5)
    assert not engagement.is_engaged(ADA, at=101.0)
    assert engagement.is_engaged(BO, at=101.0)


@pytest.mark.parametrize(
    ("heard", "engaged"),
    [
        # Ada and Bo have both been answered. Cy puts a line in.
        ("", {ADA, BO}),
        ("C", {ADA, BO}),
        ("c", {ADA, BO}),
        ("CC", set()),
        ("cCc", {ADA, BO}),
        # One of the two turns away, and the other still goes on after that line.
        ("B", {ADA}),
        ("BC", set()),
        ("b", {ADA}),
        # What they say to the bot counts for nobody.
        ("*C", {ADA, BO}),
        ("C*", {ADA, BO}),
    ],
)
def test_where_two_talk_with_it_a_line_of_another_does_not_end_that(
    engagement: Engagement, heard: str, engaged: set[int]
) -> None:
    """The second line of others does. Capital letters take over, small ones are a word, a star is for the bot."""
    engagement.on_reply_ended(BO, "It is blue.", now=103.0)
    speakers = {"C": (CY, AMONG_THEM), "B": (BO, AMONG_THEM), "*": (BO, FOR_IT)}
    for number, line in enumerate(heard):
        user_id, decision = speakers[line.upper()]
        begins = 104.0 + 3 * number
        ends = begins + (0.5 if line.islower() else TAKES_OVER_S)
        engagement.on_utterance(user_id, decision, started_at=begins, ended_at=ends)
    at = 104.0 + 3 * len(heard)
    assert {who for who in (ADA, BO, CY) if engagement.is_engaged(who, at=at)} == engaged
    # Where no model tells whom they mean, nobody goes on after a line of another.
    assert not any(engagement.is_engaged(who, at=at, at_once=True) for who in (ADA, BO)) or "C" not in heard


def test_alone_with_it_a_line_of_another_takes_over_though_somebody_was_answered_before(engagement: Engagement) -> None:
    """Of two people only the one counts whose answer is not long ago."""
    engagement.on_reply_ended(BO, "It is blue.", now=101.0 + WINDOW_S)
    begins = 103.0 + WINDOW_S
    engagement.on_utterance(CY, AMONG_THEM, started_at=begins, ended_at=begins + TAKES_OVER_S)
    assert not engagement.is_engaged(BO, at=begins + 2.0)


@pytest.mark.parametrize("decision", [AMONG_THEM, TO_OTHER])
def test_who_was_answered_when_others_spoke_over_it_may_ask_for_the_rest(decision: Decision) -> None:
    """What is said over the answer does not end the engagement, only what is said after it."""
    engagement = talking("It is (interrupted)")
    engagement.on_utterance(BO, decision, started_at=99.0, ended_at=99.0 + 2.0)
    assert engagement.is_engaged(ADA, at=103.0)
    assert not engagement.is_engaged(BO, at=103.0)
    engagement.on_utterance(BO, decision, started_at=104.0, ended_at=104.0 + 2.0)
    assert not engagement.is_engaged(ADA, at=106.0)


def test_an_answer_in_the_works_belongs_to_who_asked() -> None:
    """Neither the end of an earlier answer to somebody else nor somebody else's leaving ends it."""
    engagement = Engagement(Words(), window_s=WINDOW_S)
    engagement.on_reply_begun(ADA)
    engagement.on_reply_ended(BO, "It is blue.", now=100.0)
    engagement.remove(BO)
    assert engagement.is_engaged(ADA, at=500.0)
    assert not engagement.is_engaged(BO, at=101.0)


def test_told_to_be_silent_it_talks_with_nobody(engagement: Engagement) -> None:
    """`clear` ends the engagement of everybody."""
    engagement.on_reply_begun(BO)
    engagement.clear()
    assert not engagement.is_engaged(ADA, at=101.0)
    assert not engagement.is_engaged(BO, at=101.0)


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.sampled_from(Reason))), st.floats(0, 1e6))
def test_nobody_is_engaged_whom_the_bot_never_answered(heard: list[tuple[int, bool, Reason]], at: float) -> None:
    """Without an answer of the bot, no utterance engages anybody."""
    engagement = Engagement(Words(), window_s=WINDOW_S)
    for user_id, answer, reason in heard:
        engagement.on_utterance(user_id, Decision(answer, reason), started_at=at, ended_at=at + 0.5)
    assert not any(engagement.is_engaged(user_id, at=at) for user_id in range(5))
