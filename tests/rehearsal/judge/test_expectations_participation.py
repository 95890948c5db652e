"""Expectations about when the bot answered or was silent, and about its servers, pass or fail for the right reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart
from rehearsal.judge.expectations import judge_expectation
from rehearsal.judge.replies import RunEvidence, SilenceEvidence, judge_answers, silence_wanted
from rehearsal.report.report import BotTurnReport, ExpectationResult, LatencyPercentiles, LatencyReport, UtteranceReport
from rehearsal.runner.local_servers import ObservedToolCall, ServerObservations
from rehearsal.script.expectations import EXPECTATION_KINDS, ExpectSilent

ANSWER = BotTurnReport(
    "It was Ithaca.",
    "it was Ithaca",
    answers="ask",
    at_s=10.0,
    fell_silent_s=12.0,
    payload=(PayloadPart("assistant", PartKind.TURN, Seq(3), Seq(3), 4, "It was (interrupted)"),),
)
THOUGHT = replace(ANSWER, answers="", unasked=True)
WELL = RunEvidence(
    utterances=(),
    strays=(),
    bot_turns=(ANSWER,),
    compactions=(),
    latency=LatencyReport(LatencyPercentiles(None, None), LatencyPercentiles(None, None)),
    wer=None,
    packets={},
    messages=(),
    problems=(),
    turns=(
        Turn(Seq(0), TurnKind.SPEECH, 0.0, 0.0, (TurnPart("11", "", "hello there"),)),
        Turn(Seq(1), TurnKind.ASSISTANT, 0.0, 0.0, (TurnPart("assistant", "", "It (interrupted)"),)),
    ),
    heard=(),
    step_times={"hush": (4.0, 5.0), "talk": (8.0, 9.0), "later": (20.0, 21.0)},
    speaker_ids={"mira": "11", "Roomtone": "assistant"},
    servers=ServerObservations((ObservedToolCall("memory_search", "[21:04] Ada: the red lantern"),), (700, 1950), 2),
)


def judged(kind: str, evidence: RunEvidence = WELL, **values: Any) -> ExpectationResult:
    """Judge one expectation, with its values written as in a scenario file.

    While silence is wanted, somebody is there, and receives nothing but what the evidence has.
    """
    wanted: Any = EXPECTATION_KINDS[kind].model_validate({"kind": kind, **values})
    if isinstance(wanted, ExpectSilent) and not evidence.silences:
        span = silence_wanted(wanted, evidence.step_times)
        evidence = replace(evidence, silences={} if span is None else {wanted: SilenceEvidence(*span, listened=True)})
    return judge_expectation(wanted, evidence)


@pytest.mark.parametrize(
    ("kind", "values", "changes", "passed", "detail"),
    [
        ("silent", {"since": "hush", "until": "talk"}, {}, True, "silent from 6.0 s to 8.0 s"),
        ("silent", {"since": "hush"}, {}, False, 'at 10.0 s: "It was Ithaca."'),
        ("silent", {"since": "later"}, {}, True, "to the end"),
        ("silent", {"since": "hush", "until": "nothing"}, {}, False, "not reached"),
        ("silent", {"since": "gone"}, {}, False, "not reached"),
        # An answer that began before the command and continued after it is not silence.
        ("silent", {"since": "hush"}, {"bot_turns": (replace(ANSWER, at_s=4.0, fell_silent_s=5.5),)}, True, "silent"),
        ("silent", {"since": "hush"}, {"bot_turns": (replace(ANSWER, at_s=4.0, fell_silent_s=7.0),)}, False, "at 4.0"),
        ("silent", {"since": "hush", "within_s": 3}, {"bot_turns": (replace(ANSWER, at_s=4.0),)}, False, "at 4.0"),
        ("thought", {"since": "hush"}, {}, False, "nothing unasked"),
        ("thought", {"since": "hush"}, {"bot_turns": (THOUGHT,)}, True, '5.0 s after it: "it was Ithaca"'),
        ("thought", {"since": "hush", "after_s": 5}, {"bot_turns": (THOUGHT,)}, True, "5.0 s"),
        ("thought", {"since": "hush", "after_s": 5.1}, {"bot_turns": (THOUGHT,)}, False, "5.0 s"),
        ("thought", {"since": "hush", "all_of": ["Ithaca"]}, {"bot_turns": (THOUGHT,)}, True, "5.0 s"),
        ("thought", {"since": "hush", "all_of": ["Troy"]}, {"bot_turns": (THOUGHT,)}, False, "5.0 s"),
        ("thought", {"since": "hush"}, {"bot_turns": (replace(THOUGHT, heard_by_others=""),)}, False, "5.0 s"),
        ("thought", {"since": "gone"}, {"bot_turns": (THOUGHT,)}, False, "not reached"),
        ("recorded", {"who": "Roomtone", "contains": "(interrupted)"}, {}, True, "It (interrupted)"),
        ("recorded", {"who": "mira", "contains": "(interrupted)"}, {}, False, "1 turn of mira"),
        ("recorded", {"who": "mira", "contains": "x", "value": False}, {}, True, "none contains it"),
        ("recorded", {"who": "mira", "contains": "hello", "value": False}, {}, False, "hello there"),
        # A recogniser may begin a sentence with it.
        ("recorded", {"who": "mira", "contains": "Hello", "value": False}, {}, False, "hello there"),
        ("model_knew", {"to": "ask", "contains": "(interrupted)"}, {}, True, "the turn part of turn 3"),
        ("model_knew", {"to": "ask", "contains": "rain"}, {}, False, "no part"),
        ("model_knew", {"to": "tell", "contains": "rain"}, {}, False, "did not answer"),
        ("tool_called", {"name": "memory_search"}, {}, True, "1 time"),
        ("tool_called", {"name": "memory_search", "words": ["red lantern"]}, {}, True, "1 time"),
        ("tool_called", {"name": "memory_search", "words": ["blue"]}, {}, False, "missing blue"),
        ("tool_called", {"name": "post_link"}, {}, False, "called: memory_search"),
        ("tool_called", {"name": "post_link"}, {"servers": ServerObservations()}, False, "called: none"),
        ("realtime_sessions", {"count": 2}, {}, True, "2 sessions"),
        ("realtime_sessions", {"count": 1}, {}, False, "2 sessions"),
        ("truncated", {"to": "ask"}, {}, False, "no answer to it was broken off"),
    ],
)
def test_an_expectation(kind: str, values: dict[str, Any], changes: dict[str, Any], passed: bool, detail: str) -> None:
    """The expectation passes or fails as listed, and its detail says why."""
    result = judged(kind, replace(WELL, **changes), **values)
    assert (result.passed, detail in result.detail) == (passed, True), result.detail


@pytest.mark.parametrize(
    ("silence", "detail"),
    [
        # A sample of a voice, a notice, or a reply that the bot does not report.
        (SilenceEvidence(6.0, 8.0, listened=True, voice_s=7.2), "its voice was received at 7.2 s"),
        (SilenceEvidence(6.0, 8.0, listened=False), "nobody was there to hear it from 6.0 s to 8.0 s"),
        (SilenceEvidence(9.0, 8.0, listened=True), "there is no time from 9.0 s to 8.0 s"),
    ],
)
def test_silence_is_what_people_heard(silence: SilenceEvidence, detail: str) -> None:
    """That the bot reports no reply is not enough: nobody may have received its voice, and somebody listened."""
    wanted = ExpectSilent(kind="silent", since="hush", until="talk")
    result = judge_expectation(wanted, replace(WELL, silences={wanted: silence}))
    assert (result.passed, result.detail) == (False, detail)


def test_the_model_is_told_where_it_was_cut_off() -> None:
    """`truncated` compares the length the model was told with what another participant heard, within a tolerance."""
    cut = replace(WELL, bot_turns=(replace(ANSWER, interrupted=True),))
    assert judged("truncated", cut, to="ask").passed
    assert judged("truncated", cut, to="ask").detail == "heard for 2000 ms, told to the model: 1950 ms"
    assert not judged("truncated", cut, to="ask", within_ms=40).passed
    assert "told nothing" in judged("truncated", replace(cut, servers=ServerObservations()), to="ask").detail


def test_every_line_that_says_so_is_judged() -> None:
    """Each line that says whether an answer is wanted is judged. Lines that leave it open are not."""

    def said(step: str, wants: bool | None) -> UtteranceReport:
        return UtteranceReport("Mira", "x", "x", 0.0, 100.0, step=step, wants_answer=wants)

    evidence = replace(
        WELL, utterances=(said("ask", True), said("tell", False), said("joke", None), said("call", True))
    )
    results = [(one.name, one.passed) for one in judge_answers(evidence)]
    assert results == [("answered ask", True), ("not answered tell", True), ("answered call", False)]
    (wrong,) = judge_answers(replace(WELL, utterances=(said("ask", False),)))
    assert (wrong.name, wrong.passed, wrong.detail) == ("not answered ask", False, 'answered: "It was Ithaca."')
    unheard = replace(WELL, bot_turns=(replace(ANSWER, fell_silent_s=None),))
    lost, tried = judge_answers(replace(unheard, utterances=(said("ask", True), said("ask", False))))
    assert (lost.passed, tried.passed) == (False, False)
    assert lost.detail == 'answered: "It was Ithaca.", which nobody received'
