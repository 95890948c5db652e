"""Builds the `roomtone` command line and runs it."""

from __future__ import annotations

import os
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from bot.cli.failures import INTERRUPTED, report_failure, report_misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Where each command, or group of commands, is in `bot.cli`.
COMMANDS = {
    "setup": "setup.command",
    "run": "run.command",
    "rehearse": "rehearse.command",
    "replay": "replay.command",
    "tail": "log_view.tail.command",
    "explain": "explain.command",
    "doctor": "doctor.command.command",
    "report": "report.command.command",
    "settings": "settings.command",
    "invite": "invite.command",
    "servers": "servers.app",
    "memory": "memory.commands.app",
    "backup": "backup.backup",
    "restore": "backup.restore",
    "models": "models.app",
    "cluster": "cluster.app",
    "bench": "bench.commands.app",
}
# The lists of `roomtone -h`. The second is for people who work on the bot, or look into it.
_HEADINGS = {
    "Commands": (
        *("setup", "run", "doctor", "report", "settings", "invite", "servers", "rehearse"),
        *("memory", "backup", "restore", "models"),
    ),
    "For engineers": ("tail", "explain", "replay", "bench", "cluster"),
}
# The shell's completion passes the words of the line in this variable.
_COMPLETED_LINE = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")


class _CommandLists(TyperGroup):
    """Shows the commands below two headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of commands. Typer has its own copy of the types of these two."""
        width = formatter.width - 6 - max(map(len, COMMANDS))
        for heading, names in _HEADINGS.items():
            found = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
            if found:
                with formatter.section(heading):
                    formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in found])


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"roomtone {metadata.version('roomtone')}")
        raise typer.Exit


def options(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="PATH",
            help="The settings file, or its folder. Default: ROOMTONE_CONFIG, else roomtone.toml and .env in this "
            "folder, in the checkout, or in ~/.config/roomtone.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """A voice companion for Discord: it listens to everybody, remembers the conversation and answers aloud."""
    if config is not None:
        from config.location import CONFIG_VARIABLE, at_home

        # As a variable it reaches every `load`, and the processes that a command starts.
        os.environ[CONFIG_VARIABLE] = str(at_home(str(config)).absolute())


def assemble(names: Sequence[str]) -> Callable[..., object]:
    """Return the program with these commands."""
    app = typer.Typer(
        name="roomtone",
        epilog="Start with `roomtone setup`, or without Discord with `roomtone rehearse hello`. "
        "All settings are in docs/settings.md.",
        cls=_CommandLists,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=options,
    )
    for name in names:
        module, _, attribute = COMMANDS[name].rpartition(".")
        found = getattr(import_module(f"bot.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name=name)(found)
    return get_command(app)


def _needed(arguments: Sequence[str]) -> Sequence[str]:
    """Return the command that is called or completed, none for `--version`, or all: importing those takes seconds."""
    line = next((os.environ[name] for name in _COMPLETED_LINE if name in os.environ), None)
    words = list(arguments) if line is None else line.split()[1:]
    while words and words[0].startswith("-") and words[0] != "--version":
        # `--config PATH` is the only option before a command that has a value.
        del words[: 2 if words[0] == "--config" else 1]
    if words[:1] == ["--version"]:
        return ()
    # The last word of a line that is completed may be the beginning of a longer one.
    is_called = bool(words) and words[0] in COMMANDS and (line is None or len(words) > 1)
    return words[:1] if is_called else tuple(COMMANDS)


def _config_first(arguments: Sequence[str]) -> list[str]:
    """Return the words of the line with `--config` before the command, where it may also stand after it."""
    words = list(arguments)
    for number, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("--config="):
            return [word, *words[:number], *words[number + 1 :]]
        if word == "--config" and number + 1 < len(words):
            return [*words[number : number + 2], *words[:number], *words[number + 2 :]]
    return words


def run_command_line(arguments: Sequence[str], *, on_loaded: Callable[[], None] = lambda: None) -> int:
    """Run one command and return its exit status. Failures are reported on stderr.

    `--config` works before and after the command. `on_loaded` is called when the command's modules are imported, before
    it runs.
    """
    words = _config_first(arguments)
    try:
        command = assemble(_needed(words))
        from bot.logs.output import warnings_on_terminal

        on_loaded()
        # A command that keeps a log sends them there instead.
        with warnings_on_terminal():
            status = command(args=words, prog_name="roomtone", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place to catch it: users never see a traceback
        misuse = report_misuse(error)
        return report_failure(error) if misuse is None else misuse
    return status if isinstance(status, int) else 0
