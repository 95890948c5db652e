"""Turn the record of a run into its report: match, count, recognise what others heard, judge."""

from __future__ import annotations

import asyncio
import os
import platform
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from rehearsal.judge.evidence import Evidence
from rehearsal.judge.expectations import judge
from rehearsal.judge.matching import Matching, Span, match, mistaken_for
from rehearsal.judge.participation import judge_answers
from rehearsal.judge.wer import WordErrors, total, word_errors
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ, read_sound
from rehearsal.people.voiced import voiced_frames
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyReport,
    Report,
    StrayReport,
    UtteranceReport,
    spread,
)
from rehearsal.runner.observation import Problem
from rehearsal.script.expectations import Interrupted
from rehearsal.script.scenario import Say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rehearsal.runner.backstage import ServersSeen
    from rehearsal.runner.observation import ContextPart, Recogniser, ReplySpoken, UtteranceHeard
    from rehearsal.runner.record import Record, Spoken
    from rehearsal.runner.venue import Venue
    from rehearsal.script.scenario import Scenario

# Frames are on the way this long, at most, after the bot let the last one go.
TAIL_S = 1.0
# The bot's mark for the first frame may be set just after the frame left.
LEAD_S = 0.1
RECOGNISE_TIMEOUT_S = 120.0
# The speaker id of the bot's own turns.
BOT_ID = "assistant"
# So much voiced sound over somebody else's is an interruption.
QUALIFYING_S = 0.7


async def tally(
    scenario: Scenario,
    record: Record,
    venue: Venue,
    recogniser: Recogniser,
    *,
    servers: ServersSeen,
    ended_by: str,
    duration_s: float,
) -> Report:
    """Return the report of a run that is over. Never raises for what the run lacks; it says so instead."""
    speeches, taken = record.speeches, record.taken
    matching = match([one.span for one in speeches], [span_of(one) for one in taken])
    qualified = {one.number: await _qualified_s(scenario, record, one) for one in speeches}
    utterances = tuple(_utterance(record, matching, index, qualified) for index in range(len(speeches)))
    strays = tuple(_stray(scenario, record, taken[index]) for index in matching.strays)
    bot_turns = tuple([await _bot_turn(scenario, record, venue, recogniser, matching, one) for one in record.replies])
    compactions = _compactions(record)
    latency = LatencyReport(
        end_to_text_ms=spread(one.end_to_text_ms for one in utterances),
        end_to_first_audio_ms=spread(one.end_to_first_audio_ms for one in bot_turns),
        model_first_token_ms=spread(one.model_first_token_ms for one in bot_turns),
    )
    errors = overall(speeches, taken)
    wer = round(errors.rate, 4) if errors.words else None
    evidence = Evidence(
        utterances=utterances,
        strays=strays,
        bot_turns=bot_turns,
        compactions=compactions,
        latency=latency,
        wer=wer,
        packets=record.packets,
        messages=venue.messages,
        problems=tuple(record.problems),
        turns=tuple(record.turns),
        heard=taken,
        stored_turns=len(scenario.history),
        marks={name: (begun - record.live_at, over - record.live_at) for name, (begun, over) in record.marks.items()},
        speaker_ids={**{one.key: str(one.id) for one in scenario.people}, scenario.bot.name: BOT_ID},
        servers=servers,
    )
    expectations = (
        ExpectationResult("reached_the_end", not ended_by, ended_by or f"in {duration_s:.0f} s"),
        *(ExpectationResult("wait", passed=False, detail=text) for text in record.failed_waits),
        *judge_answers(evidence),
        *(judge(wanted, evidence) for wanted in scenario.expect),
    )
    return Report(
        passed=all(result.passed for result in expectations),
        scenario=scenario.title,
        started=(datetime.now(UTC) - timedelta(seconds=duration_s)).isoformat(timespec="seconds"),
        duration_s=round(duration_s, 1),
        expectations=expectations,
        wer=wer,
        utterances=utterances,
        packets=record.packets,
        compactions=compactions,
        summary=record.compactions[-1].summary if record.compactions else "",
        bot_turns=bot_turns,
        latency=latency,
        ended_by=ended_by,
        strays=strays,
        dropped=dict(Counter(one.dropped_reason for one in record.heard if one.dropped_reason)),
        messages=venue.messages,
        problems=tuple(f"{one.level}: {one.event}: {one.detail}" for one in record.problems),
        machine=machine(),
        servers=servers,
    )


def _compactions(record: Record) -> tuple[CompactionReport, ...]:
    return tuple(
        CompactionReport(
            old_cursor=one.old_cursor,
            new_cursor=one.new_cursor,
            covered_through_turn=one.covered_through_turn,
            summary_chars=one.summary_chars,
            latency_ms=round(one.latency_ms, 1),
            degraded=one.degraded,
        )
        for one in record.compactions
    )


def machine() -> dict[str, str]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
    }


def span_of(utterance: UtteranceHeard) -> Span:
    """Return an utterance as matching wants it."""
    return Span(utterance.speaker_id, utterance.text, utterance.started_at, utterance.ended_at)


def overall(speeches: Sequence[Spoken], heard: Sequence[UtteranceHeard]) -> WordErrors:
    """Return the word errors of a run: all words of each speaker joined in time order, summed over speakers."""
    parts = []
    for speaker in {one.speaker_id for one in speeches}:
        said = [one.reference for one in speeches if one.speaker_id == speaker]
        own = sorted((one for one in heard if one.speaker_id == speaker), key=lambda one: one.started_at)
        parts.append(word_errors(" ".join(said), " ".join(one.text for one in own)))
    return total(parts)


async def _qualified_s(scenario: Scenario, record: Record, spoken: Spoken) -> float | None:
    """Return when `spoken` counted as speech over somebody else's, if a promise asks for it; since the live start."""
    asked = {wanted.by for wanted in scenario.expect if isinstance(wanted, Interrupted)} - {""}
    if spoken.step_id not in asked:
        return None
    step = scenario.steps[spoken.number]
    assert isinstance(step, Say), "what was spoken is a spoken step"
    after_s = await asyncio.to_thread(_voiced_after_s, step.audio, QUALIFYING_S)
    return None if after_s is None else round(spoken.voice_started_at - record.live_at + after_s, 3)


def _voiced_after_s(recording: Path, seconds: float) -> float | None:
    """Return how long after its first voiced frame `seconds` of a recording have been voiced. Blocking."""
    voiced = np.flatnonzero(voiced_frames(read_sound(recording), FRAME_SAMPLES))
    wanted = round(seconds * RATE_HZ / FRAME_SAMPLES)
    return float(voiced[wanted - 1] + 1 - voiced[0]) * FRAME_SAMPLES / RATE_HZ if len(voiced) >= wanted else None


def _utterance(
    record: Record, matching: Matching, index: int, qualified: Mapping[int, float | None]
) -> UtteranceReport:
    spoken, found = record.speeches[index], matching.matches[index]
    pieces = [record.taken[piece] for piece in found.pieces]
    text_at = max((piece.text_at for piece in pieces), default=None)
    return UtteranceReport(
        speaker=spoken.speaker,
        reference=spoken.reference,
        transcript=found.transcript,
        wer=round(word_errors(spoken.reference, found.transcript).rate, 4),
        end_to_text_ms=None if text_at is None else round((text_at - spoken.voice_ended_at) * 1000, 1),
        step=_step_name(spoken),
        started_s=round(spoken.voice_started_at - record.live_at, 2),
        heard_as=tuple(piece.utterance_id for piece in pieces),
        twice=found.twice,
        qualified_s=qualified[spoken.number],
        wants_answer=spoken.wants_answer,
    )


def _step_name(spoken: Spoken) -> str:
    return spoken.step_id or f"step {spoken.number + 1}"


def _stray(scenario: Scenario, record: Record, heard: UtteranceHeard) -> StrayReport:
    really = mistaken_for(span_of(heard), [one.span for one in record.speeches])
    return StrayReport(
        speaker=_name(scenario, heard.speaker_id),
        transcript=heard.text,
        really="" if really is None else record.speeches[really].speaker,
    )


async def _bot_turn(
    scenario: Scenario, record: Record, venue: Venue, recogniser: Recogniser, matching: Matching, reply: ReplySpoken
) -> BotTurnReport:
    asked = question(record, matching, reply)
    later = [one.first_audio_at for one in record.replies if one.first_audio_at > reply.first_audio_at]
    earlier = [one.ended_at for one in record.replies if one.ended_at <= reply.first_audio_at]
    since = max([reply.first_audio_at - LEAD_S, *earlier])
    until = min([reply.ended_at + TAIL_S, *later])
    listener = _listener(record, reply, asked)
    voiced = venue.voiced(listener, since, until) if listener is not None else None
    heard = await _recognised(record, venue, recogniser, listener, since, until) if voiced and listener else ""
    to_audio = (voiced[0] - asked.voice_ended_at) * 1000 if voiced and asked else None
    return BotTurnReport(
        text=reply.text,
        heard_by_others=heard,
        heard_by=_name(scenario, listener) if listener is not None else "",
        answers=_step_name(asked) if asked else "",
        interrupted=reply.interrupted,
        end_to_first_audio_ms=None if to_audio is None else round(to_audio, 1),
        model_first_token_ms=reply.model_first_token_ms,
        at_s=round(reply.first_audio_at - record.live_at, 2),
        payload=_payload(record, reply),
        fell_silent_s=round(voiced[1] - record.live_at, 3) if voiced else None,
        in_turn=_in_turn(record, matching, reply),
        unasked=reply.unasked,
    )


def question(record: Record, matching: Matching, reply: ReplySpoken) -> Spoken | None:
    """Return what the reply answers: by the utterance it names, else the last thing said before it; None if nothing."""
    if reply.unasked:
        return None
    if reply.utterance_id is not None:
        asked = [
            spoken
            for spoken, found in zip(record.speeches, matching.matches, strict=True)
            if any(record.taken[piece].utterance_id == reply.utterance_id for piece in found.pieces)
        ]
        # Two things said in one breath: the question is the later one.
        if asked:
            return asked[-1]
    before = [one for one in record.speeches if one.voice_ended_at <= reply.first_audio_at]
    return max(before, key=lambda one: one.voice_ended_at, default=None)


def _in_turn(record: Record, matching: Matching, reply: ReplySpoken) -> tuple[str, ...]:
    """Return every step whose words stand in the turn that the reply answers: said before it, by who is in the turn."""
    if reply.unasked:
        return ()
    said = {turn.speaker_id: turn.text for turn in record.turns if turn.seq == reply.answer_to}
    found = []
    for spoken, heard in zip(record.speeches, matching.matches, strict=True):
        words = said.get(str(spoken.speaker_id), "")
        pieces = [record.taken[piece] for piece in heard.pieces]
        if any(piece.text in words and piece.text_at <= reply.first_audio_at for piece in pieces):
            found.append(_step_name(spoken))
    return tuple(found)


def _listener(record: Record, reply: ReplySpoken, asked: Spoken | None) -> int | None:
    """Return somebody who was there and did not ask; the one who asked, if there was nobody else."""
    present = record.present(reply.first_audio_at, reply.ended_at)
    others = [user_id for user_id in present if asked is None or user_id != asked.speaker_id]
    return next(iter([*others, *present]), None)


async def _recognised(
    record: Record, venue: Venue, recogniser: Recogniser, listener: int, since: float, until: float
) -> str:
    try:
        async with asyncio.timeout(RECOGNISE_TIMEOUT_S):
            return await recogniser.transcribe(venue.heard(listener, since, until))
    # The ear belongs to whoever composed the run; a report without one answer is better than none.
    except Exception as exc:  # noqa: BLE001
        record.problems.append(Problem("others_not_recognised", f"{type(exc).__name__}: {exc}"))
        return ""


def _payload(record: Record, reply: ReplySpoken) -> tuple[ContextPart, ...]:
    if reply.answer_to is not None:
        built = [one for one in record.contexts if one.answer_to == reply.answer_to]
    else:
        built = [one for one in record.contexts if one.at <= reply.first_audio_at]
    return built[-1].parts if built else ()


def _name(scenario: Scenario, user_id: int) -> str:
    return next((person.name for person in scenario.people if person.id == user_id), str(user_id))
