"""Judging decisions: recall of what was owed, and unwanted answers by the time that went by."""

from __future__ import annotations

from benchmarks.reply.deciding import judge_talks, measure_deciding
from benchmarks.reply.talk import Line, Owed, Part, Talk

TALK = Talk(
    "kitchen",
    ("Ada", "Ben"),
    (),
    (
        Line("Ada", "Roomtone, what is it?", Owed.YES, "name", 0, 1),
        Line("Ada", "And then?", Owed.YES, "follow_up", 6, 7),
        Line("Ben", "Pass the salt.", Owed.NO, "chatter", 8, 9),
        Line("Ada", "Thanks.", Owed.MAY, "thanks", 10, 11),
    ),
    300.0,
)


class Answers:
    """A room that answers these texts."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def hears(self, line: Line) -> bool:
        return line.text in self._texts


def test_what_was_owed_and_what_nobody_asked_for_are_counted_apart() -> None:
    """Half of what was owed, and one unwanted answer in five minutes is two in ten; what may be counts for nothing."""
    verdicts = judge_talks([TALK], lambda talk: Answers("Roomtone, what is it?", "Pass the salt.", "Thanks."))
    assert (verdicts.recall, verdicts.unwanted_in_10_min) == (0.5, 2.0)
    assert verdicts.mistakes == ["missed, follow_up: And then?", "unwanted, chatter: Pass the salt."]


def test_nobody_goes_on_with_a_bot_that_has_not_answered() -> None:
    """What follows an unanswered call counts for nothing, whatever becomes of it."""
    verdicts = judge_talks([TALK], lambda talk: Answers("And then?"))
    assert (verdicts.recall, verdicts.owed.total()) == (0.0, 1)


def test_time_alone_with_the_bot_is_no_time_in_which_it_can_be_unwanted() -> None:
    """Where everything is for it nothing can be."""
    alone = Talk("alone", ("Kim",), (), (Line("Kim", "Hello.", Owed.YES, "alone", 0, 1),), 600.0)
    verdicts = judge_talks([TALK, alone], lambda talk: Answers("Pass the salt."))
    assert verdicts.unwanted_in_10_min == 2.0


def test_the_held_out_part_tells_no_examples() -> None:
    """Whoever tunes must not see what it holds."""
    figures = measure_deciding()
    assert set(figures) == {part.value for part in Part}
    tuning, held_out = figures["tuning"], figures["held_out"]
    assert isinstance(tuning, dict)
    assert isinstance(held_out, dict)
    assert "mistakes" in tuning
    assert "mistakes" not in held_out
