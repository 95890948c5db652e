"""Scoring reply decisions: the recall of expected answers, and the unwanted answers in a time."""

from __future__ import annotations

import pytest

from benchmarks.listen.decisions import measure_decisions, score_dialogues
from benchmarks.listen.dialogues import Dialogue, DialogueLine, DialogueSet, ReplyExpected

TALK = Dialogue(
    "kitchen",
    ("Ada", "Ben"),
    (),
    (
        DialogueLine("Ada", "Roomtone, what is it?", ReplyExpected.YES, "name", 0, 1),
        DialogueLine("Ada", "And then?", ReplyExpected.YES, "follow_up", 6, 7),
        DialogueLine("Ben", "Pass the salt.", ReplyExpected.NO, "chatter", 8, 9),
        DialogueLine("Ada", "Thanks.", ReplyExpected.MAY, "thanks", 10, 11),
    ),
    300.0,
)


class Answers:
    """A room that answers exactly these texts."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self.in_vain = 0

    def hears(self, line: DialogueLine) -> bool:
        return line.text in self._texts


def test_what_was_owed_and_what_nobody_asked_for_are_counted_apart() -> None:
    """Half of the expected answers is a recall of 0.5. One unwanted answer in five minutes is two in ten. Optional
    answers do not count.
    """
    verdicts = score_dialogues([TALK], lambda talk: Answers("Roomtone, what is it?", "Pass the salt.", "Thanks."))
    assert (verdicts.recall, verdicts.unwanted_in_10_min) == (0.5, 2.0)
    assert verdicts.mistakes == ["missed, follow_up: And then?", "unwanted, chatter: Pass the salt."]


def test_nobody_goes_on_with_a_bot_that_has_not_answered() -> None:
    """A line that follows an unanswered call does not count, because nobody goes on with a silent bot."""
    verdicts = score_dialogues([TALK], lambda talk: Answers("And then?"))
    assert (verdicts.recall, verdicts.owed.total()) == (0.0, 1)


def test_time_alone_with_the_bot_is_no_time_in_which_it_can_be_unwanted() -> None:
    """Time alone with the bot is left out of the rate, because no answer can be unwanted there."""
    alone = Dialogue("alone", ("Kim",), (), (DialogueLine("Kim", "Hello.", ReplyExpected.YES, "alone", 0, 1),), 600.0)
    verdicts = score_dialogues([TALK, alone], lambda talk: Answers("Pass the salt."))
    assert verdicts.unwanted_in_10_min == 2.0


@pytest.mark.slow
def test_the_held_out_part_tells_no_examples() -> None:
    """The figures of the held-out set list no mistakes, because people who tune must not see its lines."""
    figures = measure_decisions()
    assert set(figures) == {part.value for part in DialogueSet}
    tuning, held_out = figures["tuning"], figures["held_out"]
    assert isinstance(tuning, dict)
    assert isinstance(held_out, dict)
    assert "mistakes" in tuning
    assert "mistakes" not in held_out
