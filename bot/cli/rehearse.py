"""`roomtone rehearse`: runs the whole bot in a local Discord with simulated speakers, or only that Discord."""

from __future__ import annotations

import asyncio
import tomllib
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import logging_to_file, require_folder, write_json, write_named_file
from bot.cli.output import dashboard_line, fail_if_folds_failed, open_console, say, svg_picture
from bot.cli.signals import stop_on_signals, until_stopped
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rehearsal.script.scenario import Scenario

DEFAULT_SCENARIO = "evening"


def _complete_scenario(incomplete: str) -> list[str]:
    from rehearsal.script.scenario_file import bundled_scenarios

    return [name for name in bundled_scenarios() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """What to play, and how.

    `keep`: the folder of a trial; None keeps nothing. `sound`: where to write what was heard; a trial has it anyway.
    `overrides`: settings by dotted name that override all others. `network`: shares of packets (loss, padding, reorder)
    that replace the scenario's. `realtime`: use speech-to-speech, from a local server. `stand_ins`: seconds that
    recogniser, scripted model and voice take; None: they are no stand-ins.
    """

    scenario: str = DEFAULT_SCENARIO
    report: Path | None = None
    picture: Path | None = None
    sound: Path | None = None
    keep: Path | None = None
    realtime: bool = False
    stand_ins: tuple[float, float, float] | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    network: Mapping[str, float] = field(default_factory=dict)


def command(
    scenario: Annotated[
        str,
        typer.Argument(
            help="A bundled scenario's name (`--list` shows them) or the path of a scenario file.",
            autocompletion=_complete_scenario,
        ),
    ] = DEFAULT_SCENARIO,
    list_all: Annotated[bool, typer.Option("--list", help="List the bundled scenarios and exit.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep the local Discord up for other clients until Ctrl-C.")
    ] = False,
    no_bot: Annotated[bool, typer.Option("--no-bot", help="With --serve: do not start the bot.")] = False,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="With --serve: the port of REST, gateway and control; 0: any free port."),
    ] = 0,
    report: Annotated[
        Path | None,
        typer.Option("--report", "--json", help="Write the report as JSON to this file.", metavar="FILE.json"),
    ] = None,
    loss: Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are lost.")] = None,
    padding: Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are padded.")] = None,
    reorder: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of voice packets that arrive out of order.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Save the conversation as shown in the terminal as a picture.", metavar="FILE.svg"),
    ] = None,
    sound: Annotated[
        Path | None,
        typer.Option(help="Save what a listener hears, with captions in a file beside it.", metavar="FILE.ogg"),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Keep the memory, log, sound and transcript in this folder, for the other commands.", metavar="DIR"
        ),
    ] = None,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="Use speech-to-speech, from a local server with its protocol.")
    ] = False,
    stand_ins: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            help="Play as on a faster or a slower machine: seconds that recogniser, scripted model and voice take. "
            "Recogniser and voice are stand-ins.",
            metavar="SECONDS SECONDS SECONDS",
        ),
    ] = None,
    written: Annotated[
        Path | None,
        typer.Option(help="Instead of a scenario, play this situation in writing.", metavar="SITUATION.json"),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            help="With --written: save what the model is sent for each question, and after a search for it.",
            metavar="FILE.json",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=0, help="Instead of a scenario, play so many simulated evenings, in virtual time.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="With --seeds: the seed of the first evening.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a setting, for example compaction.mode=off.", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Play a scenario in a local Discord, and judge it.

    Protocol, encryption, audio, recognition, memory and voice are the real ones. Ends with a report. The exit status
    is 0 only if all expectations of the scenario are met.
    """
    if list_all:
        from rehearsal.roomtone.playing import bundled

        say("\n".join(bundled()))
        return
    if seeds:
        raise typer.Exit(0 if play_evenings(range(seed, seed + seeds)) else 1)
    if written is not None or prompt is not None:
        if written is None or prompt is None:
            raise typer.BadParameter("--written and --prompt go together.")
        save_prompt(written, prompt, parse_settings(settings or []))
        return
    shares = {"loss": loss, "padding": padding, "reorder": reorder}
    wanted = RehearsalOptions(
        scenario,
        report=report,
        picture=picture,
        sound=sound,
        keep=keep,
        realtime=realtime,
        stand_ins=stand_ins,
        overrides=parse_settings(settings or []),
        network={name: share for name, share in shares.items() if share is not None},
    )
    if serve:
        refuse_scenario_options(wanted)
        asyncio.run(_serve(wanted, with_bot=not no_bot, port=port))
        return
    if no_bot or port:
        raise typer.BadParameter("--no-bot and --port go with --serve.")
    raise typer.Exit(0 if rehearse(wanted) else 1)


def parse_settings(given: Sequence[str]) -> dict[str, object]:
    """Parse `KEY=VALUE` texts into settings by dotted name. Values are read as TOML if possible."""
    parsed: dict[str, object] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign or not key.strip():
            raise typer.BadParameter(f"--set {each} is not KEY=VALUE, for example --set compaction.mode=off.")
        try:
            parsed[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            parsed[key.strip()] = value
    return parsed


def save_prompt(situation: Path, file: Path, overrides: Mapping[str, object]) -> None:
    """Play a situation in writing, and save what the model is sent for each question: the messages and tools, and the
    messages once it has searched the memory for that. Raises `ScenarioError`, and `typer.Exit` if a fold failed.
    """
    from bot.llm.chat_wire import to_api_messages, to_api_tools
    from rehearsal.roomtone.evenings.virtual_time import run_virtually
    from rehearsal.roomtone.written.scripted_model import local_embedder
    from rehearsal.roomtone.written.situation_player import play_situation
    from rehearsal.script.situation import SituationFile

    require_folder("--prompt", file)
    read = SituationFile(situation)
    with TemporaryDirectory(prefix="roomtone-situation-") as folder:
        settings = load(overrides={"storage.data_dir": folder})
        with logging_to_file(settings):
            playing = play_situation(read, overrides, embedder=local_embedder(settings.models))
            played = run_virtually(until_stopped(playing))
    saved = [
        {
            "messages": to_api_messages(each.first.messages),
            **to_api_tools(each.first.tools),
            "after_search": to_api_messages(each.last.messages),
        }
        for each in played
    ]
    write_json(file, saved, example="--prompt messages.json")
    fail_if_folds_failed([reason for each in played for reason in each.failed])


def play_evenings(seeds: Sequence[int]) -> bool:
    """Play the simulated evening of each seed, and tell of those that broke a rule. Return whether none did."""
    from rehearsal.roomtone.evenings.evening import play_evening
    from rehearsal.roomtone.evenings.plan import count_steps, make_plan

    failed = 0
    for seed in seeds:
        played = play_evening(seed)
        if played.broken:
            failed += 1
            say("\n".join((f"Seed {seed}:", *played.log)))
    say("\n".join(f"{count:6} {step.value}" for step, count in count_steps(map(make_plan, seeds)).most_common()))
    say(f"{len(seeds) - failed} of {len(seeds)} evenings broke no rule.")
    return not failed


def refuse_scenario_options(wanted: RehearsalOptions) -> None:
    """Raise for options that have no effect with --serve."""
    if wanted != RehearsalOptions(overrides=wanted.overrides, network=wanted.network):
        raise typer.BadParameter(
            "--serve plays nothing: only --no-bot, --port, --set, --loss, --padding and --reorder go with it."
        )


def _check(wanted: RehearsalOptions, played: Scenario) -> None:
    """Raise for options that do not go with the scenario, and for output files that cannot be written as they are
    named.
    """
    if played.written and (wanted.network or wanted.realtime or wanted.stand_ins or wanted.sound):
        raise typer.BadParameter(
            f"{wanted.scenario} is played in writing, without sound: --loss, --padding, --reorder, --realtime, "
            "--stand-ins and --sound cannot be used with it."
        )
    outputs = (
        ("--report", wanted.report, ""),
        ("--picture", wanted.picture, ".svg"),
        ("--sound", wanted.sound, ".ogg"),
    )
    for option, path, ending in outputs:
        if path is None:
            continue
        require_folder(option, path)
        if ending and path.suffix.lower() != ending:
            raise typer.BadParameter(
                f"{option} {path}: the file's name ends in {ending}, for example {path.with_suffix(ending).name}."
            )


async def _serve(wanted: RehearsalOptions, *, with_bot: bool, port: int) -> None:
    from bot.tuning import split_overrides
    from rehearsal.roomtone.serve import serve_local_discord

    stop = asyncio.Event()
    with ExitStack() as stack:
        # The logs and the memory of a served Discord stay apart from those of the operator's own bot.
        folder = stack.enter_context(TemporaryDirectory(prefix="roomtone-serve-"))
        overrides = {"storage.data_dir": folder, "storage.database_url": None, **wanted.overrides}
        stack.enter_context(logging_to_file(load(overrides=split_overrides(overrides)[1])))
        stack.enter_context(stop_on_signals(stop))
        await serve_local_discord(
            overrides,
            stop,
            with_bot=with_bot,
            port=port,
            network=wanted.network,
            say=say,
            on_dashboard=lambda link, data_dir: say(dashboard_line(link, data_dir)),
        )


def rehearse(wanted: RehearsalOptions) -> bool:
    """Play a scenario, show it in the terminal, and return whether it passed."""
    from rehearsal.report.terminal import TerminalReport
    from rehearsal.roomtone.playing import play_scenario, runner_of, settings_of
    from rehearsal.roomtone.recording import RECORDING, captions_of
    from rehearsal.roomtone.trial import finish_trial, trial_in, trial_lines, write_settings

    played = _scenario(wanted)
    _check(wanted, played)
    if wanted.keep is not None:
        kept = {"storage.data_dir": str(wanted.keep.absolute()), "storage.database_url": None}
        sound = wanted.sound or (None if played.written else wanted.keep / RECORDING)
        wanted = replace(wanted, sound=sound, overrides={**wanted.overrides, **kept})
    settings = settings_of(played, wanted.overrides)
    # Not before it is certain that this trial can be played: it puts the last one aside.
    with nullcontext() if wanted.keep is None else trial_in(wanted.keep):
        if wanted.keep is not None:
            write_settings(wanted.keep, settings, bot_name=played.bot.name)
        shown = open_console(record=wanted.picture is not None)
        program = TerminalReport(shown)
        # The display shows the bot's warnings within the conversation; the log file has everything.
        with logging_to_file(settings), program:
            playing = play_scenario(
                played,
                wanted.overrides,
                program,
                realtime=wanted.realtime,
                delays=wanted.stand_ins,
                data_dir=None if wanted.keep is None else settings.storage.data_dir,
                sound=wanted.sound,
                on_dashboard=lambda link, data_dir: program.say(dashboard_line(link, data_dir)),
            )
            outcome = runner_of(played)(until_stopped(playing))
    # The picture shows the conversation without the report.
    picture = svg_picture(shown, title="roomtone rehearse") if wanted.picture is not None else ""
    program.show(outcome)
    if wanted.report is not None:
        outcome.write(wanted.report)
    if wanted.picture is not None:
        write_named_file(wanted.picture, picture, example="--picture evening.svg")
    if wanted.sound is not None:
        say(f"\nHear it: {wanted.sound}, with captions in {captions_of(wanted.sound)}.")
    if wanted.keep is not None:
        said_often = asyncio.run(finish_trial(wanted.keep, settings, bot_name=played.bot.name))
        say("\n".join(trial_lines(wanted.keep, said_often)))
    return outcome.passed


def _scenario(wanted: RehearsalOptions) -> Scenario:
    """Return the scenario with the chosen network shares. Raises `ScenarioError`."""
    from rehearsal.script.scenario_file import load_scenario, scenario_path

    played = load_scenario(scenario_path(wanted.scenario))
    return played.with_network(played.network.model_copy(update=dict(wanted.network)))
