"""Each kind of expectation passes or fails for the right reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.events import ContextBuilt, ReplySpoken, UtteranceTranscribed
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart
from rehearsal.judge.expectations import judge_expectation
from rehearsal.judge.replies import RunEvidence
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyPercentiles,
    LatencyReport,
    UnmatchedUtteranceReport,
    UtteranceReport,
)
from rehearsal.runner.record import LoggedProblem
from rehearsal.script.expectations import EXPECTATION_KINDS


def row(speaker: str = "Mira", *, heard: bool = True, twice: bool = False) -> UtteranceReport:
    """Return the report of one spoken line."""
    return UtteranceReport(
        speaker, "hello there", "hello there", 0.0, 500.0, heard_as=("u1",) if heard else (), twice=twice
    )


def part(kind: str, content: str, seq: int = 0) -> PayloadPart:
    """Return one part of a prompt."""
    return PayloadPart("user", PartKind(kind), Seq(seq), Seq(seq), 5, content)


def turn(seq: int, *said: tuple[str, str], kind: TurnKind = TurnKind.SPEECH) -> Turn:
    """Return a recorded turn. `said`: who, and what."""
    return Turn(Seq(seq), kind, 0.0, 0.0, tuple(TurnPart(who, "", text) for who, text in said))


def answer(heard: str, *, text: str = "", payload: tuple[PayloadPart, ...] = ()) -> BotTurnReport:
    """Return the report of a bot turn that answers the step `ask`."""
    return BotTurnReport(text or heard, heard, answers="ask", payload=payload, fell_silent_s=12.0)


def prompt(*covered: tuple[str, int, int]) -> ContextBuilt:
    """Return the prompt for turn 3 with these parts: kind, and the first and last turn."""
    parts = [PayloadPart("user", PartKind(kind), Seq(first), Seq(last), 40, "") for kind, first, last in covered]
    return ContextBuilt(tuple(parts), 3, 0.0)


WELL = RunEvidence(
    utterances=(row(), row("Jonas")),
    strays=(),
    bot_turns=(answer("It was Ithaca."),),
    compactions=(CompactionReport(0, 10, 9, 400, 12.0),),
    latency=LatencyReport(LatencyPercentiles(500.0, 900.0, 8), LatencyPercentiles(None, None)),
    wer=0.12,
    packets={"received": 1000, "lost": 0, "concealed": 0, "dave_failures": 2},
    messages=("Roomtone listens in Lounge.",),
    problems=(LoggedProblem("slow", "", level="warning"),),
    turns=(turn(58, ("11", "hello there")), turn(59, ("assistant", "hi"), kind=TurnKind.ASSISTANT)),
    heard=(UtteranceTranscribed("u1", 11, "Hello there.", 1.0, 2.0, 2.5),),
    replies=(ReplySpoken("It was Ithaca.", 3, "u1", 3.0, 4.0, False, None, None),),
    prompts=(prompt(("summary", 0, 1), ("turn", 2, 2), ("current", 3, 3)),),
    stored_turns=58,
)
UNRECEIVED = replace(answer("", text="It was Ithaca."), fell_silent_s=None)
SUMMARY = part("summary", "Mira wants to go to Ithaca by boat.")


def judged(kind: str, evidence: RunEvidence = WELL, **values: Any) -> ExpectationResult:
    """Judge one expectation, with its values written as in a scenario file."""
    wanted: Any = EXPECTATION_KINDS[kind].model_validate({"kind": kind, **values})
    return judge_expectation(wanted, evidence)


@pytest.mark.parametrize(
    ("kind", "values", "changes", "passed", "detail"),
    [
        ("every_utterance_heard_once", {}, {}, True, "2 of 2"),
        ("every_utterance_heard_once", {}, {"utterances": (row(heard=False),)}, False, "not heard: Mira"),
        ("every_utterance_heard_once", {}, {"utterances": (row(twice=True),)}, False, "heard twice: Mira"),
        (
            "every_utterance_heard_once",
            {},
            {"strays": (UnmatchedUtteranceReport("Ada", "ghost"),)},
            False,
            "nobody said: Ada",
        ),
        ("every_utterance_heard_once", {}, {"utterances": ()}, False, "nothing was said"),
        ("attributed", {}, {}, True, "2 of 2"),
        (
            "every_utterance_heard_once",
            {"may_miss": 0.5},
            {"utterances": (row(heard=False), row())},
            True,
            "1 of 2; not heard: Mira",
        ),
        ("attributed", {}, {"utterances": (row(heard=False), row())}, True, "1 of 1"),
        ("attributed", {}, {"strays": (UnmatchedUtteranceReport("Ada", "x", "Mira"),)}, False, "said by Mira, not Ada"),
        ("attributed", {}, {"utterances": ()}, False, "0 of 0"),
        ("max_wer", {"value": 0.12}, {}, True, "12.0%"),
        ("max_wer", {"value": 0.1}, {}, False, "at most 10.0%"),
        ("max_wer", {"value": 0.1}, {"wer": None}, False, "nothing was said"),
        ("dave_failures", {}, {}, False, "2 of 1000"),
        ("dave_failures", {"max": 2}, {}, True, "2 of 1000"),
        ("dave_failures", {}, {"packets": {}}, False, "0 of 0"),
        ("compaction", {"old_cursor": 0, "new_cursor": 10}, {}, True, "0 -> 10"),
        ("compaction", {"old_cursor": 10, "new_cursor": 20}, {}, False, "landed: 0 -> 10"),
        ("compaction", {"old_cursor": 0, "new_cursor": 10}, {"compactions": ()}, False, "landed: none"),
        ("compactions_unbroken", {}, {}, True, "1 compaction"),
        (
            "compactions_unbroken",
            {},
            {"compactions": (CompactionReport(10, 20, 19, 400, 1.0),)},
            False,
            "do not follow each other",
        ),
        ("compactions_unbroken", {}, {"failed_compactions": ("no room",)}, False, "one failed: no room"),
        ("prompts_complete", {"max_tokens": 150}, {}, True, "1 prompt, at most 120 of 150 tokens"),
        ("prompts_complete", {"max_tokens": 119}, {}, False, "at most 120 of 119"),
        ("prompts_complete", {"max_tokens": 150}, {"prompts": (prompt(("turn", 0, 1)),)}, False, "lacks turn 2"),
        # A quote does not stand for the turn that it is from.
        (
            "prompts_complete",
            {"max_tokens": 150},
            {"prompts": (prompt(("summary", 0, 1), ("recall", 2, 2)),)},
            False,
            "lacks turn 2",
        ),
        ("prompts_complete", {"max_tokens": 150}, {"prompts": ()}, False, 'no prompt is known for "It was Ithaca."'),
        ("answer", {"to": "ask", "all_of": ["ithaca"], "any_of": ["X", "it was"]}, {}, True, "heard:"),
        ("answer", {"to": "ask", "all_of": ["Ithaca", "boat"]}, {}, False, "missing boat"),
        ("answer", {"to": "ask", "any_of": ["boat", "ferry"]}, {}, False, "none of boat, ferry"),
        ("answer", {"to": "ask", "all_of": ["Ithacan boats"]}, {}, False, "missing Ithacan boats"),
        ("answer", {"to": "tell", "all_of": ["Ithaca"]}, {}, False, "did not answer"),
        # That the bot reports a reply is not enough.
        (
            "answer",
            {"to": "ask", "all_of": ["Ithaca"], "heard": False},
            {"bot_turns": (UNRECEIVED,)},
            False,
            "nobody received",
        ),
        ("notice_posted", {"contains": "LISTENS"}, {}, True, "Roomtone listens"),
        ("notice_posted", {}, {}, True, "Roomtone listens"),
        ("notice_posted", {"contains": "bye"}, {}, False, "1 message, none"),
        ("notice_posted", {}, {"messages": ()}, False, "wrote no message"),
        ("notice_posted", {"contains": "listens", "count": 1}, {}, True, "1 of 1 message"),
        ("notice_posted", {"contains": "listens", "count": 1}, {"messages": WELL.messages * 2}, False, "2 of 2"),
        ("notice_posted", {"contains": "bye", "count": 0}, {}, True, "0 of 1 message, exactly 0 expected"),
        ("notice_posted", {"count": 0}, {"messages": ()}, True, "wrote no message"),
        ("nothing_raised", {}, {}, True, "nothing"),
        ("nothing_raised", {"warnings": True}, {}, False, "slow"),
        ("nothing_raised", {}, {"problems": (LoggedProblem("x_failed", "disk"),)}, False, "x_failed: disk"),
        ("min_bot_turns", {"count": 1}, {}, True, "1 time"),
        ("min_bot_turns", {"count": 2}, {}, False, "1 time"),
        ("min_bot_turns", {"count": 1}, {"bot_turns": (UNRECEIVED,)}, False, "heard 0 times"),
        ("max_bot_turns", {"count": 0}, {"bot_turns": (UNRECEIVED,)}, False, "1 time"),
        ("max_bot_turns", {"count": 1}, {}, True, "1 time"),
        ("max_bot_turns", {"count": 0}, {}, False, "1 time"),
        ("turns_unbroken", {}, {}, True, "turns 58 to 59"),
        ("turns_unbroken", {}, {"stored_turns": 57}, False, "missing: 57"),
        ("turns_unbroken", {}, {"turns": WELL.turns * 2}, False, "written twice: 58, 59"),
        ("turns_unbroken", {}, {"turns": ()}, False, "no turn was recorded"),
        ("timeline_complete", {}, {}, True, "1 utterance, 0 words"),
        ("timeline_complete", {}, {"turns": ()}, False, "2 words"),
        ("timeline_complete", {}, {"turns": WELL.turns * 2}, False, "2 words"),
        ("timeline_complete", {}, {"heard": ()}, False, "0 utterances"),
    ],
)
def test_an_expectation(kind: str, values: dict[str, Any], changes: dict[str, Any], passed: bool, detail: str) -> None:
    """The expectation passes or fails as listed, and its detail says why."""
    result = judged(kind, replace(WELL, **changes), **values)
    assert (result.passed, detail in result.detail) == (passed, True), result.detail


def test_an_answer_is_judged_by_what_others_heard() -> None:
    """An answer is judged by what other people heard. With `heard=False`, the bot's own text counts."""
    mute = replace(WELL, bot_turns=(answer("", text="It was Ithaca."),))
    assert not judged("answer", mute, to="ask", all_of=["Ithaca"]).passed
    assert judged("answer", mute, to="ask", all_of=["Ithaca"], heard=False).passed


@pytest.mark.parametrize(
    ("bounds", "sounded_ms", "passed", "detail"),
    [
        ({"after_ms": 2000}, 2500.0, True, "heard: "),
        ({"after_ms": 2000}, 1500.0, False, "heard after 1500 ms"),
        ({"before_ms": 2000}, 1500.0, True, "heard: "),
        ({"before_ms": 2000}, 2500.0, False, "heard after 2500 ms"),
        ({"before_ms": 2000}, None, False, "is not known"),
    ],
)
def test_an_answer_may_be_wanted_soon_or_late(
    bounds: dict[str, float], sounded_ms: float | None, passed: bool, detail: str
) -> None:
    """`after_ms` and `before_ms` limit when other people heard the answer begin, after the end of the question."""
    timed = replace(WELL, bot_turns=(replace(answer("It was Ithaca."), end_to_first_audio_ms=sounded_ms),))
    result = judged("answer", timed, to="ask", all_of=["Ithaca"], **bounds)
    assert (result.passed, detail in result.detail) == (passed, True), result.detail


def test_the_fact_must_stand_in_the_summary_and_nowhere_else() -> None:
    """`fact_only_in_summary` passes only if the summary has the fact and no other part of the prompt has it."""

    def found(*payload: PayloadPart) -> ExpectationResult:
        evidence = replace(WELL, bot_turns=(answer("Ithaca", payload=payload),))
        return judged("fact_only_in_summary", evidence, to="ask", words=["Ithaca"])

    asked = part("current", "Roomtone, which island?", 75)
    assert found(SUMMARY, asked).passed
    assert "does not hold" in found(asked).detail
    leaked = found(SUMMARY, part("turn", "Ithaca again", 61), asked)
    assert not leaked.passed
    assert "the turn part of turn 61" in leaked.detail
    assert not judged("fact_only_in_summary", to="ask", words=["Ithaca"]).passed


def test_a_turn_of_two_people_is_not_a_turn_twice() -> None:
    """A turn in which two people spoke, one of them twice, does not count as a duplicate."""
    shared = turn(58, ("11", "yes"), ("12", "no"), ("11", "One thing more."))
    assert judged("turns_unbroken", replace(WELL, turns=(shared,))).passed


def test_two_people_who_were_taken_for_each_other_are_found() -> None:
    """Both spoke at the same time, so time does not tell them apart: the words do. A text that is merely bad is its
    speaker's, and so is one that both said, or that somebody else says later.
    """
    mira = replace(row(), reference="where shall we go on Sunday", transcript="I like the sea most of all", wer=1.0)
    jonas = replace(
        row("Jonas"), reference="I like the sea most of all", transcript="where shell we go on Sunday", wer=1.0
    )
    swapped = judged("attributed", replace(WELL, utterances=(mira, jonas)))
    assert not swapped.passed
    assert swapped.detail.startswith('"I like the sea most of all" was said by Jonas, not Mira; "where shell')
    assert judged("attributed", replace(WELL, utterances=(mira, replace(jonas, started_s=60.0)))).passed
    bad = replace(mira, transcript="wear shell tea")
    both = replace(mira, reference=jonas.reference, wer=0.0)
    for rows in (
        (bad, replace(jonas, transcript=jonas.reference, wer=0.0)),
        (both, replace(jonas, transcript="x", wer=1.0)),
    ):
        assert judged("attributed", replace(WELL, utterances=rows)).passed


def broken_off(**values: Any) -> RunEvidence:
    """Return evidence of an answer that was interrupted.

    Somebody began to speak over the answer at 9 s after the live start, and had spoken for 700 ms at 10 s.
    """
    turn = BotTurnReport("It was", "It was", answers="ask", interrupted=True, fell_silent_s=10.2)
    return replace(
        WELL,
        bot_turns=(replace(turn, **values),),
        utterances=(replace(row("Jonas"), step="break-in", started_s=9.0, qualified_s=10.0),),
    )


@pytest.mark.parametrize(
    ("values", "changes", "passed", "detail"),
    [
        ({}, {}, True, "broken off"),
        ({"value": False}, {}, False, "broken off"),
        ({"value": False}, {"interrupted": False}, True, "spoken to its end"),
        ({"by": "break-in"}, {}, True, "silent 200 ms after 700 ms of break-in"),
        ({"by": "break-in", "within_ms": 150}, {}, False, "silent 200 ms"),
        ({"by": "break-in"}, {"fell_silent_s": None}, False, "not known"),
        ({"by": "somebody"}, {}, False, "not known"),
        ({"by": "break-in"}, {"interrupted": False}, False, "spoken to its end"),
        # It fell silent before anybody spoke over it, so it was not this step that broke it off.
        ({"by": "break-in"}, {"fell_silent_s": 9.5}, True, "silent -500 ms"),
        ({"by": "break-in"}, {"fell_silent_s": 4.0}, False, "silent 5000 ms before break-in began"),
        ({}, {"fell_silent_s": None}, False, "nobody received it"),
        ({"value": False}, {"interrupted": False, "fell_silent_s": None}, False, "nobody received it"),
        ({}, {"answers": "other"}, False, "did not answer"),
    ],
)
def test_an_interruption_is_judged_by_what_others_heard(
    values: dict[str, Any], changes: dict[str, Any], passed: bool, detail: str
) -> None:
    """The expectation checks whether other people heard the answer break off, and how soon the bot was silent."""
    result = judged("interrupted", broken_off(**changes), to="ask", **values)
    assert (result.passed, result.name) == (passed, "interrupted ask")
    assert detail in result.detail
