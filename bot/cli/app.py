"""Builds the `roomtone` command line and runs it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import typer
from typer.main import get_command

from bot.cli.failures import INTERRUPTED, MISUSED, report_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

app = typer.Typer(
    name="roomtone",
    help="A voice companion for Discord: it listens to everybody, remembers the conversation and answers aloud.",
    epilog="Start with `roomtone doctor`, then `roomtone rehearse hello`. All settings are in config/default.toml.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# The order in `roomtone -h`.
_COMMANDS = {
    "run": "run",
    "rehearse": "rehearsal.command",
    "replay": "replay",
    "tail": "log_view.tail",
    "explain": "explain",
    "doctor": "doctor",
}


@cache
def _assemble() -> Callable[..., object]:
    """Return the program with every command. Built once: `app` keeps what is added to it."""
    for name, module in _COMMANDS.items():
        app.command(name=name)(import_module(f"bot.cli.{module}").command)
    app.add_typer(import_module("bot.cli.memory.commands").app, name="memory")
    app.add_typer(import_module("bot.cli.models").app, name="models")
    app.add_typer(import_module("bot.cli.bench").app, name="bench")
    return get_command(app)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status. Failures are reported on stderr."""
    try:
        status = _assemble()(args=list(arguments), prog_name="roomtone", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place to catch it: users never see a traceback
        show = getattr(error, "show", None)
        if callable(show):
            # A wrong option or command: Typer prints its own message.
            show()
            return MISUSED
        return report_failure(error)
    return status if isinstance(status, int) else 0
