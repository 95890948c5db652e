"""Plays a scenario with Roomtone and judges the run: with sound in the local Discord, or in writing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bot.tuning import split_overrides
from config.load import load
from config.schema import Settings
from rehearsal.judge.report_builder import build_report
from rehearsal.report.report import RehearsalReport
from rehearsal.roomtone.companion import InProcessBot
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.recording import write_recording
from rehearsal.roomtone.speech_engines import RehearsalRecogniser, local_engines
from rehearsal.roomtone.stand_ins import Delays, open_stand_ins
from rehearsal.roomtone.written.room import play_written
from rehearsal.roomtone.written.services import written_settings
from rehearsal.runner.bot_lifecycle import bot_setup
from rehearsal.runner.local_environment import LocalEnvironment, open_local_environment
from rehearsal.runner.local_servers import LocalServers, open_local_servers
from rehearsal.runner.play import ScenarioRun
from rehearsal.runner.ports import BotOfDiscord, HeardSoundRecogniser, RunObserver
from rehearsal.script.scenario import RealtimeSpec, Scenario
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario


async def rehearse(
    scenario: Scenario,
    *,
    bot: BotOfDiscord,
    recogniser: HeardSoundRecogniser,
    open_environment: Callable[[Scenario], AbstractAsyncContextManager[LocalEnvironment]],
    observer: RunObserver | None = None,
    servers: LocalServers | None = None,
    sound: Path | None = None,
) -> RehearsalReport:
    """Play `scenario` to its end and return the report. Its `passed` says whether every expectation was met.

    `open_environment` is `rehearsal.runner.local_environment.open_local_environment`, except in tests. `servers`: the
    scenario's own model servers; the bot is already configured to use them. `sound`: where to write what was heard.

    Raises `RehearsalError` when the run could not begin (the local Discord or the bot did not start). A later failure
    is part of the report (`ended_by`, `passed` false). *Cancellation*: the bot and the local Discord are stopped in
    order.
    """
    servers = servers or LocalServers()
    async with open_environment(scenario) as environment:
        start = partial(bot.start, bot_setup(scenario, environment.addresses))
        record = await ScenarioRun(scenario, environment, bot, start, observer=observer, servers=servers).play()
        if sound is not None:
            await asyncio.to_thread(write_recording, sound, scenario, record, environment)
        return await build_report(scenario, record, environment, recogniser, servers=servers.observed)


def bundled() -> list[str]:
    """Return one line for each bundled scenario: its name and title."""
    titles = {name: load_scenario(path).title for name, path in bundled_scenarios().items()}
    longest = max(map(len, titles))
    return [f"{name:<{longest}}  {title}" for name, title in sorted(titles.items())]


def settings_of(scenario: Scenario, overrides: Mapping[str, object]) -> Settings:
    """Return the settings with which a scenario is played. Raises `ConfigError`."""
    if scenario.written:
        return written_settings(scenario, overrides)
    return load(overrides=split_overrides({**scenario.settings, **overrides})[1])


def runner_of(scenario: Scenario) -> Callable[[Coroutine[Any, Any, RehearsalReport]], RehearsalReport]:
    """Return what runs `play_scenario` to its end: a written scenario passes in virtual time."""
    return run_virtually if scenario.written else asyncio.run


async def play_scenario(
    scenario: Scenario,
    overrides: Mapping[str, object],
    observer: RunObserver,
    *,
    realtime: bool,
    delays: Delays | None,
    data_dir: Path | None,
    sound: Path | None,
    on_dashboard: Callable[[str, Path], None],
) -> RehearsalReport:
    """Play a scenario and return its report. `overrides`: settings by dotted name, which go before the scenario's.

    `realtime`: use speech-to-speech, from a local server. `delays`: use stand-ins that take so long. `data_dir`: keep
    the memory there. `sound`: where to write what was heard; a scenario in writing has none.
    """
    settings = settings_of(scenario, overrides)
    if scenario.written:
        return await play_written(scenario, settings, observer, data_dir=data_dir)
    names = (scenario.bot.name, *(person.name for person in scenario.people))
    servers, engines = scenario.servers, local_engines(settings, names)
    if realtime and servers.realtime is None:
        servers = servers.model_copy(update={"realtime": RealtimeSpec()})
        scenario = scenario.model_copy(update={"servers": servers})
    async with AsyncExitStack() as stack:
        ear: HeardSoundRecogniser
        if delays is None:
            local_servers = await stack.enter_async_context(open_local_servers(servers, engines))
            chosen, ear = local_servers.settings, RehearsalRecogniser(settings, names=names)
            await stack.enter_async_context(ear)
        else:
            local_servers, chosen, ear = await stack.enter_async_context(open_stand_ins(scenario, delays, engines))
        bot = InProcessBot({**chosen, **overrides}, on_dashboard=on_dashboard)
        companion = await stack.enter_async_context(bot)
        return await rehearse(
            scenario,
            bot=companion,
            recogniser=ear,
            observer=observer,
            open_environment=open_local_environment,
            servers=local_servers,
            sound=sound,
        )
