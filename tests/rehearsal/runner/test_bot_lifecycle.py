"""During a run the bot is started, watched, killed on purpose and stopped, also when it fails or does not respond."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.errors import RunError
from rehearsal.runner.bot_lifecycle import STOP_TIMEOUT_S, BotLifecycle
from rehearsal.runner.observations import (
    BotCrashed,
    ObservationCallback,
    ObservedReply,
    ObservedUtterance,
)
from rehearsal.runner.ports import BotSetup, RunObserver
from rehearsal.runner.record import RunRecord
from rehearsal.script.scenario import HistoryTurn
from tests.fakes.virtual_time import run_virtually
from tests.rehearsal.simulated import JONAS, SimulatedEnvironment, scenario

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Bot:
    """A bot whose `stop` and `kill` are given by the test."""

    def __init__(
        self,
        *,
        stop: Callable[[], Awaitable[None]] | None = None,
        kill: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.setups: list[BotSetup] = []
        self.killed = 0
        self.report: ObservationCallback = lambda _: None
        self._stop = stop
        self._kill = kill

    async def start(self, setup: BotSetup, report: ObservationCallback) -> None:
        self.setups.append(setup)
        self.report = report

    async def stop(self) -> None:
        if self._stop is not None:
            await self._stop()

    async def kill(self) -> None:
        self.killed += 1
        if self._kill is not None:
            await self._kill()


class RecordingObserver(RunObserver):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def heard(self, at_s: float, speaker: str, utterance: ObservedUtterance, latency_ms: float) -> None:
        self.told.append(("heard", speaker, round(latency_ms)))

    def replied(self, at_s: float, reply: ObservedReply, latency_ms: float | None) -> None:
        self.told.append(("replied", None if latency_ms is None else round(latency_ms)))

    def happened(self, at_s: float, text: str) -> None:
        self.told.append(("happened", text))

    def troubled(self, at_s: float, text: str) -> None:
        self.told.append(("troubled", text))


def lived(bot: Bot, scene: Callable[[BotLifecycle, RunRecord], Awaitable[None]]) -> tuple[RunRecord, RecordingObserver]:
    """Run `scene` in virtual time and return its record and observer."""
    record, observer = RunRecord(), RecordingObserver()
    made = scenario(history=(HistoryTurn(speaker="jonas", text="old", at=-60.0),))

    async def run() -> None:
        await scene(BotLifecycle(made, SimulatedEnvironment(), bot, record, observer), record)

    run_virtually(run())
    return record, observer


def test_history_is_given_once_with_real_times_and_names() -> None:
    """The first start gets the history with real times and names. A restart gets none: the bot has stored it."""
    bot = Bot()

    async def scene(life: BotLifecycle, _: RunRecord) -> None:
        await life.start()
        await life.kill()
        await life.restart()

    lived(bot, scene)
    first, second = bot.setups
    (turn,) = first.history
    assert (turn.speaker_id, turn.speaker, turn.text, turn.kind) == (str(JONAS.id), "Jonas", "old", "speech")
    assert turn.at_epoch_s > 1_700_000_000
    assert (second.history, second.discord.token, bot.killed) == ((), first.discord.token, 1)


def test_a_crash_is_raised_to_whoever_watches_but_not_after_a_kill() -> None:
    """`watch` raises when the bot crashes, but the end of a bot that was killed on purpose is no crash."""
    bot = Bot()

    async def scene(life: BotLifecycle, record: RunRecord) -> None:
        await life.start()
        await life.kill()
        bot.report(BotCrashed("killed"))
        assert record.crash is None
        await life.restart()
        asyncio.get_running_loop().call_later(5.0, bot.report, BotCrashed("out of memory"))
        with pytest.raises(RunError, match="out of memory"):
            await life.watch()

    lived(bot, scene)


def test_a_bot_that_will_not_end_is_killed() -> None:
    """A bot that does not stop within the timeout is killed, and the record names the problem."""
    bot = Bot(stop=lambda: asyncio.sleep(STOP_TIMEOUT_S * 9))

    async def scene(life: BotLifecycle, _: RunRecord) -> None:
        await life.start()
        await life.stop()

    record, _ = lived(bot, scene)
    assert bot.killed == 1
    assert [problem.event for problem in record.problems] == ["bot_stop_timed_out"]
