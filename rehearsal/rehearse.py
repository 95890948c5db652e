"""Plays a scenario and judges the run. This is the entry point of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.judge.report_builder import build_report
from rehearsal.runner.local_servers import LocalServers
from rehearsal.runner.play import play

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from rehearsal.report.report import RehearsalReport
    from rehearsal.runner.local_environment import LocalEnvironment
    from rehearsal.runner.ports import BotUnderTest, HeardSoundRecogniser, RunObserver
    from rehearsal.script.scenario import Scenario


async def rehearse(
    scenario: Scenario,
    *,
    bot: BotUnderTest,
    recogniser: HeardSoundRecogniser,
    open_environment: Callable[[Scenario], AbstractAsyncContextManager[LocalEnvironment]],
    observer: RunObserver | None = None,
    servers: LocalServers | None = None,
) -> RehearsalReport:
    """Play `scenario` to its end and return the report. Its `passed` says whether every expectation was met.

    `open_environment` is `rehearsal.runner.local_environment.open_local_environment`, except in tests. `servers`: the
    scenario's own model servers; the bot is already configured to use them.

    Raises `RehearsalError` when the run could not begin (the local Discord or the bot did not start). A later failure
    is part of the report (`ended_by`, `passed` false). *Cancellation*: the bot and the local Discord are stopped in
    order.
    """
    servers = servers or LocalServers()
    async with open_environment(scenario) as environment:
        record = await play(scenario, environment, bot=bot, observer=observer, servers=servers)
        return await build_report(scenario, record, environment, recogniser, servers=servers.observed)
