"""The facts of a run that expectations are judged by, and what the bot said: which line it answered, with which words,
how far it was heard, from which prompt. Pure.

A reply that nobody received is no answer, whatever the bot reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.events import ContextBuilt, ReplySpoken, UtteranceTranscribed
from compaction.model import Turn
from compaction.payload import PayloadPart
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyReport,
    UnmatchedUtteranceReport,
    UtteranceReport,
)
from rehearsal.runner.local_servers import ServerObservations
from rehearsal.runner.record import LoggedProblem
from rehearsal.script.expectations import (
    ExpectAnswer,
    ExpectFactOnlyInSummary,
    ExpectInterrupted,
    ExpectModelKnew,
    ExpectSilent,
    ExpectThought,
    ExpectTruncated,
)
from rehearsal.words import contains_words, sounds_like


@dataclass(frozen=True, slots=True)
class SilenceEvidence:
    """What people received of the bot while an `ExpectSilent` wants silence.

    `since_s`, `until_s`: that time, in seconds since the live start; it ends with the run at the latest. `listened`:
    somebody was in the channel for all of it. `voice_s`: when they received the first voiced sound, or None.
    """

    since_s: float
    until_s: float
    listened: bool
    voice_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The facts of a run that expectations are judged by."""

    utterances: tuple[UtteranceReport, ...]
    strays: tuple[UnmatchedUtteranceReport, ...]
    bot_turns: tuple[BotTurnReport, ...]
    compactions: tuple[CompactionReport, ...]
    latency: LatencyReport
    wer: float | None
    packets: Mapping[str, int]
    messages: tuple[str, ...]
    problems: tuple[LoggedProblem, ...]
    turns: tuple[Turn, ...]
    heard: tuple[UtteranceTranscribed, ...]
    replies: tuple[ReplySpoken, ...] = ()
    prompts: tuple[ContextBuilt, ...] = ()
    failed_compactions: tuple[str, ...] = ()
    stored_turns: int = 0
    # When each step with an id began and ended, in seconds since the live start.
    step_times: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # The speaker ids that turns use: of people by their key, of the bot by its name.
    speaker_ids: Mapping[str, str] = field(default_factory=dict)
    servers: ServerObservations = field(default_factory=ServerObservations)
    # Of each expectation of silence whose steps were reached.
    silences: Mapping[ExpectSilent, SilenceEvidence] = field(default_factory=dict)

    @property
    def received_turns(self) -> tuple[BotTurnReport, ...]:
        """Return the bot's replies whose voice somebody received: that the bot reports a reply is not enough."""
        return tuple(turn for turn in self.bot_turns if turn.fell_silent_s is not None)


NO_ANSWER = "the bot did not answer it"
UNRECEIVED = "the bot reports an answer, which nobody received"
_PROMPT_UNKNOWN = f"{NO_ANSWER}, or its prompt is not known"
# The summary, and the facts about people that are drawn from the same segments.
_MADE_OF_FOLDED_TURNS = frozenset({"summary", "participants"})


def judge_answers(evidence: RunEvidence) -> tuple[ExpectationResult, ...]:
    """Judge the `answered` key of every spoken step that has one."""
    results = []
    for row in evidence.utterances:
        if row.wants_answer is None:
            continue
        answers = [turn for turn in evidence.bot_turns if turn.answers == row.step]
        # That the bot tried to answer where no answer is wanted counts, even if nobody received it.
        received = [turn for turn in answers if turn.fell_silent_s is not None]
        detail = f'answered: "{answers[0].text}"' if answers else "not answered"
        if answers and not received:
            detail += ", which nobody received"
        name = f"{'answered' if row.wants_answer else 'not answered'} {row.step}"
        results.append(ExpectationResult(name, bool(received) if row.wants_answer else not answers, detail))
    return tuple(results)


def judge_answer(expected: ExpectAnswer, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether a step was answered with the expected words in time, and why."""
    reported = [turn for turn in evidence.bot_turns if expected.to in (turn.answers, *turn.in_turn)]
    answers = [turn for turn in reported if turn.fell_silent_s is not None]
    if not answers:
        return False, UNRECEIVED if reported else NO_ANSWER
    text = " ".join(turn.heard_by_others if expected.heard else turn.text for turn in answers)
    contains = sounds_like if expected.heard else contains_words
    missing = [word for word in expected.all_of if not contains(text, word)]
    none_of = bool(expected.any_of) and not any(contains(text, word) for word in expected.any_of)
    reasons = [f"missing {', '.join(missing)}"] if missing else []
    reasons += [f"none of {', '.join(expected.any_of)}"] if none_of else []
    reasons += _timing_errors(expected, answers[0].end_to_first_audio_ms)
    said = f'{"heard" if expected.heard else "said"}: "{text}"'
    return not reasons, "; ".join([*reasons, said])


def _timing_errors(expected: ExpectAnswer, first_audio_ms: float | None) -> list[str]:
    """Return what is wrong with the time at which others began to hear an answer."""
    if expected.after_ms is None and expected.before_ms is None:
        return []
    if first_audio_ms is None:
        return ["it is not known when it began to be heard"]
    late = expected.before_ms is not None and first_audio_ms > expected.before_ms
    early = expected.after_ms is not None and first_audio_ms < expected.after_ms
    return [f"heard after {first_audio_ms:.0f} ms"] if late or early else []


def judge_interrupted(expected: ExpectInterrupted, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether an answer was broken off, or was not, and whether it was the step `by` that did it."""
    answers = [turn for turn in evidence.bot_turns if turn.answers == expected.to]
    if not answers:
        return False, NO_ANSWER
    turn = answers[-1]
    how = "broken off" if turn.interrupted else "spoken to its end"
    if turn.interrupted is not expected.value:
        return False, f'{how}: "{turn.text}"'
    if turn.fell_silent_s is None:
        return False, f"{how}; it is not known when it fell silent, because nobody received it"
    if not (expected.value and expected.by):
        return True, f'{how}: "{turn.text}"'
    by = next((row for row in evidence.utterances if row.step == expected.by and row.qualified_s is not None), None)
    if by is None or by.qualified_s is None:
        return False, f"{how}; it is not known when {expected.by} had been heard long enough"
    # Whoever had fallen silent before was not interrupted by this step.
    if turn.fell_silent_s < by.started_s:
        return False, f"{how}, silent {1000 * (by.started_s - turn.fell_silent_s):.0f} ms before {expected.by} began"
    late_ms = 1000 * (turn.fell_silent_s - by.qualified_s)
    return late_ms <= expected.within_ms, f"{how}, silent {late_ms:.0f} ms after 700 ms of {expected.by} were voiced"


def judge_thought(expected: ExpectThought, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether the bot said something unasked that another participant heard, and when."""
    if expected.since not in evidence.step_times:
        return False, "the step was not reached"
    since = evidence.step_times[expected.since][1]
    thoughts = [turn for turn in evidence.bot_turns if turn.unasked]
    detail = "; ".join(f'{turn.at_s - since:.1f} s after it: "{turn.heard_by_others}"' for turn in thoughts)
    met = any(
        turn.at_s >= since + expected.after_s
        and turn.heard_by_others
        and all(sounds_like(turn.heard_by_others, words) for words in expected.all_of)
        for turn in thoughts
    )
    return met, detail or "the bot said nothing unasked"


def judge_truncated(expected: ExpectTruncated, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether the speech-to-speech model learnt how much of an answer was heard."""
    answers = [turn for turn in evidence.bot_turns if turn.answers == expected.to and turn.interrupted]
    if not answers or answers[-1].fell_silent_s is None:
        return False, "no answer to it was broken off, or it is not known when it fell silent"
    heard_ms = 1000 * (answers[-1].fell_silent_s - answers[-1].at_s)
    reported = evidence.servers.heard_ms
    if not reported:
        return False, f"heard for {heard_ms:.0f} ms; the model was told nothing"
    nearest = min(reported, key=lambda each: abs(each - heard_ms))
    detail = f"heard for {heard_ms:.0f} ms, told to the model: {nearest} ms"
    return abs(nearest - heard_ms) <= expected.within_ms, detail


def judge_only_in_summary(expected: ExpectFactOnlyInSummary, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether the summary alone has the words, of everything in the prompt for an answer."""
    payload = _payload(evidence.bot_turns, expected.to)
    if not payload:
        return False, _PROMPT_UNKNOWN
    reasons = []
    for word in expected.words:
        holding = [part for part in payload if contains_words(part.content, word)]
        if not any(part.kind == "summary" for part in holding):
            reasons.append(f'the summary does not hold "{word}"')
        elsewhere = [describe_part(part) for part in holding if part.kind not in _MADE_OF_FOLDED_TURNS]
        if elsewhere:
            reasons.append(f'"{word}" also stands in {", ".join(elsewhere)}')
    return not reasons, "; ".join(reasons) or f"the summary alone holds {', '.join(expected.words)}"


def judge_model_knew(expected: ExpectModelKnew, evidence: RunEvidence) -> tuple[bool, str]:
    """Return whether the prompt for an answer contains a text, and in which parts."""
    payload = _payload(evidence.bot_turns, expected.to)
    if not payload:
        return False, _PROMPT_UNKNOWN
    holding = [part for part in payload if expected.contains in part.content]
    return bool(holding), ", ".join(describe_part(part) for part in holding) or "no part of its prompt contains it"


def _payload(turns: Sequence[BotTurnReport], step: str) -> tuple[PayloadPart, ...]:
    """Return the prompt for the last answer to a step, or () if it is not known."""
    payloads = [turn.payload for turn in turns if turn.answers == step and turn.payload]
    return payloads[-1] if payloads else ()


def describe_part(part: PayloadPart) -> str:
    """Return a prompt part as a report names it."""
    return f"the {part.kind} part" + (f" of turn {part.seq_from}" if part.seq_from is not None else "")


def silence_wanted(expected: ExpectSilent, step_times: Mapping[str, tuple[float, float]]) -> tuple[float, float] | None:
    """Return from when to when silence is wanted, in the seconds of `step_times`; None if a step was not reached."""
    if expected.since not in step_times or (expected.until and expected.until not in step_times):
        return None
    until = step_times[expected.until][0] if expected.until else float("inf")
    return step_times[expected.since][1] + expected.within_s, until


def judge_silence(
    expected: ExpectSilent, silence: SilenceEvidence | None, turns: Sequence[BotTurnReport]
) -> tuple[bool, str]:
    """Return whether nobody received the bot's voice in that time, and why. `turns`: the replies that the bot reports.

    `silence`: None if a step was not reached.
    """
    if silence is None:
        return False, "the step was not reached"
    since, until = silence.since_s, silence.until_s
    span = f"{since:.1f} s to " + (f"{until:.1f} s" if expected.until else f"the end at {until:.1f} s")
    if until <= since:
        return False, f"there is no time from {span}"
    if not silence.listened:
        return False, f"nobody was there to hear it from {span}"
    # What the bot says of itself alone would hide a voice of which it does not know.
    spoken = [
        turn
        for turn in turns
        if turn.at_s < until and (turn.at_s if turn.fell_silent_s is None else turn.fell_silent_s) > since
    ]
    reasons = [f'at {turn.at_s:.1f} s: "{turn.text}"' for turn in spoken]
    if silence.voice_s is not None:
        reasons.append(f"its voice was received at {silence.voice_s:.1f} s")
    return not reasons, "; ".join(reasons) or f"silent from {span}"
