"""Each expectation of a written evening passes on a good record and fails when one fact is spoilt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rehearsal.judge.written_evening import build_written_report
from rehearsal.runner.evening_record import EveningRecord, PlayedSpeech
from rehearsal.runner.observations import (
    LoggedProblem,
    ObservedCompaction,
    ObservedCompactionFailure,
    ObservedPrompt,
    ObservedPromptPart,
    ObservedReply,
    ObservedTurn,
    ObservedUtterance,
    RoomLeft,
)
from rehearsal.script.written_evening import EveningLine, SpeechEvent, WrittenEvening

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.report.report import RehearsalReport

TALKS = (
    SpeechEvent(who="ada", say="The boat is green.", over=EveningLine(who="bo", say="So is mine.")),
    SpeechEvent(who="bo", say="Roomtone, what colour is the boat?", answer=("green",)),
    SpeechEvent(
        who="ada", say="Roomtone, tell more.", answer=("lake",), broken_off=EveningLine(who="bo", say="That will do.")
    ),
)
IDS = {"ada": "1", "bo": "2"}
TURNS = (
    ObservedTurn(0, "speech", "1", "The boat is green."),
    ObservedTurn(0, "speech", "2", "So is mine."),
    ObservedTurn(1, "speech", "2", "Roomtone, what colour is the boat?"),
    ObservedTurn(2, "assistant", "assistant", "It is green."),
    ObservedTurn(3, "speech", "1", "Roomtone, tell more."),
    ObservedTurn(4, "assistant", "assistant", "On the (interrupted)"),
    ObservedTurn(5, "speech", "2", "That will do."),
)
FIRST = ObservedReply("It is green.", 20.0, 21.0, answer_to=1)
SECOND = ObservedReply("On the", 30.0, 31.0, interrupted=True, answer_to=3)


def part(kind: str, first: int, last: int, tokens: int = 40) -> ObservedPromptPart:
    """Return a prompt part that covers these turns."""
    return ObservedPromptPart("user", kind, "", tokens, first, last)


def good() -> EveningRecord:
    """Return the record of an evening without a failure."""
    record = EveningRecord()
    record.live_at = 10.0
    record.speeches = [PlayedSpeech(number, talk, 5.0 * number) for number, talk in enumerate(TALKS, 1)]
    record.turns = list(TURNS)
    record.replies = [FIRST, SECOND]
    record.prompts = [
        ObservedPrompt((part("turn", 0, 0), part("current", 1, 1)), 1),
        ObservedPrompt((part("summary", 0, 1), part("turn", 2, 2), part("current", 3, 3)), 3),
    ]
    record.compactions = [
        ObservedCompaction(0, 10, 9, 300, 5.0, "short"),
        ObservedCompaction(10, 20, 19, 400, 5.0, "longer"),
    ]
    record.utterances = [ObservedUtterance("u1", 1, "The boat is green.", 0.0, 1.0, 1.5)]
    return record


def report_of(record: EveningRecord, *, ended_by: str = "") -> RehearsalReport:
    """Return the report of a record, with a limit of 150 tokens for each prompt."""
    evening = WrittenEvening("Short", TALKS, tuple(range(1, len(TALKS) + 1)))
    return build_written_report(
        evening, record, ids=IDS, max_prompt_tokens=150, clock_s=7_260.0, duration_s=3.2, ended_by=ended_by
    )


def failed_names(report: RehearsalReport) -> list[str]:
    """Return the names of the expectations that were not met."""
    return [one.name for one in report.expectations if not one.passed]


def test_a_good_evening_passes() -> None:
    """The report of a good evening lists the lines, the answers with their questions, and the duration."""
    report = report_of(good())
    assert (report.passed, failed_names(report)) == (True, [])
    assert [(turn.text, turn.answers, turn.at_s) for turn in report.bot_turns] == [
        ("It is green.", "line 2", 10.0),
        ("On the", "line 3", 20.0),
    ]
    assert [len(turn.payload) for turn in report.bot_turns] == [2, 3]
    assert [(row.speaker, row.step, row.wants_answer) for row in report.utterances] == [
        ("Ada", "line 1", False),
        ("Bo", "line 1", False),
        ("Bo", "line 2", True),
        ("Ada", "line 3", True),
        ("Bo", "line 3", False),
    ]
    assert report.utterances[0].heard_as == ("u1",)
    assert (report.summary, report.clock_s, report.wer) == ("longer", 7260.0, None)
    assert [one.detail for one in report.expectations[:4]] == [
        "2 h 1 min in 3 s",
        "5 lines, each once under its speaker",
        "6 turns",
        "2 questions, each with the expected words",
    ]


def lose_a_word(record: EveningRecord) -> None:
    record.turns[6] = replace(record.turns[6], text="That will.")


def mistake_the_speaker(record: EveningRecord) -> None:
    record.turns[1] = replace(record.turns[1], speaker_id="1")


def skip_a_turn(record: EveningRecord) -> None:
    record.turns[6] = replace(record.turns[6], seq=9)


def answer_with_something_else(record: EveningRecord) -> None:
    record.replies[0] = replace(FIRST, text="I do not know.")


def answer_nothing(record: EveningRecord) -> None:
    del record.replies[0]


def answer_talk_between_people(record: EveningRecord) -> None:
    record.prompts.insert(0, ObservedPrompt((part("current", 0, 0),), 0))
    record.replies.insert(0, ObservedReply("How nice.", 12.0, 13.0, answer_to=0))


def answer_twice(record: EveningRecord) -> None:
    record.replies.append(replace(FIRST, first_audio_at=40.0))


def speak_on(record: EveningRecord) -> None:
    record.replies[1] = replace(SECOND, text="On the lake.", interrupted=False)


def leave_a_turn_out(record: EveningRecord) -> None:
    record.prompts[1] = ObservedPrompt((part("summary", 0, 1), part("current", 3, 3)), 3)


def count_a_quote_as_a_turn(record: EveningRecord) -> None:
    record.prompts[1] = ObservedPrompt((part("summary", 0, 1), part("recall", 2, 2), part("current", 3, 3)), 3)


def answer_without_a_prompt(record: EveningRecord) -> None:
    del record.prompts[1]


def send_too_much(record: EveningRecord) -> None:
    record.prompts[0] = ObservedPrompt((part("turn", 0, 0, tokens=151), part("current", 1, 1, tokens=0)), 1)


def leave_a_gap(record: EveningRecord) -> None:
    record.compactions[1] = replace(record.compactions[1], old_cursor=11)


def begin_late(record: EveningRecord) -> None:
    record.compactions = record.compactions[1:]


@pytest.mark.parametrize(
    ("spoil", "expectation"),
    [
        (lose_a_word, "timeline_complete"),
        (mistake_the_speaker, "timeline_complete"),
        (skip_a_turn, "turns_unbroken"),
        (answer_with_something_else, "answered"),
        (answer_nothing, "answered"),
        (answer_talk_between_people, "not_answered"),
        (answer_twice, "not_answered"),
        (speak_on, "interrupted"),
        (leave_a_turn_out, "every_turn_in_the_prompt"),
        (count_a_quote_as_a_turn, "every_turn_in_the_prompt"),
        (answer_without_a_prompt, "every_turn_in_the_prompt"),
        (send_too_much, "prompt_tokens"),
        (leave_a_gap, "compaction"),
        (begin_late, "compaction"),
        (lambda record: record.observe(LoggedProblem("disk_full", "no room")), "nothing_raised"),
        (lambda record: record.observe(ObservedCompactionFailure("no room", 10)), "nothing_raised"),
        (lambda record: record.failed_waits.append("waited in vain"), "wait"),
    ],
)
def test_each_expectation_can_fail(spoil: Callable[[EveningRecord], None], expectation: str) -> None:
    """Spoiling one fact makes exactly one expectation fail."""
    record = good()
    spoil(record)
    report = report_of(record)
    assert failed_names(report) == [expectation]
    assert not report.passed


def test_an_evening_that_ended_early_is_told() -> None:
    """The report gives the reason why an evening ended early."""
    report = report_of(good(), ended_by="The bot left: empty.")
    assert failed_names(report) == ["reached_the_end"]
    assert report.ended_by == "The bot left: empty."


def test_what_was_dropped_is_counted() -> None:
    """Dropped utterances are counted by reason, and the record keeps why the bot left."""
    record = good()
    record.observe(ObservedUtterance("u2", 1, "", 0.0, 1.0, 1.5, "too_quiet"))
    record.observe(RoomLeft("s", 90.0, "left"))
    assert report_of(record).dropped == {"too_quiet": 1}
    assert record.left == "left"
