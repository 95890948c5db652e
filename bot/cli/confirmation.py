"""Asks before a command deletes or replaces something."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from bot.cli.output import say
from bot.errors import SetupError

if TYPE_CHECKING:
    from typing import TextIO


def confirm(question: str) -> None:
    """Ask whether to go on, and return if so.

    Raises `typer.Abort` if somebody says no or presses Ctrl-C, `SetupError` where nobody can answer.
    """
    # None: the command was started without one.
    source: TextIO | None = sys.stdin
    try:
        if source is None:
            say(question)
            raise typer.Abort
        agreed = typer.confirm(question)
    except typer.Abort:
        # A line break after the question.
        say("")
        if source is None or not source.isatty():
            raise SetupError(
                "Nobody has answered, so nothing was changed. Add --yes where no terminal is, as in a timer or script."
            ) from None
        raise
    if not agreed:
        say("Nothing was changed.")
        raise typer.Abort
