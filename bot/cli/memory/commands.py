"""`roomtone memory`: the group of commands on the stored memory."""

from __future__ import annotations

import typer

from bot.cli.memory import deletion as memory_deletion
from bot.cli.memory import search as memory_search
from bot.cli.memory import tiers as memory_tiers

app = typer.Typer(
    help="Search, manage, export and delete what the bot remembers.",
    no_args_is_help=True,
)
app.command(name="search")(memory_search.command)
app.command(name="list")(memory_tiers.list_segments)
app.command(name="queue")(memory_tiers.queue)
app.command(name="compress")(memory_tiers.compress)
app.command(name="archive")(memory_tiers.archive)
app.command(name="prune")(memory_deletion.prune)
app.command(name="export")(memory_tiers.export)
app.command(name="forget")(memory_deletion.forget)
app.command(name="freeze")(memory_tiers.freeze)
app.command(name="unfreeze")(memory_tiers.unfreeze)
