"""`roomtone backup`: writes everything that the bot remembers into one file, while the bot runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.output import count, say


def command(
    file: Annotated[Path, typer.Argument(help="The file to write. It must not exist yet.", metavar="FILE")],
) -> None:
    """Back up the memory into one file. The bot may run meanwhile.

    The file is checked. It has everything that was said, so keep it where only you can read it. Settings, keys and logs
    are not in it; models are downloaded again.
    """
    from bot.cli.environment import require_database, require_file_database
    from bot.store.backup import write_backup
    from config.load import load

    settings = load()
    require_file_database(settings)
    require_database(settings)
    made = write_backup(settings.storage.database_path, file)
    held = f"{count(made.sessions, 'session')} with {count(made.turns, 'turn')}"
    say(f"Backed up and checked: {held}, {made.size_bytes / 1e6:,.1f} MB in {file}.")
