"""The words that `roomtone rehearse` takes, and which of them go together."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_SCENARIO = "evening"

ScenarioName: TypeAlias = Annotated[
    str, typer.Argument(help="A bundled scenario's name (`--list` shows them) or the path of a scenario file.")
]
ListAll: TypeAlias = Annotated[bool, typer.Option("--list", help="Show the bundled scenarios and end.")]
SpeechFolder: TypeAlias = Annotated[
    Path | None, typer.Option(help="Play the real recordings of DIR/manifest.json instead.", metavar="DIR")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="With --speech: at most so many recordings.", metavar="N")
]
Serve: TypeAlias = Annotated[
    bool, typer.Option("--serve", help="Keep the local Discord up for other clients until Ctrl-C.")
]
NoBot: TypeAlias = Annotated[bool, typer.Option("--no-bot", help="With --serve: without the bot in its room.")]
Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="With --serve: port of REST, gateway and control; 0 takes a free one.")
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
    Path | None, typer.Option(help="Save the conversation as it was shown as a picture.", metavar="FILE.svg")
]
Realtime: TypeAlias = Annotated[
    bool,
    typer.Option("--realtime", help="Answer by speech-to-speech, from a local server that speaks its protocol."),
]
ModelServers: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--model-servers",
        help="Let the bot use OpenAI-compatible endpoints: local servers for chat, speech, recognition and "
        "embeddings. With --serve they are there for others too.",
    ),
]
ModelFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="With --model-servers: a GGUF file for the language model behind chat.", metavar="FILE", dir_okay=False
    ),
]
LlamaPython: TypeAlias = Annotated[
    str,
    typer.Option(
        help="With --model-servers: a Python that has llama-cpp-python with its server, if this one hasn't.",
        metavar="PYTHON",
    ),
]
SettingOverrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting over all others, for example compaction.mode=off.", metavar="KEY=VALUE"),
]


@dataclass(frozen=True, slots=True)
class LanguageModelChoice:
    """What is to be behind the local chat server. `model_file` None: the pulled one; `llama_python` empty: this Python
    serves it."""

    model_file: Path | None = None
    llama_python: str = ""

    @property
    def named(self) -> bool:
        """Return whether anything was named."""
        return self.model_file is not None or bool(self.llama_python)


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """What is played, and how. `models`: local endpoints for all that has one; None: there are none.

    `overrides`: settings by dotted name over all others. `network`: shares of packets (loss, padding, reorder) that
    replace the scenario's own. `realtime`: answer by speech-to-speech, from a local server.
    """

    scenario: str = DEFAULT_SCENARIO
    speech: Path | None = None
    limit: int | None = None
    report: Path | None = None
    picture: Path | None = None
    realtime: bool = False
    models: LanguageModelChoice | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    network: Mapping[str, float] = field(default_factory=dict)


def language_model_choice(
    model_servers: bool, model_file: Path | None, llama_python: str
) -> LanguageModelChoice | None:
    """Return what is to be behind the model servers; None where there are to be none."""
    if model_servers:
        return LanguageModelChoice(model_file, llama_python)
    if model_file is not None or llama_python:
        raise typer.BadParameter("--model-file and --llama-python go with --model-servers.")
    return None


def refuse_sound_options(wanted: RehearsalOptions) -> None:
    """Refuse what an evening in writing has no use for."""
    given = {
        "--loss, --padding and --reorder": bool(wanted.network),
        "--realtime": wanted.realtime,
        "--model-servers": wanted.models is not None,
    }
    for names, meant in given.items():
        if meant:
            raise typer.BadParameter(
                f"{wanted.scenario} is an evening in writing, without sound: {names} cannot change it."
            )


def refuse_scenario_options(wanted: RehearsalOptions) -> None:
    """Refuse what a local Discord that is only kept up has no use for."""
    given = {
        "a scenario": wanted.scenario != DEFAULT_SCENARIO,
        "--speech": wanted.speech is not None,
        "--limit": wanted.limit is not None,
        "--report": wanted.report is not None,
        "--picture": wanted.picture is not None,
        "--realtime": wanted.realtime,
    }
    for name, meant in given.items():
        if meant:
            raise typer.BadParameter(f"--serve plays nothing, so {name} does not go with it.")


def check_output_folders(wanted: RehearsalOptions) -> None:
    """Refuse to play what could not be kept afterwards."""
    for option, path in (("--report", wanted.report), ("--picture", wanted.picture)):
        if path is not None and not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{option}: there is no folder {path.parent}. Make it, or name a file elsewhere.")


def network_shares(**given: float | None) -> dict[str, float]:
    """Return the shares that were given."""
    return {name: share for name, share in given.items() if share is not None}


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
