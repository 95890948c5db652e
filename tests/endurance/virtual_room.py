"""Hours of a whole room on a clock that jumps: hearing, deciding, answering, folding, storing.

It is the scenario of three hours (`roomtone rehearse three-hours`), said again and again in one session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.roomtone.written.player import moments, open_player
from rehearsal.roomtone.written.services import written_settings
from rehearsal.script.scenario import JoinStep, LeaveStep, SayStep
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from tests.endurance.pool_threads import start_all_threads
from tests.endurance.samples import take_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rehearsal.roomtone.written.player import WrittenPlayer
    from rehearsal.script.scenario import Scenario, Step
    from tests.endurance.samples import Sample

SAMPLE_EVERY_S = 300.0


async def live_virtually(hours: float, on_sample: Callable[[Sample], None] = lambda sample: None) -> list[Sample]:
    """Play so many hours, and return the samples. Raises AssertionError if anything expected did not happen or was
    logged as a problem.
    """
    scenario = load_scenario(bundled_scenarios()["three-hours"])
    samples: list[Sample] = []
    tokens, next_s = 0, SAMPLE_EVERY_S
    await start_all_threads()
    async with open_player(scenario, written_settings(scenario)) as player:
        await player.begin()
        record = player.record
        for moment in _again_and_again(scenario):
            await player.perform(moment)
            if record.prompts:
                tokens = sum(part.tokens for part in record.prompts[-1].parts)
            if player.lasted_s >= next_s:
                next_s = player.lasted_s + SAMPLE_EVERY_S
                assert record.failed_waits == []
                assert [f"{each.event}: {each.detail}" for each in record.problems] == []
                assert record.failed_compactions == []
                _forget(player)
                samples.append(take_sample(player.lasted_s, tokens))
                on_sample(samples[-1])
            if player.lasted_s >= hours * 3600:
                break
        await player.leave()
    return samples


def _forget(player: WrittenPlayer) -> None:
    """Empty the player's own record of everything but the last turn: only the room's memory is to be measured."""
    record = player.record
    for each in (record.utterances, record.replies, record.prompts, record.compactions, player.sent_at):
        each.clear()
    for by_key in (record.lines_by_step, record.step_times, record.presence):
        by_key.clear()
    del record.turns[:-1]


def _again_and_again(scenario: Scenario) -> Iterator[Sequence[tuple[int, Step]]]:
    """Yield the scenario's moments for ever. Whoever speaks is there: in a repetition they come again if they left."""
    here = {person.key for person in scenario.people if person.present}
    while True:
        for moment in moments(scenario.steps):
            for number, step in moment:
                if isinstance(step, SayStep) and step.who not in here:
                    here.add(step.who)
                    yield [(number, JoinStep(who=step.who, join=True))]
            first = moment[0][1]
            if isinstance(first, (JoinStep, LeaveStep)):
                if isinstance(first, JoinStep) == (first.who in here):
                    continue
                here ^= {first.who}
            yield moment
