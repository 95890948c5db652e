"""Hours of a whole room on a clock that jumps: hearing, deciding, answering, folding, storing.

It is the written evening of three hours (`roomtone rehearse three-hours`), said again and again in one session.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.cli.rehearsal.written.player import open_player
from bot.cli.rehearsal.written.services import EVENING_SETTINGS
from config.load import load
from rehearsal.script.written_evening import PresenceEvent, SpeechEvent, bundled_evenings, read_evening
from tests.endurance.pool_threads import start_all_threads
from tests.endurance.samples import take_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rehearsal.runner.evening_record import EveningRecord
    from rehearsal.script.written_evening import EveningEvent, WrittenEvening
    from tests.endurance.samples import Sample

SAMPLE_EVERY_S = 300.0


async def live_virtually(hours: float, on_sample: Callable[[Sample], None] = lambda sample: None) -> list[Sample]:
    """Play so many hours, and return the samples. Raises AssertionError if anything expected did not happen or was
    logged as a problem.
    """
    written = read_evening(bundled_evenings()["three-hours"])
    samples: list[Sample] = []
    tokens, next_s = 0, SAMPLE_EVERY_S
    await start_all_threads()
    async with open_player(replace(written, title="Hours"), load(overrides=EVENING_SETTINGS)) as player:
        await player.begin()
        record = player.record
        for number, event in enumerate(_again_and_again(written)):
            await player.perform(number, event)
            if record.prompts:
                tokens = sum(part.tokens for part in record.prompts[-1].parts)
            if player.lasted_s >= next_s:
                next_s = player.lasted_s + SAMPLE_EVERY_S
                assert record.failed_waits == []
                assert [f"{each.event}: {each.detail}" for each in record.problems] == []
                _forget(record)
                samples.append(take_sample(player.lasted_s, tokens))
                on_sample(samples[-1])
            if player.lasted_s >= hours * 3600:
                break
        await player.leave()
    return samples


def _forget(record: EveningRecord) -> None:
    """Empty the player's own record of everything but the last turn: only the room's memory is to be measured."""
    for each in (record.speeches, record.utterances, record.replies, record.prompts, record.compactions):
        each.clear()
    del record.turns[:-1]


def _again_and_again(written: WrittenEvening) -> Iterator[EveningEvent]:
    """Yield the evening's events for ever. Whoever speaks is there: in a repetition they come again if they left."""
    here = set(written.initial_people)
    while True:
        for event in written.events:
            if isinstance(event, PresenceEvent):
                if (event.move == "join") == (event.who in here):
                    continue
                here ^= {event.who}
            elif isinstance(event, SpeechEvent):
                for who in _speakers(event):
                    if who not in here:
                        here.add(who)
                        yield PresenceEvent(who=who, move="join")
            yield event


def _speakers(event: SpeechEvent) -> Sequence[str]:
    return [each.who for each in (event, event.over, event.broken_off) if each is not None]
