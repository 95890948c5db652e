"""`roomtone memory`: what the rooms remember, looked at and tended."""

from __future__ import annotations

import typer

from bot.cli import memory_search

app = typer.Typer(
    name="memory",
    help="Search and tend what the rooms remember.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="search")(memory_search.command)
