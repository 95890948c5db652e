"""`roomtone rehearse`: runs the whole bot in a local Discord with simulated speakers, or only that Discord."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

# Typer reads the command's signature at run time, so its types must be imported.
from bot.cli.output import open_console, say, svg_picture
from bot.cli.rehearsal import options
from bot.cli.rehearsal.options import (
    RehearsalOptions,
    check_output_folders,
    network_shares,
    parse_settings,
    refuse_scenario_options,
    refuse_sound_options,
)
from bot.cli.rehearsal.trial import finish_trial, show_trial, trial_in, write_settings
from bot.cli.signals import until_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from config.schema import Settings
    from rehearsal.report.report import RehearsalReport
    from rehearsal.report.terminal import TerminalReport
    from rehearsal.script.scenario import Scenario
    from rehearsal.script.server_specs import ServersSpec


def command(
    scenario: options.ScenarioName = options.DEFAULT_SCENARIO,
    list_all: options.ListAll = False,
    speech: options.SpeechFolder = None,
    limit: options.Limit = None,
    serve: options.Serve = False,
    no_bot: options.NoBot = False,
    port: options.Port = 0,
    report: options.ReportFile = None,
    loss: options.Loss = None,
    padding: options.Padding = None,
    reorder: options.Reorder = None,
    picture: options.Picture = None,
    keep: options.Keep = None,
    realtime: options.Realtime = False,
    settings: options.SettingOverrides = None,
) -> None:
    """Play a scenario in a local Discord, and judge it.

    Protocol, encryption, audio, recognition, memory and voice are the real ones. Ends with a report. The exit status
    is 0 only if all expectations of the scenario are met.
    """
    if list_all:
        say("\n".join(bundled()))
        return
    overrides = parse_settings(settings or [])
    wanted = RehearsalOptions(
        scenario,
        speech=speech,
        limit=limit,
        report=report,
        picture=picture,
        keep=keep,
        realtime=realtime,
        overrides=overrides,
        network=network_shares(loss=loss, padding=padding, reorder=reorder),
    )
    if serve:
        _serve(wanted, with_bot=not no_bot, port=port)
        return
    if no_bot or port:
        raise typer.BadParameter("--no-bot and --port go with --serve.")
    if limit is not None and speech is None:
        raise typer.BadParameter("--limit goes with --speech.")
    raise typer.Exit(0 if rehearse(wanted) else 1)


def _serve(wanted: RehearsalOptions, *, with_bot: bool, port: int) -> None:
    from bot.cli.rehearsal.serve import serve_local_discord

    refuse_scenario_options(wanted)
    asyncio.run(serve_local_discord(wanted.overrides, with_bot=with_bot, port=port, network=wanted.network))


def rehearse(wanted: RehearsalOptions) -> bool:
    """Play a scenario, show it in the terminal, and return whether it passed."""
    from config.load import load
    from rehearsal.script.written_evening import evening_path

    check_output_folders(wanted)
    wanted = _with_data_folder(wanted)
    written = evening_path(wanted.scenario) if wanted.speech is None else None
    if written is not None:
        return _rehearse_written(written, wanted)
    played = _scenario(wanted)
    settings = load(overrides={**played.settings, **wanted.overrides})
    return _shown(wanted, settings, lambda program: _play(played, settings, wanted, program), bot_name=played.bot.name)


def _with_data_folder(wanted: RehearsalOptions) -> RehearsalOptions:
    """Return the options with the trial's folder as the data folder, if the trial is kept."""
    if wanted.keep is None:
        return wanted
    kept = {"storage.data_dir": str(wanted.keep.absolute()), "storage.database_url": None}
    return replace(wanted, overrides={**wanted.overrides, **kept})


def _rehearse_written(path: Path, wanted: RehearsalOptions) -> bool:
    """Play a written evening, without sound, on a manual clock."""
    from bot.cli.rehearsal.written.player import play_written
    from bot.cli.rehearsal.written.services import BOT_NAME, EVENING_SETTINGS
    from config.load import load
    from rehearsal.script.written_evening import read_evening

    refuse_sound_options(wanted)
    evening = read_evening(path)
    settings = load(overrides={**EVENING_SETTINGS, **wanted.overrides})
    folder = None if wanted.keep is None else settings.storage.data_dir
    return _shown(
        wanted, settings, lambda program: play_written(evening, settings, program, data_dir=folder), bot_name=BOT_NAME
    )


def _shown(
    wanted: RehearsalOptions,
    settings: Settings,
    playing: Callable[[TerminalReport], Coroutine[object, object, RehearsalReport]],
    *,
    bot_name: str,
) -> bool:
    """Play with a live display, show and write the report, and return whether it passed."""
    from bot.cli.environment import logging_from_settings, null_console
    from rehearsal.report.terminal import TerminalReport

    # Not before it is certain that this trial can be played: it puts the last one aside.
    with nullcontext() if wanted.keep is None else trial_in(wanted.keep):
        if wanted.keep is not None:
            write_settings(wanted.keep, settings, bot_name=bot_name)
        shown = open_console(record=wanted.picture is not None)
        program = TerminalReport(shown)
        # The display shows the bot's warnings within the conversation; the log file has everything.
        with null_console() as console, logging_from_settings(settings, console=console), program:
            outcome = asyncio.run(until_stopped(playing(program)))
    # The picture shows the conversation without the report.
    picture = svg_picture(shown, title="roomtone rehearse") if wanted.picture is not None else ""
    program.show(outcome)
    if wanted.report is not None:
        outcome.write(wanted.report)
    if wanted.picture is not None:
        _save(picture, wanted.picture)
    if wanted.keep is not None:
        said_often = asyncio.run(finish_trial(wanted.keep, settings, bot_name=bot_name))
        show_trial(wanted.keep, said_often)
    return outcome.passed


def _save(picture: str, path: Path) -> None:
    from bot.errors import SetupError
    from bot.private_files import write_private_text

    try:
        write_private_text(path, picture)
    except OSError as error:
        raise SetupError(
            f"The picture could not be saved as {path}: {error.strerror or error}. Name a file in a folder that exists "
            "and has room, for example --picture evening.svg."
        ) from error


def bundled() -> list[str]:
    """Return one line for each bundled scenario: its name and title."""
    from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
    from rehearsal.script.written_evening import bundled_evenings, read_evening

    titles = {name: load_scenario(path).title for name, path in bundled_scenarios().items()}
    titles |= {name: read_evening(path).title for name, path in bundled_evenings().items()}
    longest = max(map(len, titles))
    return [f"{name:<{longest}}  {title}" for name, title in sorted(titles.items())]


def _scenario(wanted: RehearsalOptions) -> Scenario:
    """Return the scenario with the chosen network shares. Raises `ScenarioError`."""
    from rehearsal.script.recordings import scenario_from_recordings
    from rehearsal.script.scenario_file import load_scenario, scenario_path

    if wanted.speech is not None:
        played = scenario_from_recordings(wanted.speech, limit=wanted.limit)
    else:
        played = load_scenario(scenario_path(wanted.scenario))
    return played.with_network(played.network.model_copy(update=dict(wanted.network)))


async def _play(
    scenario: Scenario, settings: Settings, wanted: RehearsalOptions, program: TerminalReport
) -> RehearsalReport:
    from bot.cli.rehearsal.companion import InProcessCompanion
    from bot.cli.rehearsal.speech_engines import RehearsalRecogniser, local_engines
    from rehearsal.rehearse import rehearse as rehearse_scenario
    from rehearsal.runner.local_environment import open_local_environment
    from rehearsal.runner.local_servers import open_local_servers

    names = (scenario.bot.name, *(person.name for person in scenario.people))
    async with AsyncExitStack() as stack:
        servers = _servers(scenario, realtime=wanted.realtime)
        local_servers = await stack.enter_async_context(open_local_servers(servers, local_engines(settings, names)))
        chosen = {**local_servers.settings, **wanted.overrides}
        companion = await stack.enter_async_context(InProcessCompanion(chosen, say=program.say))
        ear = await stack.enter_async_context(RehearsalRecogniser(settings.asr, names=names))
        return await rehearse_scenario(
            scenario,
            bot=companion,
            recogniser=ear,
            observer=program,
            open_environment=open_local_environment,
            servers=local_servers,
        )


def _servers(scenario: Scenario, *, realtime: bool) -> ServersSpec:
    """Return the scenario's servers, plus speech-to-speech if `realtime` is set."""
    from rehearsal.script.server_specs import RealtimeSpec

    if realtime and scenario.servers.realtime is None:
        return scenario.servers.model_copy(update={"realtime": RealtimeSpec()})
    return scenario.servers
