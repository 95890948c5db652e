"""A run's record becomes a report: which line a reply answers, who heard the reply, and how late it was."""

from __future__ import annotations

from typing import Any

from bot import events
from compaction.model import Seq
from compaction.payload import PartKind, PayloadPart
from rehearsal.judge.matching import match_utterances
from rehearsal.judge.report_builder import answered_line, build_report
from rehearsal.report.report import ExpectationResult, RehearsalReport
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.runner.local_servers import ServerObservations
from rehearsal.runner.record import RunRecord, SpokenLine, utterance_span
from rehearsal.script.expectations import ExpectSilent
from rehearsal.script.scenario import PersonSpec
from tests.rehearsal.simulated import JONAS, MIRA, SimulatedEnvironment, SimulatedRecogniser, scenario


def spoken(number: int, who: PersonSpec, text: str, start: float, end: float) -> SpokenLine:
    """Return a spoken line."""
    return SpokenLine(number, f"s{number}", who.id, who.name, text, start, end, over=True)


def heard(name: str, who: PersonSpec, text: str, start: float, end: float) -> events.UtteranceTranscribed:
    """Return an utterance that the bot reported 0.4 s after its end."""
    return events.UtteranceTranscribed(name, who.id, text, start, end, end + 0.4)


def reply(answers: str | None, begun: float, ended: float, text: str = "x", answer_to: int = 0) -> events.ReplySpoken:
    """Return a reply to an utterance."""
    return events.ReplySpoken(text, answer_to, answers, begun, ended, False, None, None)


def evening() -> RunRecord:
    """Return a record in which Mira asks and Jonas speaks after her."""
    record = RunRecord()
    record.live_at = 100.0
    record.note_entered(MIRA.id, 100.0)
    record.note_entered(JONAS.id, 100.0)
    record.add_line(spoken(0, MIRA, "where shall we go", 101.0, 103.0))
    record.add_line(spoken(1, JONAS, "I like the sea", 104.0, 106.0))
    record.observe(heard("u1", MIRA, "where shell we go", 101.0, 102.9))
    record.observe(heard("u2", JONAS, "I like", 104.0, 105.0))
    record.observe(heard("u3", JONAS, "the sea", 105.1, 105.9))
    record.observe(events.SpeechDropped("u4", JONAS.id, "silence", "", 109.0, 109.2, 109.6))
    return record


def told(record: RunRecord, recogniser: SimulatedRecogniser | None = None) -> RehearsalReport:
    """Build the report of a record."""
    environment = SimulatedEnvironment()
    return run_virtually(
        build_report(scenario(), record, environment, recogniser or SimulatedRecogniser(), servers=ServerObservations())
    )


def test_pieces_are_joined_and_latency_counts_from_the_true_end() -> None:
    """Latency is the time from the end of the voice in the clip to the text of the last piece."""
    report = told(evening())
    mira, jonas = report.utterances
    assert (mira.transcript, mira.wer, mira.end_to_text_ms) == ("where shell we go", 0.25, 300.0)
    assert (jonas.transcript, jonas.heard_as, jonas.end_to_text_ms) == ("I like the sea", ("u2", "u3"), 300.0)
    assert (mira.step, mira.started_s) == ("s0", 1.0)
    assert report.dropped == {"silence": 1}
    assert report.wer == round(1 / 8, 4)
    assert report.summary == ""


def test_a_reply_answers_what_it_names() -> None:
    """A reply answers the utterance that it names, or else the last line before it, if there is one."""
    record = evening()
    matching = match_utterances([one.span for one in record.lines], [utterance_span(one) for one in record.utterances])

    def asked(answers: str | None, begun: float, ended: float) -> str | None:
        found = answered_line(record, matching, reply(answers, begun, ended))
        return found.reference if found else None

    assert asked("u1", 107.0, 108.0) == "where shall we go"
    assert asked("u3", 107.0, 108.0) == "I like the sea"
    assert asked("gone", 107.0, 108.0) == "I like the sea"
    assert asked("gone", 100.5, 100.9) is None
    assert asked(None, 107.0, 108.0) is None


def test_a_bot_turn_has_what_another_heard_and_what_the_model_saw() -> None:
    """A bot turn has what a participant other than the asker heard, and the prompt that the model was sent."""
    record = evening()
    part = PayloadPart("system", PartKind.SUMMARY, Seq(0), Seq(9), 3, "Ithaca")
    record.observe(events.ContextBuilt((), 60, 103.5))
    record.observe(events.ContextBuilt((part,), 61, 103.6))
    record.observe(reply("u1", 107.0, 109.0, "to the sea", answer_to=61))
    (turn,) = told(record, SimulatedRecogniser("to the sea")).bot_turns
    assert (turn.answers, turn.heard_by, turn.heard_by_others) == ("s0", "Jonas", "to the sea")
    # The simulated listener first hears the voice 0.2 s after the start of the stretch, which begins 0.1 s before the
    # reply.
    assert turn.end_to_first_audio_ms == 4100.0
    assert turn.payload == (part,)


class Voice(SimulatedEnvironment):
    """An environment in which one person receives the bot's voice from 110 s to 112 s, whatever the bot reports."""

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        first, last = max(since, 110.0), min(until, 112.0)
        return (first, last) if listener_id == JONAS.id and first < last else None


def silence(record: RunRecord, expected: dict[str, Any]) -> ExpectationResult:
    """Judge one expectation of silence by what people received."""
    played = scenario(expect=(ExpectSilent(kind="silent", **expected),))
    report = run_virtually(build_report(played, record, Voice(), SimulatedRecogniser(), servers=ServerObservations()))
    return report.expectations[-1]


def test_a_voice_that_the_bot_does_not_report_is_heard() -> None:
    """Silence is judged by the sound that people received from one step to the next, not by the bot's replies.

    After the end of the run there is none.
    """
    record = evening()
    record.step_times |= {"hush": (104.0, 106.0), "talk": (109.0, 109.5), "bye": (120.0, 120.5)}
    assert silence(record, {"since": "hush", "until": "talk"}).detail == "silent from 7.0 s to 9.0 s"
    for until in ("bye", ""):
        broken = silence(record, {"since": "hush", "until": until})
        assert (broken.passed, broken.detail) == (False, "its voice was received at 10.0 s")
    assert silence(record, {"since": "gone"}).detail == "the step was not reached"
    record.ended_at = 121.0
    late = silence(record, {"since": "bye", "within_s": 5.0})
    assert (late.passed, late.detail) == (False, "there is no time from 25.5 s to the end at 21.0 s")
    assert silence(record, {"since": "bye", "within_s": 0.1}).detail == "silent from 20.6 s to the end at 21.0 s"
    for who in (MIRA, JONAS):
        record.note_left(who.id, 108.0)
    assert not silence(record, {"since": "hush", "until": "talk"}).passed
