"""A whole room in real time: the bot in the local Discord, with people who speak recordings all the time."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from benchmarks.reply.recordings import load_recordings
from benchmarks.reply.room import open_room
from tests.endurance.samples import take_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.reply.room import BenchmarkRoom
    from tests.endurance.samples import Sample

PEOPLE = 3
# People pause between two utterances, and they do not all start at the same time.
_GAP_S, _STAGGER_S = 2.0, 1.3
SAMPLES = 120
LEAST_SAMPLE_S = 5.0


async def live_in_real_time(seconds: float, on_sample: Callable[[Sample], None] = lambda sample: None) -> list[Sample]:
    """Let people talk for so long, and return the samples. The local Discord and the people are in this process too.

    Raises AssertionError if nothing was heard or answered in the whole time.
    """
    recordings = load_recordings(None).recordings
    samples: list[Sample] = []
    every_s = max(LEAST_SAMPLE_S, seconds / SAMPLES)
    heard = answered = tokens = 0
    async with open_room(people=PEOPLE, settings={}) as room:
        begun = time.monotonic()
        talkers = [
            asyncio.create_task(_talk(room, person, recordings[person::PEOPLE]), name=f"speaker-{person}")
            for person in range(PEOPLE)
        ]
        try:
            while (lasted_s := time.monotonic() - begun) < seconds:
                await asyncio.sleep(min(every_s, seconds - lasted_s))
                for talker in talkers:
                    if talker.done():
                        talker.result()
                record = room.record
                heard, answered = heard + len(record.utterances), answered + len(record.replies)
                if record.prompts:
                    tokens = sum(part.tokens for part in record.prompts[-1].parts)
                _forget(room)
                samples.append(take_sample(time.monotonic() - begun, tokens))
                on_sample(samples[-1])
        finally:
            for talker in talkers:
                talker.cancel()
            await asyncio.wait(talkers)
    assert heard, "nobody was heard; the first words take some seconds"
    assert answered, "nobody was answered; people are, about once a minute"
    return samples


def _forget(room: BenchmarkRoom) -> None:
    """Empty the records of the test, the people and the model's server: the bot's memory is to be measured."""
    record, calls = room.record, room.model.calls
    for each in (
        record.utterances,
        record.turns,
        record.replies,
        record.prompts,
        record.compactions,
        room.lines,
        calls,
    ):
        each.clear()
    for person in (*room.people, room.listener):
        person.forget_heard()


async def _talk(room: BenchmarkRoom, person: int, share: Sequence[SpeechRecording]) -> None:
    await asyncio.sleep(_STAGGER_S * person)
    for recording in itertools.cycle(share):
        await room.say(recording.path, person=person)
        await asyncio.sleep(_GAP_S)
