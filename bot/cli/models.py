"""`roomtone models`: lists, downloads and checks model files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.output import open_console, plain_table, say
from bot.errors import ModelError
from bot.models.catalogue import CATALOGUE, RECOMMENDED, REQUIRED, find_model
from bot.models.directory import ModelDirectory
from bot.models.sources import DirectorySource, downloads_of
from config.load import load

UNKNOWN_HASH = "copied by hand, so its hash is unknown and was not checked"


def _complete_model(incomplete: str) -> list[str]:
    return [entry.name for entry in CATALOGUE if entry.name.startswith(incomplete)]


app = typer.Typer(
    help="Download, list and check the model files.",
    no_args_is_help=True,
)


@app.command(name="list")
def list_models() -> None:
    """List all models: size, licence, and whether they are installed."""
    model_directory = ModelDirectory(load().models.directory)
    table = plain_table("model", "here", "MB to get", "licence", "what it is", right=("MB to get",))
    # `pull` takes the name as it stands here.
    table.columns[0].no_wrap = True
    for entry in CATALOGUE:
        here = "yes" if model_directory.holds(entry) else "-"
        table.add_row(entry.name, here, str(entry.size_mb), entry.licence, entry.title)
    open_console().print(table)


@app.command()
def pull(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models to download. Default: all that hearing, speaking and remembering need.",
            autocompletion=_complete_model,
        ),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--from", help="Copy the named model from this directory instead.", metavar="DIR")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Download it even if it is installed and intact.")] = False,
) -> None:
    """Download models and check their hashes."""
    if directory is not None and len(names or ()) != 1:
        # A folder has the files of one model, and would take the place of another.
        raise typer.BadParameter("--from copies one model. Name it: `roomtone models pull whisper --from DIR`.")
    model_directory = ModelDirectory(load().models.directory)
    entries = [find_model(name) for name in names] if names else [*REQUIRED, *RECOMMENDED]
    for entry in entries:
        if directory is None and not again and model_directory.verify(entry) is None:
            whole = f": {UNKNOWN_HASH}" if model_directory.is_copied_by_hand(entry) else " and whole"
            say(f"{entry.name} is here{whole}: {model_directory.path(entry)}")
            continue
        sources = downloads_of(entry) if directory is None else [DirectorySource(directory)]
        try:
            with open_console().status(f"downloading {entry.title}"):
                for step in model_directory.pull(entry, sources):
                    say(f"{entry.name}: {step}")
        except ModelError as error:
            if names or entry not in RECOMMENDED:
                raise
            say(f"{error} Roomtone runs without it, but not as well.")
            continue
        say(f"{entry.name} is ready: {model_directory.path(entry)}")


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Models to check. Default: all installed ones.", autocompletion=_complete_model),
    ] = None,
) -> None:
    """Compare the hashes of installed model files. Exit status 1 if one is wrong."""
    model_directory = ModelDirectory(load().models.directory)
    entries = (
        [find_model(name) for name in names]
        if names
        else [entry for entry in CATALOGUE if model_directory.holds(entry)]
    )
    wrong = 0
    for entry in entries:
        trouble = model_directory.verify(entry)
        wrong += trouble is not None
        whole = UNKNOWN_HASH if model_directory.is_copied_by_hand(entry) else "whole"
        say(f"{entry.name}: {trouble or whole}")
    if not entries:
        say("No model is here. Run `roomtone models pull`.")
    if wrong:
        raise typer.Exit(1)
