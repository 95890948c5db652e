"""Labelled facts and small talk in a text."""

from __future__ import annotations

from benchmarks.memory.conversation import ConversationLine, LabelledFact, RecordedConversation
from benchmarks.memory.label_judge import LabelJudge

SAID = (
    ("Ada", "The raid is on Thursday, bring potions."),
    ("Bob", "My chair squeaks like a mouse."),
    ("Ada", "No wait, the raid is on Friday."),
    ("Bob", "I'm allergic to peanuts."),
)
CONVERSATION = RecordedConversation(
    "evening",
    "written",
    tuple(ConversationLine(speaker, text, float(number)) for number, (speaker, text) in enumerate(SAID)),
    labels=(
        LabelledFact(0, "The raid is on Thursday", replaced_by="The raid is on Friday"),
        LabelledFact(2, "The raid is on Friday"),
        LabelledFact(3, "Bob is allergic to peanuts"),
    ),
    chatter=frozenset({1}),
)
JUDGE = LabelJudge(CONVERSATION)


def test_facts_are_due_as_far_as_they_hold() -> None:
    """A replaced fact is due until its replacement is folded too."""
    assert [fact.turn for fact in JUDGE.due(2, 4)] == [0]
    assert [fact.turn for fact in JUDGE.due(4, 4)] == [2, 3]


def test_old_facts_and_wrong_people_are_counted() -> None:
    """A stale fact is one of which only the old value is there."""
    tally = JUDGE.judged("The raid is on Thursday. Ada is allergic to peanuts.", 4, 4)
    assert (tally.facts, tally.kept, tally.stale, tally.attributed_wrong) == (2, 1, 1, 1)
    tally = JUDGE.judged("Their raid is on Friday. Bob has a peanut allergy.", 4, 4)
    assert (tally.kept, tally.stale, tally.attributed_right) == (2, 0, 2)


def test_small_talk_is_measured_in_characters() -> None:
    """Sentences of chatter count, in the speaker's words or others; those that state a fact don't."""
    squeak = "Bob: My chair squeaks like a mouse."
    assert JUDGE.chatter_chars(f"{squeak} The raid is on Friday.", 4) == len(squeak)
    assert JUDGE.chatter_chars("Bob's chair squeaks.", 4) == len("Bob's chair squeaks.")
    assert JUDGE.chatter_chars("Bob is allergic to peanuts.", 4) == 0
