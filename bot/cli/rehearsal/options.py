"""The arguments and options of `roomtone rehearse`, and which of them can be combined."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bot.cli.environment import require_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_SCENARIO = "evening"


def _complete_scenario(incomplete: str) -> list[str]:
    from rehearsal.script.scenario_file import bundled_scenarios
    from rehearsal.script.written_evening import bundled_evenings

    return sorted(name for name in (*bundled_scenarios(), *bundled_evenings()) if name.startswith(incomplete))


ScenarioName: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="A bundled scenario's name (`--list` shows them) or the path of a scenario file.",
        autocompletion=_complete_scenario,
    ),
]
ListAll: TypeAlias = Annotated[bool, typer.Option("--list", help="List the bundled scenarios and exit.")]
SpeechFolder: TypeAlias = Annotated[
    Path | None, typer.Option(help="Play the real recordings of DIR/manifest.json instead.", metavar="DIR")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="With --speech: the most recordings to play.", metavar="N")
]
Serve: TypeAlias = Annotated[
    bool, typer.Option("--serve", help="Keep the local Discord up for other clients until Ctrl-C.")
]
NoBot: TypeAlias = Annotated[bool, typer.Option("--no-bot", help="With --serve: do not start the bot.")]
Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="With --serve: the port of REST, gateway and control; 0: any free port.")
]
ReportFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--report", "--json", help="Write the report as JSON to this file.", metavar="FILE.json"),
]
Loss: TypeAlias = Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are lost.")]
Padding: TypeAlias = Annotated[float | None, typer.Option(min=0, max=1, help="Share of voice packets that are padded.")]
Reorder: TypeAlias = Annotated[
    float | None, typer.Option(min=0, max=1, help="Share of voice packets that arrive out of order.")
]
Picture: TypeAlias = Annotated[
    Path | None, typer.Option(help="Save the conversation as shown in the terminal as a picture.", metavar="FILE.svg")
]
Keep: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Keep the memory, log and transcript in this folder, for the other commands.", metavar="DIR"),
]
Realtime: TypeAlias = Annotated[
    bool,
    typer.Option("--realtime", help="Use speech-to-speech, from a local server with its protocol."),
]
SettingOverrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting, for example compaction.mode=off.", metavar="KEY=VALUE"),
]


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """What to play, and how.

    `keep`: the folder of a trial; None keeps nothing. `overrides`: settings by dotted name that override all others.
    `network`: shares of packets (loss, padding, reorder) that replace the scenario's. `realtime`: use speech-to-speech,
    from a local server.
    """

    scenario: str = DEFAULT_SCENARIO
    speech: Path | None = None
    limit: int | None = None
    report: Path | None = None
    picture: Path | None = None
    keep: Path | None = None
    realtime: bool = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    network: Mapping[str, float] = field(default_factory=dict)


def refuse_sound_options(wanted: RehearsalOptions) -> None:
    """Raise for options that have no effect on a written evening."""
    given = {
        "--loss, --padding and --reorder": bool(wanted.network),
        "--realtime": wanted.realtime,
    }
    for names, meant in given.items():
        if meant:
            raise typer.BadParameter(
                f"{wanted.scenario} is a written evening, without sound: {names} cannot be used with it."
            )


def refuse_scenario_options(wanted: RehearsalOptions) -> None:
    """Raise for options that have no effect with --serve."""
    given = {
        "a scenario": wanted.scenario != DEFAULT_SCENARIO,
        "--speech": wanted.speech is not None,
        "--limit": wanted.limit is not None,
        "--report": wanted.report is not None,
        "--picture": wanted.picture is not None,
        "--keep": wanted.keep is not None,
        "--realtime": wanted.realtime,
    }
    for name, meant in given.items():
        if meant:
            raise typer.BadParameter(f"--serve plays nothing, so {name} does not go with it.")


def check_output_folders(wanted: RehearsalOptions) -> None:
    """Raise if an output file cannot be written because of its name."""
    for option, path in (("--report", wanted.report), ("--picture", wanted.picture)):
        if path is not None:
            require_folder(option, path)
    if wanted.picture is not None and wanted.picture.suffix.lower() != ".svg":
        raise typer.BadParameter(
            f"--picture {wanted.picture}: the picture is an SVG file. Give it such a name, for example "
            f"{wanted.picture.with_suffix('.svg').name}."
        )


def network_shares(**given: float | None) -> dict[str, float]:
    """Return the shares that are not None."""
    return {name: share for name, share in given.items() if share is not None}


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
