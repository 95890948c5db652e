"""`roomtone rehearse`: the whole bot in a local Discord, with people who really speak; or that Discord alone."""

from __future__ import annotations

import asyncio
import tomllib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.schema import Settings
    from rehearsal.program import Program
    from rehearsal.report import Report
    from rehearsal.scenario import Scenario

DEFAULT_SCENARIO = "evening"


def command(
    scenario: Annotated[
        str,
        typer.Argument(help="A bundled scenario's name (`--list` shows them) or the path of a scenario file."),
    ] = DEFAULT_SCENARIO,
    list_all: Annotated[bool, typer.Option("--list", help="Show the bundled scenarios and end.")] = False,
    speech: Annotated[
        Path | None,
        typer.Option(help="Play the real recordings of DIR/manifest.json instead.", metavar="DIR"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="With --speech: at most so many recordings.", metavar="N")
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep the local Discord up for other clients until Ctrl-C.")
    ] = False,
    no_bot: Annotated[bool, typer.Option("--no-bot", help="With --serve: without the bot in its room.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --serve: port of REST, gateway and control; 0 takes a free one.")
    ] = 0,
    report: Annotated[
        Path | None, typer.Option(help="Write the report as JSON to this file.", metavar="FILE.json")
    ] = None,
    loss: Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are lost.")] = None,
    padding: Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are padded.")] = None,
    reorder: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of voice packets that arrive out of order.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Save the conversation as it was shown as a picture.", metavar="FILE.svg")
    ] = None,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="Answer by speech-to-speech, from a local server that speaks its protocol."),
    ] = False,
    model_servers: Annotated[
        bool,
        typer.Option(
            "--model-servers",
            help="Let the bot use OpenAI-compatible endpoints: local servers for chat, speech, recognition and "
            "embeddings. With --serve they are there for others too.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting over all others, for example compaction.mode=off.", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Play an evening in miniature: real protocol, encryption, audio, recognition, memory and voice.

    Ends with a report; the exit status is 0 only if everything that the scenario expects came true.
    """
    if list_all:
        for line in bundled():
            typer.echo(line)
        return
    overrides = parse_settings(settings or [])
    if serve:
        from bot.cli.serve import serve_local_discord

        serving = serve_local_discord(overrides, with_bot=not no_bot, port=port, with_model_servers=model_servers)
        asyncio.run(serving)
        return
    if no_bot:
        raise typer.BadParameter("--no-bot goes with --serve.")
    network = {
        name: share for name, share in (("loss", loss), ("padding", padding), ("reorder", reorder)) if share is not None
    }
    passed = rehearse(
        scenario,
        speech=speech,
        limit=limit,
        report=report,
        picture=picture,
        overrides=overrides,
        network=network,
        realtime=realtime,
        model_servers=model_servers,
    )
    raise typer.Exit(0 if passed else 1)


def rehearse(
    scenario: str,
    *,
    speech: Path | None = None,
    limit: int | None = None,
    report: Path | None = None,
    picture: Path | None = None,
    overrides: dict[str, object] | None = None,
    network: dict[str, float] | None = None,
    realtime: bool = False,
    model_servers: bool = False,
) -> bool:
    """Play a scenario, show it on the terminal, and return whether it passed.

    `network`: shares of packets (loss, padding, reorder) that replace the scenario's own. `realtime`: answer by
    speech-to-speech, from a local server. `model_servers`: let it use local endpoints for all that has one.
    """
    from rich.console import Console

    from bot.cli.here import nowhere
    from bot.logs import writing_logs
    from config.load import load
    from rehearsal.program import Program

    played = _scenario(scenario, speech, limit)
    if network:
        played = played.with_network(played.network.model_copy(update=network))
    settings = load(overrides={**played.settings, **(overrides or {})})
    shown = Console(highlight=False, record=picture is not None)
    program = Program(shown)
    # The program shows the bot's warnings among the conversation; the log has everything.
    with (
        nowhere() as console,
        writing_logs(settings.logs, data_dir=settings.storage.data_dir, console=console),
        program,
    ):
        playing = _play(played, settings, overrides or {}, program, realtime=realtime, with_model_servers=model_servers)
        outcome = asyncio.run(playing)
    if picture is not None:
        shown.save_svg(str(picture), title="roomtone rehearse", clear=False)
    program.show(outcome)
    if report is not None:
        outcome.write(report)
    return outcome.passed


async def _play(
    scenario: Scenario,
    settings: Settings,
    overrides: dict[str, object],
    program: Program,
    *,
    realtime: bool,
    with_model_servers: bool,
) -> Report:
    from bot.cli.companion import InProcessCompanion
    from bot.cli.ear import Ear
    from bot.cli.minds import minds
    from bot.cli.model_servers import model_servers
    from rehearsal.local_backstage import open_local_backstage
    from rehearsal.local_venue import open_local_venue
    from rehearsal.props import RealtimeSpec
    from rehearsal.stage import play

    names = (scenario.bot.name, *(person.name for person in scenario.people))
    servers = scenario.servers
    if realtime and servers.realtime is None:
        servers = servers.model_copy(update={"realtime": RealtimeSpec()})
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(model_servers(settings)) if with_model_servers else {}
        backstage = await stack.enter_async_context(open_local_backstage(servers, minds(settings, names)))
        companion = await stack.enter_async_context(InProcessCompanion({**served, **backstage.settings, **overrides}))
        ear = await stack.enter_async_context(Ear(settings.asr, names=names))
        return await play(
            scenario,
            companion=companion,
            recogniser=ear,
            audience=program,
            open_venue=open_local_venue,
            backstage=backstage,
        )


def bundled() -> list[str]:
    """Return the bundled scenarios, one line each: the name to type, and the title."""
    from rehearsal.scenario_file import bundled_scenarios, load_scenario

    played = {name: load_scenario(path) for name, path in bundled_scenarios().items()}
    longest = max(map(len, played))
    return [f"{name:<{longest}}  {scenario.title}" for name, scenario in played.items()]


def parse_settings(given: Sequence[str]) -> dict[str, object]:
    """Return `KEY=VALUE` words as settings by dotted name; values are read as TOML where they are TOML."""
    parsed: dict[str, object] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"--set {each} is not KEY=VALUE, for example --set compaction.mode=off.")
        try:
            parsed[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            parsed[key.strip()] = value
    return parsed


def _scenario(name: str, speech: Path | None, limit: int | None) -> Scenario:
    from rehearsal.scenario_file import load_scenario, scenario_path
    from rehearsal.speech import speech_scenario

    if speech is not None:
        return speech_scenario(speech, limit=limit)
    return load_scenario(scenario_path(name))
