"""Measures how long people wait: from the end of a question to the first voiced sound of the answer, as another
participant hears it, and from the end of speech to its text when four people speak at the same time.

The time to an answer is divided into stages. Each stage ends with an event that the bot reports or logs, and the stages
add up to the whole. Work that the bot does ahead of time takes no time here, because nobody waits for it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.figures import share_of, spread
from benchmarks.recordings import HeardWords, SpeechRecording, voice_end_s
from benchmarks.reply.cpu import cpu_by_stage, cpu_since
from benchmarks.reply.measured_room import BenchmarkRoom, open_room
from rehearsal.people.clip import read_sound
from rehearsal.runner.record import SpeechSpan, utterance_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.report import Json
    from bot.events import ReplySpoken, UtteranceTranscribed
    from rehearsal.people.person import ClipPlayback

STAGES = ("endpointing", "recogniser", "decision_and_context", "model", "synthesis", "sending")
# Seconds to wait for an answer. After this time the recording counts as unanswered.
ANSWER_TIMEOUT_S = 8.0
# Seconds between an answer and the next recording.
GAP_S = 0.7
# The bot may record the time of the first frame just after the frame left. A frame travels for at most `_TAIL_S`.
_LEAD_S, _TAIL_S = 0.1, 1.0
# Answers that are not measured, because the recogniser's first call and everybody's first packet take longer.
WARM_UP = 1
# They speak at the same time.
SPEAKERS = 4
# People pause between two utterances, and they do not all start at the same moment.
_PAUSE_S = 1.5
_STAGGER_S = 0.9
# Seconds to wait for the text of the last utterances.
_SETTLE_S = 10.0


@dataclass(frozen=True, slots=True)
class LatencySample:
    """The times of one answer in milliseconds, from the end of the voice in the recording. `stages`: as in `STAGES`."""

    total_ms: float
    to_text_ms: float
    stages: Mapping[str, float]

    def besides_the_server_ms(self, first_token_ms: float) -> float:
        """Return the whole less the part of the model server's delay that somebody waited for.

        The bot asks the model before the end is certain, so a delay that was over by then made nobody wait.
        """
        return self.total_ms - min(first_token_ms, self.stages["model"])


@dataclass(frozen=True, slots=True)
class _Answered:
    said: ClipPlayback
    utterances: Sequence[UtteranceTranscribed]
    reply: ReplySpoken | None


async def measure_latency(
    recordings: Sequence[SpeechRecording],
    *,
    first_token_ms: float,
    progress: Progress,
) -> dict[str, Json]:
    """Speak each recording to the bot and measure the time until its answer is heard."""
    ends_s = {one.path: voice_end_s(await asyncio.to_thread(read_sound, one.path)) for one in set(recordings)}
    progress.step("answers, one recording after the other", total=len(recordings))
    samples: list[LatencySample] = []
    heard = HeardWords()
    spent: list[tuple[Mapping[str, float], float]] = []
    cut = unanswered = 0
    async with open_room(people=0, first_token_s=first_token_ms / 1000) as room:
        for recording in (*[recordings[0]] * WARM_UP, *recordings):
            # Each is of another person for the bot. What it learns of how one pauses must not make the next one wait.
            async with room.stranger():
                worked, begun = cpu_by_stage(), time.monotonic()
                answered = await _until_answered(room, recording)
                spent.append((cpu_since(worked), time.monotonic() - begun))
            if len(spent) <= WARM_UP:
                continue
            heard.add(recording.text, " ".join(one.text for one in answered.utterances))
            cut += len(answered.utterances) > 1
            sample = _sample(room, answered, end_s=ends_s[recording.path])
            if sample is None:
                unanswered += 1
            else:
                samples.append(sample)
            progress.advance()
        troubles = room.troubles
    of_all = spent[WARM_UP:]
    cpu_s = {stage: round(sum(cpu[stage] for cpu, _ in of_all) / len(of_all), 3) for stage in of_all[0][0]}
    return {
        "recordings": len(recordings),
        "unanswered": unanswered,
        "heard": heard.figures(),
        "answered_before_the_end": share_of(cut, len(recordings)),
        # The whole process: the bot, the local Discord with its people, and the model's server.
        "cpu_s_an_answer": round(sum(cpu_s.values()), 3),
        "cpu_s_an_answer_by_stage": {**cpu_s},
        "wall_s_an_answer": round(sum(wall_s for _, wall_s in of_all) / len(of_all), 3),
        "model_server_first_token_ms": first_token_ms,
        "total_ms": spread([each.total_ms for each in samples]),
        "to_text_ms": spread([each.to_text_ms for each in samples]),
        "stages_ms": {stage: spread([each.stages[stage] for each in samples]) for stage in STAGES},
        "besides_the_model_server_ms": spread([each.besides_the_server_ms(first_token_ms) for each in samples]),
        # Where the milliseconds of each answer went, in the order of the recordings.
        "trace_ms": [
            {"total": round(each.total_ms), **{stage: round(each.stages[stage]) for stage in STAGES}}
            for each in samples
        ],
        "warned_of": [*troubles],
    }


async def _until_answered(room: BenchmarkRoom, recording: SpeechRecording) -> _Answered:
    """Speak a recording and wait until the bot has answered it."""
    before = len(room.record.utterances)
    said = await room.say(recording.path)

    def own() -> list[UtteranceTranscribed]:
        return room.record.utterances[before:]

    def reply() -> ReplySpoken | None:
        ids = {one.utterance_id for one in own()}
        late = [one for one in room.record.replies if one.first_audio_at > said.speech_ended_at]
        return next((one for one in late if one.utterance_id in ids), None)

    await room.record.wait_until(lambda: reply() is not None, timeout_s=ANSWER_TIMEOUT_S)
    await asyncio.sleep(GAP_S)
    return _Answered(said, own(), reply())


def _sample(room: BenchmarkRoom, answered: _Answered, *, end_s: float) -> LatencySample | None:
    """Return the stages of one answer, or None without an answer. `end_s`: where the voice ends in the recording."""
    reply, end = answered.reply, answered.said.started_at + end_s
    if reply is None:
        return None
    heard = next(one for one in answered.utterances if one.utterance_id == reply.utterance_id)
    received = room.heard.voiced_at(since=reply.first_audio_at - _LEAD_S, until=reply.ended_at + _TAIL_S)
    transcribed = next(
        (
            line
            for line in room.lines
            if line.get("event") == "utterance_transcribed" and line.get("utterance_id") == heard.utterance_id
        ),
        None,
    )
    context = next((one for one in room.record.prompts if one.answer_to == reply.answer_to), None)
    if received is None or transcribed is None or context is None:
        return None
    synthesis_s = (reply.synthesis_first_audio_ms or 0.0) / 1000
    moments = (
        heard.ended_at + float(transcribed["endpoint_ms"]) / 1000,
        heard.text_at,
        context.at,
        reply.first_audio_at - synthesis_s,
        reply.first_audio_at,
        received[0],
    )
    return LatencySample(
        total_ms=(received[0] - end) * 1000,
        to_text_ms=(heard.text_at - end) * 1000,
        stages=stages_between(end, moments),
    )


def stages_between(begun: float, moments: Sequence[float]) -> dict[str, float]:
    """Return the milliseconds of each stage. A stage that ended before the previous one takes 0 ms."""
    stages: dict[str, float] = {}
    reached = begun
    for stage, moment in zip(STAGES, moments, strict=True):
        stages[stage] = max(0.0, moment - reached) * 1000
        reached = max(reached, moment)
    return stages


async def measure_speakers(recordings: Sequence[SpeechRecording], *, progress: Progress) -> dict[str, Json]:
    """Let four people speak the recordings in equal shares, and read the times from the bot's own log lines."""
    progress.step("four people at the same time", total=len(recordings))
    said: list[SpeechSpan] = []
    async with open_room(people=SPEAKERS) as room:
        begun, worked = time.monotonic(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for person in range(SPEAKERS):
                share = recordings[person::SPEAKERS]
                group.create_task(_talk(room, person, share, said, progress), name=f"speaker-{person}")
        cpu_share = (time.process_time() - worked) / (time.monotonic() - begun)
        await room.record.wait_until(lambda: not without_text(said, room.record.utterances), timeout_s=_SETTLE_S)
        lost = without_text(said, room.record.utterances)
        lines = [line for line in room.lines if line.get("event") == "utterance_transcribed"]
        dropped = [str(line.get("reason")) for line in room.lines if line.get("event") == "utterance_dropped"]
        troubles = room.troubles
    return {
        "recordings": len(recordings),
        "utterances": len(lines),
        # They are in none of the times below.
        "without_text": lost,
        "dropped": {reason: dropped.count(reason) for reason in sorted(set(dropped))},
        # From the detected end of speech to its text: the time in the recogniser and its queue.
        "final_text_ms": spread([_ms(line, "queue_ms") + _ms(line, "recognise_ms") for line in lines]),
        "end_of_speech_to_text_ms": spread([_ms(line, "end_to_text_ms") for line in lines]),
        "in_the_model_ms": spread([_ms(line, "compute_ms") for line in lines]),
        "recognised_ahead": share_of(sum(bool(line.get("early")) for line in lines), len(lines)),
        # The share of one core that the whole process uses: the bot, the local Discord and the people.
        "cpu_share": round(cpu_share, 3),
        "warned_of": [*troubles],
    }


async def _talk(
    room: BenchmarkRoom, person: int, share: Sequence[SpeechRecording], said: list[SpeechSpan], progress: Progress
) -> None:
    await asyncio.sleep(_STAGGER_S * person)
    for recording in share:
        spoken = await room.say(recording.path, person=person)
        who = room.people[person].user_id
        said.append(SpeechSpan(who, recording.text, spoken.speech_started_at, spoken.speech_ended_at))
        progress.advance()
        await asyncio.sleep(_PAUSE_S)


def without_text(said: Sequence[SpeechSpan], heard: Sequence[UtteranceTranscribed]) -> int:
    """Return of how many recordings no part became text."""
    spans = [utterance_span(one) for one in heard]
    return sum(not any(one.speaker_id == of.speaker_id and of.overlap_s(one) > 0 for one in spans) for of in said)


def _ms(line: Mapping[str, Any], name: str) -> float:
    return float(line.get(name, 0.0))
