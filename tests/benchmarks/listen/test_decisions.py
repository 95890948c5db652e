"""Scoring reply decisions: the recall of expected answers, the unwanted answers in a time, and which transcripts are
played.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.listen.decisions import DecisionCounts, measure_decisions, measure_unasked
from benchmarks.listen.talk_room import LineDecision
from benchmarks.listen.timed_talk import ReplyExpected, Talk, TimedLine
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet
from tests.benchmarks.no_progress import NoProgress

TALK = Talk(
    "kitchen",
    ("Ada", "Ben"),
    (
        TimedLine(("Ada",), "Roomtone, what is it?", 0, 1, "name", ReplyExpected.YES),
        TimedLine(("Ada",), "And then?", 6, 7, "follow_up", ReplyExpected.YES),
        TimedLine(("Ben",), "Pass the salt.", 8, 9, "chatter", ReplyExpected.NO),
        TimedLine(("Ada",), "Thanks.", 10, 11, "thanks", ReplyExpected.MAY),
    ),
    300.0,
)


def counted(talk: Talk, *answered: str) -> DecisionCounts:
    """Return the counts of a room that answers exactly these texts."""
    counts = DecisionCounts()
    counts.add(talk, [LineDecision(answers=line.text in answered) for line in talk.lines])
    return counts


def test_what_was_owed_and_what_nobody_asked_for_are_counted_apart() -> None:
    """Half of the expected answers is a recall of 0.5. One unwanted answer in five minutes is two in ten. Optional
    answers do not count.
    """
    counts = counted(TALK, "Roomtone, what is it?", "Pass the salt.", "Thanks.")
    assert (counts.recall, counts.unwanted_in_10_min) == (0.5, 2.0)
    assert counts.mistakes == ["missed, follow_up: And then?", "unwanted, chatter: Pass the salt."]


def test_nobody_goes_on_with_a_bot_that_has_not_answered() -> None:
    """A line that follows an unanswered call does not count, because nobody goes on with a silent bot."""
    counts = counted(TALK, "And then?")
    assert (counts.recall, counts.owed.total()) == (0.0, 1)


def test_time_alone_with_the_bot_is_no_time_in_which_it_can_be_unwanted() -> None:
    """Time alone with the bot is left out of the rate, because no answer can be unwanted there."""
    counts = counted(TALK, "Pass the salt.")
    alone = TimedLine(("Kim",), "Hello.", 0, 1, "alone", ReplyExpected.YES)
    counts.add(Talk("alone", ("Kim",), (alone,), 600.0), [LineDecision(in_vain=True)])
    assert (counts.unwanted_in_10_min, counts.in_vain) == (2.0, 0)


@pytest.mark.slow
async def test_the_held_out_part_tells_no_examples() -> None:
    """The figures of the held-out set list no mistakes, because people who tune must not see its lines."""
    figures = await measure_decisions()
    assert set(figures) == {part.value for part in TemplateSet}
    tuning, held_out = figures["tuning"], figures["held_out"]
    assert isinstance(tuning, dict)
    assert isinstance(held_out, dict)
    assert "mistakes" in tuning
    assert "mistakes" not in held_out


async def test_only_talk_among_people_is_played_and_never_quoted(tmp_path: Path) -> None:
    """A monologue and a talk with an assistant are left out with a remark. The conversations may be private."""
    for name, lines in {
        "evening": [("Matt", "Thanks, Roomtone!"), ("Sam", "We leave at nine and take the bus.")],
        "alone": [("Ada", "What is the time?")],
        "assistant": [("Ada", "What is the time?"), ("assistant", "Nine."), ("Bo", "Thanks.")],
    }.items():
        text = "\n".join(
            json.dumps({"speaker": who, "text": said, "at": 6.0 * at}) for at, (who, said) in enumerate(lines)
        )
        (tmp_path / f"{name}.jsonl").write_text(text, "utf-8")
    figures, remarks = await measure_unasked(tmp_path, NoProgress())
    whole = figures["whole turns"]
    assert isinstance(whole, dict)
    assert (whole["conversations"], whole["utterances"], whole["spoken_unasked"]) == (1, 2, 1)
    assert whole["examples"] == ["evening, line 0, wake_name"]
    assert sum("Of 3 conversations, 1 have" in remark for remark in remarks) == 2
