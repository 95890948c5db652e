"""Measures how soon each utterance becomes text when four people speak at the same time."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from benchmarks.figures import share_of, spread
from benchmarks.reply.measured_room import open_room
from rehearsal.runner.record import SpeechSpan, utterance_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.recordings import SpeechRecording
    from benchmarks.reply.measured_room import BenchmarkRoom
    from benchmarks.report import Json
    from rehearsal.runner.observations import ObservedUtterance

SPEAKERS = 4
# People pause between two utterances, and they do not all start at the same time.
_GAP_S = 1.5
_STAGGER_S = 0.9
# Seconds to wait for the text of the last utterances.
_SETTLE_S = 10.0


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
        await room.record.wait_until(lambda: not without_text(said, room.record.accepted), timeout_s=_SETTLE_S)
        lost = without_text(said, room.record.accepted)
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
        await asyncio.sleep(_GAP_S)


def without_text(said: Sequence[SpeechSpan], heard: Sequence[ObservedUtterance]) -> int:
    """Return of how many recordings no part became text."""
    spans = [utterance_span(one) for one in heard]
    return sum(not any(one.speaker_id == of.speaker_id and of.overlap_s(one) > 0 for one in spans) for of in said)


def _ms(line: Mapping[str, Any], name: str) -> float:
    return float(line.get(name, 0.0))
