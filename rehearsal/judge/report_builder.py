"""Builds the report of a run.

It matches what the bot heard to what was said, counts word errors, recognises what other participants heard of the bot,
and judges the expectations.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bot.events import ReplySpoken, UtteranceTranscribed
from compaction.payload import PayloadPart
from rehearsal.judge.expectations import judge_expectation
from rehearsal.judge.matching import UtteranceMatching, line_of_other_speaker, match_utterances
from rehearsal.judge.replies import RunEvidence, SilenceEvidence, judge_answers, silence_wanted
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, read_sound, voiced_frames
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyReport,
    RehearsalReport,
    UnmatchedUtteranceReport,
    UtteranceReport,
    latency_percentiles,
)
from rehearsal.runner.local_servers import ServerObservations
from rehearsal.runner.ports import HeardSoundRecogniser, ReceivedOfBot
from rehearsal.runner.record import LoggedProblem, RunRecord, SpokenLine, utterance_span
from rehearsal.script.expectations import ExpectInterrupted, ExpectSilent
from rehearsal.script.scenario import SayStep, Scenario
from rehearsal.words import WordErrors, sum_word_errors, word_errors

# The longest time between the bot sending its last frame and a participant receiving that frame.
TAIL_S = 1.0
# The bot may record the time of its first frame just after the frame was sent, by at most this much.
LEAD_S = 0.1
RECOGNISE_TIMEOUT_S = 120.0
# The speaker id of the bot's own turns.
BOT_ID = "assistant"
# A person who speaks over somebody else interrupts them after this much voiced sound.
QUALIFYING_S = 0.7


async def build_report(
    scenario: Scenario,
    record: RunRecord,
    environment: ReceivedOfBot,
    recogniser: HeardSoundRecogniser,
    *,
    servers: ServerObservations,
    clock_s: float | None = None,
) -> RehearsalReport:
    """Return the report of a run that is over. `clock_s`: how long it lasted on a virtual clock.

    Never raises when the run lacks something: the report says what is missing.
    """
    evidence = await _evidence(scenario, record, environment, recogniser, servers=servers)
    expectations = (
        ExpectationResult("reached_the_end", not record.ended_by, record.ended_by or f"in {record.duration_s:.0f} s"),
        *(ExpectationResult("wait", passed=False, detail=text) for text in record.failed_waits),
        *judge_answers(evidence),
        *(judge_expectation(expected, evidence) for expected in scenario.expect),
    )
    return RehearsalReport(
        passed=all(result.passed for result in expectations),
        scenario=scenario.title,
        started=(datetime.now(UTC) - timedelta(seconds=record.duration_s)).isoformat(timespec="seconds"),
        duration_s=round(record.duration_s, 1),
        expectations=expectations,
        wer=evidence.wer,
        utterances=evidence.utterances,
        packets=record.packets,
        compactions=evidence.compactions,
        summary=record.compactions[-1].summary if record.compactions else "",
        bot_turns=evidence.bot_turns,
        latency=evidence.latency,
        ended_by=record.ended_by,
        strays=evidence.strays,
        dropped=dict(Counter(one.reason for one in record.dropped)),
        messages=evidence.messages,
        problems=tuple(f"{one.level}: {one.event}: {one.detail}" for one in record.problems),
        machine=machine_facts(),
        servers=servers,
        clock_s=None if clock_s is None else round(clock_s, 1),
    )


async def _evidence(
    scenario: Scenario,
    record: RunRecord,
    environment: ReceivedOfBot,
    recogniser: HeardSoundRecogniser,
    *,
    servers: ServerObservations,
) -> RunEvidence:
    """Return what the expectations are judged by."""
    lines, heard = record.lines, record.utterances
    matching = match_utterances([one.span for one in lines], [utterance_span(one) for one in heard])
    qualified = {one.number: await _qualified_s(scenario, record, one) for one in lines}
    utterances = tuple(_utterance(record, matching, index, qualified) for index in range(len(lines)))
    bot_turns = tuple(
        [await _bot_turn(scenario, record, environment, recogniser, matching, one) for one in record.replies]
    )
    errors = overall_word_errors(lines, heard)
    return RunEvidence(
        utterances=utterances,
        strays=tuple(_stray(scenario, record, heard[index]) for index in matching.strays),
        bot_turns=bot_turns,
        compactions=_compactions(record),
        latency=LatencyReport(
            end_to_text_ms=latency_percentiles(one.end_to_text_ms for one in utterances),
            end_to_first_audio_ms=latency_percentiles(one.end_to_first_audio_ms for one in bot_turns),
            model_first_token_ms=latency_percentiles(one.model_first_token_ms for one in bot_turns),
        ),
        wer=round(errors.rate, 4) if errors.words else None,
        packets=record.packets,
        messages=environment.messages,
        problems=tuple(record.problems),
        turns=tuple(record.turns),
        heard=tuple(heard),
        replies=tuple(record.replies),
        prompts=tuple(record.prompts),
        failed_compactions=tuple(one.reason for one in record.failed_compactions),
        stored_turns=len(scenario.history),
        step_times={
            name: (begun - record.live_at, over - record.live_at) for name, (begun, over) in record.step_times.items()
        },
        speaker_ids={**{one.key: str(one.id) for one in scenario.people}, scenario.bot.name: BOT_ID},
        servers=servers,
        silences=_silences(scenario, record, environment),
    )


def _silences(scenario: Scenario, record: RunRecord, environment: ReceivedOfBot) -> dict[ExpectSilent, SilenceEvidence]:
    """Return what people received of the bot in each time in which the scenario expects silence."""
    found: dict[ExpectSilent, SilenceEvidence] = {}
    for expected in scenario.expect:
        if not isinstance(expected, ExpectSilent):
            continue
        span = silence_wanted(expected, record.step_times)
        if span is None:
            continue
        # After the end of the run nobody listens, so a time that begins later is no silence.
        since, until = span[0], min(span[1], record.ended_at)
        received = [environment.voiced(person.id, since, until) for person in scenario.people]
        voice = min((times[0] for times in received if times is not None), default=None)
        found[expected] = SilenceEvidence(
            since - record.live_at,
            until - record.live_at,
            listened=bool(record.present(since, until)),
            voice_s=None if voice is None else voice - record.live_at,
        )
    return found


def _compactions(record: RunRecord) -> tuple[CompactionReport, ...]:
    return tuple(
        CompactionReport(
            old_cursor=one.old_cursor,
            new_cursor=one.new_cursor,
            covered_through_turn=one.covered_through_turn,
            summary_chars=len(one.summary),
            latency_ms=round(one.latency_ms, 1),
        )
        for one in record.compactions
    )


def machine_facts() -> dict[str, str]:
    """Return what the machine is. `load`: how many threads of it wanted a core in the last minute, if that is known."""
    facts = {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": str(os.cpu_count() or 1),
    }
    return {**facts, "load": f"{os.getloadavg()[0]:.1f}"} if hasattr(os, "getloadavg") else facts


def overall_word_errors(lines: Sequence[SpokenLine], heard: Sequence[UtteranceTranscribed]) -> WordErrors:
    """Return the word errors of a run.

    The words of each speaker are joined in time order, and the errors of all speakers are added up.
    """
    parts = []
    for speaker in {one.speaker_id for one in lines}:
        said = [one.reference for one in lines if one.speaker_id == speaker]
        own = sorted((one for one in heard if one.speaker_id == speaker), key=lambda one: one.started_at)
        parts.append(word_errors(" ".join(said), " ".join(one.text for one in own)))
    return sum_word_errors(parts)


async def _qualified_s(scenario: Scenario, record: RunRecord, line: SpokenLine) -> float | None:
    """Return when `line` had lasted long enough to interrupt, in seconds since the live start.

    Return None if no expectation needs this time, or if the line is too short.
    """
    needed = {expected.by for expected in scenario.expect if isinstance(expected, ExpectInterrupted)} - {""}
    if line.step_id not in needed:
        return None
    step = scenario.steps[line.number]
    assert isinstance(step, SayStep), "a line is a spoken step"
    if step.audio is None:
        after_s: float | None = QUALIFYING_S if line.voice_ended_at - line.voice_started_at >= QUALIFYING_S else None
    else:
        after_s = await asyncio.to_thread(_voiced_after_s, step.audio, QUALIFYING_S)
    return None if after_s is None else round(line.voice_started_at - record.live_at + after_s, 3)


def _voiced_after_s(recording: Path, seconds: float) -> float | None:
    """Return how long after its first voiced frame a recording has had `seconds` of voiced sound. Blocking."""
    voiced = np.flatnonzero(voiced_frames(read_sound(recording), FRAME_SAMPLES))
    frames = round(seconds * RATE_HZ / FRAME_SAMPLES)
    return float(voiced[frames - 1] + 1 - voiced[0]) * FRAME_SAMPLES / RATE_HZ if len(voiced) >= frames else None


def _utterance(
    record: RunRecord, matching: UtteranceMatching, index: int, qualified: Mapping[int, float | None]
) -> UtteranceReport:
    line, found = record.lines[index], matching.matches[index]
    pieces = [record.utterances[piece] for piece in found.pieces]
    text_at = max((piece.text_at for piece in pieces), default=None)
    return UtteranceReport(
        speaker=line.speaker,
        reference=line.reference,
        transcript=found.transcript,
        wer=round(word_errors(line.reference, found.transcript).rate, 4),
        end_to_text_ms=None if text_at is None else round((text_at - line.voice_ended_at) * 1000, 1),
        step=_step_name(line),
        started_s=round(line.voice_started_at - record.live_at, 2),
        heard_as=tuple(piece.utterance_id for piece in pieces),
        twice=found.twice,
        qualified_s=qualified[line.number],
        wants_answer=line.wants_answer,
    )


def _step_name(line: SpokenLine) -> str:
    return line.step_id or f"step {line.number + 1}"


def _stray(scenario: Scenario, record: RunRecord, heard: UtteranceTranscribed) -> UnmatchedUtteranceReport:
    really = line_of_other_speaker(utterance_span(heard), [one.span for one in record.lines])
    return UnmatchedUtteranceReport(
        speaker=scenario.name_of(heard.speaker_id),
        transcript=heard.text,
        really="" if really is None else record.lines[really].speaker,
    )


async def _bot_turn(
    scenario: Scenario,
    record: RunRecord,
    environment: ReceivedOfBot,
    recogniser: HeardSoundRecogniser,
    matching: UtteranceMatching,
    reply: ReplySpoken,
) -> BotTurnReport:
    question = answered_line(record, matching, reply)
    later = [one.first_audio_at for one in record.replies if one.first_audio_at > reply.first_audio_at]
    earlier = [one.ended_at for one in record.replies if one.ended_at <= reply.first_audio_at]
    since = max([reply.first_audio_at - LEAD_S, *earlier])
    until = min([reply.ended_at + TAIL_S, *later])
    listener = _listener(record, reply, question)
    voiced = environment.voiced(listener, since, until) if listener is not None else None
    heard = await _recognised(record, environment, recogniser, listener, since, until) if voiced and listener else ""
    to_audio = (voiced[0] - question.voice_ended_at) * 1000 if voiced and question else None
    return BotTurnReport(
        text=reply.text,
        heard_by_others=heard,
        heard_by=scenario.name_of(listener) if listener is not None else "",
        answers=_step_name(question) if question else "",
        interrupted=reply.interrupted,
        end_to_first_audio_ms=None if to_audio is None else round(to_audio, 1),
        model_first_token_ms=reply.model_first_token_ms,
        at_s=round(reply.first_audio_at - record.live_at, 2),
        payload=_payload(record, reply),
        fell_silent_s=round(voiced[1] - record.live_at, 3) if voiced else None,
        in_turn=_in_turn(record, matching, reply),
        unasked=reply.utterance_id is None,
    )


def answered_line(record: RunRecord, matching: UtteranceMatching, reply: ReplySpoken) -> SpokenLine | None:
    """Return the line that the reply answers, or None.

    The line is found by the reply's utterance. If that is of no line, it is the last line that ended before the reply.
    """
    if reply.utterance_id is None:
        return None
    lines = [
        line
        for line, found in zip(record.lines, matching.matches, strict=True)
        if any(record.utterances[piece].utterance_id == reply.utterance_id for piece in found.pieces)
    ]
    # If one utterance contains two lines, the later line is the question.
    if lines:
        return lines[-1]
    before = [one for one in record.lines if one.voice_ended_at <= reply.first_audio_at]
    return max(before, key=lambda one: one.voice_ended_at, default=None)


def _in_turn(record: RunRecord, matching: UtteranceMatching, reply: ReplySpoken) -> tuple[str, ...]:
    """Return the steps whose words are part of the turn that the reply answers.

    Only steps by the people of that turn count, and only if their text was ready before the reply began. Of lines with
    the same text, the last one is meant.
    """
    if reply.utterance_id is None:
        return ()
    answered = next((turn.parts for turn in record.turns if turn.seq == reply.answer_to), ())
    said = {part.speaker_id: part.text for part in answered}
    found = []
    for line, heard in reversed([*zip(record.lines, matching.matches, strict=True)]):
        words = said.get(str(line.speaker_id), "")
        pieces = [record.utterances[piece] for piece in heard.pieces]
        known = [one.text for one in pieces if one.text in words and one.text_at <= reply.first_audio_at]
        if known:
            said[str(line.speaker_id)] = words.replace(known[0], "", 1)
            found.append(_step_name(line))
    return tuple(reversed(found))


def _listener(record: RunRecord, reply: ReplySpoken, question: SpokenLine | None) -> int | None:
    """Return somebody who was present and did not ask the question. If only the asker was present, return the asker."""
    present = record.present(reply.first_audio_at, reply.ended_at)
    others = [user_id for user_id in present if question is None or user_id != question.speaker_id]
    return next(iter([*others, *present]), None)


async def _recognised(
    record: RunRecord,
    environment: ReceivedOfBot,
    recogniser: HeardSoundRecogniser,
    listener: int,
    since: float,
    until: float,
) -> str:
    try:
        async with asyncio.timeout(RECOGNISE_TIMEOUT_S):
            return await recogniser.transcribe(environment.heard(listener, since, until))
    # The recogniser is code from outside. A report without one recognised reply is better than no report.
    except Exception as exc:  # noqa: BLE001
        record.problems.append(LoggedProblem("others_not_recognised", f"{type(exc).__name__}: {exc}"))
        return ""


def _payload(record: RunRecord, reply: ReplySpoken) -> tuple[PayloadPart, ...]:
    built = [one.parts for one in record.prompts if one.answer_to == reply.answer_to]
    return built[-1] if built else ()
