"""Transcripts become utterances with times."""

from __future__ import annotations

import pytest

from benchmarks.listen.timed_talk import PAUSE_S, UtteranceCut, make_talk
from benchmarks.memory.conversations.conversation import ConversationLine, RecordedConversation
from rehearsal.roomtone.written.channel import WORDS_A_SECOND

CONVERSATION = RecordedConversation(
    "evening",
    "CRD3",
    (
        ConversationLine("Matt", "Welcome to the table. (cheering) Shall we begin?", 0.0),
        ConversationLine("Sam and Laura", "Yes , it 's late !", 6.0),
        ConversationLine("Sam", "[laughter]", 12.0),
        ConversationLine("Laura", "…", 18.0),
    ),
)


def test_an_utterance_is_as_long_as_its_words_and_follows_after_a_pause() -> None:
    """Times come from the words; the transcript's own times, which are invented for CRD3, are not used."""
    first, second = make_talk(CONVERSATION, UtteranceCut.TURNS).utterances
    assert first.started_s == 0.0
    assert first.ended_s == pytest.approx(7 / WORDS_A_SECOND)
    assert second.started_s == pytest.approx(first.ended_s + PAUSE_S)
    assert second.ended_s == pytest.approx(second.started_s + 3 / WORDS_A_SECOND)


@pytest.mark.parametrize(
    ("cut", "texts"),
    [
        (UtteranceCut.TURNS, ["Welcome to the table. Shall we begin?", "Yes, it's late!"]),
        (UtteranceCut.SENTENCES, ["Welcome to the table.", "Shall we begin?", "Yes, it's late!"]),
    ],
)
def test_a_talk_has_what_people_say(cut: UtteranceCut, texts: list[str]) -> None:
    """Remarks in brackets, lines without a word and the spaces of a tokeniser are not in it."""
    assert [each.text for each in make_talk(CONVERSATION, cut).utterances] == texts


def test_people_who_speak_together_are_each_in_the_channel() -> None:
    """CRD3 joins their names, and nobody is called 'Sam and Laura'. Elsewhere a name may well contain 'and'."""
    talk = make_talk(CONVERSATION, UtteranceCut.TURNS)
    assert talk.people == ("Matt", "Sam", "Laura")
    assert talk.utterances[1].speakers == ("Sam", "Laura")
    other = RecordedConversation("m", "QMSum", (ConversationLine("Minister of Trade and Industry", "I agree.", 0.0),))
    assert make_talk(other, UtteranceCut.TURNS).people == ("Minister of Trade and Industry",)
