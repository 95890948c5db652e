"""Labelled facts and small talk in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.memory.conversations.conversation import ConversationLine, LabelledFact, RecordedConversation
from benchmarks.memory.judges.label_judge import LabelJudge
from benchmarks.memory.judges.readings import read_readings, reading_key, write_sheet

if TYPE_CHECKING:
    from pathlib import Path

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


def test_what_a_reader_found_counts_before_words() -> None:
    """A text that was read is judged by its reading, in its own conversation alone."""
    text = "They raid (Ada's idea) at the end of the week; no nuts for him."
    judge = LabelJudge(CONVERSATION, {reading_key("evening", text): frozenset({2, 3})})
    assert judge.judged(text, 4, 4).kept == 2
    assert judge.judged(f"{text} ", 4, 4).kept == 0
    assert judge.unread(text, 4) is None
    assert judge.judged("The raid is on Friday.", 4, 4).kept == 1
    stale = LabelJudge(CONVERSATION, {reading_key("evening", text): frozenset({0})}).judged(text, 4, 4)
    assert (stale.kept, stale.stale) == (0, 1)


def test_unread_texts_come_without_a_word_of_who_wrote_them(tmp_path: Path) -> None:
    """The sheet has each text once, with the facts to look for, in an order that tells nothing."""
    unread = [JUDGE.unread(text, 4) for text in ("The raid is on Friday.", "Bob squeaks.", "The raid is on Friday.")]
    sheet = tmp_path / "sheet.md"
    assert write_sheet(sheet, [each for each in unread if each is not None]) == 2
    told = sheet.read_text("utf-8")
    assert told.count("3: Bob is allergic to peanuts") == 2
    assert reading_key("evening", "Bob squeaks.") in told


def test_a_reading_is_a_list_of_lines(tmp_path: Path) -> None:
    """Readings come from a file; one that is none is refused with its key."""
    path = tmp_path / "readings.toml"
    assert read_readings(path) == {}
    path.write_text('"1f2e" = [2, 3]\n', "utf-8")
    assert read_readings(path) == {"1f2e": {2, 3}}
    path.write_text('"1f2e" = "all"\n', "utf-8")
    with pytest.raises(ValueError, match="1f2e"):
        read_readings(path)
