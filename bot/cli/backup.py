"""`roomtone backup` and `restore`: everything that the bot remembers in one file, and back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.environment import require_database, require_file_database
from bot.cli.output import confirm, count, say
from bot.clock import SystemClock
from bot.folder_lock import folder_lock
from bot.store.backup import RestoreReport, restore_backup, write_backup
from config.load import load


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write. It must not exist yet.", metavar="FILE")],
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", min=1, help="FILE is a folder: write a new file there, and keep only the latest so many."
        ),
    ] = None,
) -> None:
    """Back up the memory into one file. The bot may run meanwhile.

    The file is checked. It has everything that was said, so keep it where only you can read it. Settings, keys and logs
    are not in it; models are downloaded again.
    """
    from bot.private_files import make_private_folder

    settings = load()
    require_file_database(settings)
    require_database(settings)
    folder = file
    if keep is not None:
        make_private_folder(folder)
        file = folder / f"roomtone-{datetime.fromtimestamp(SystemClock().now(), UTC):%Y-%m-%d-%H%M%S}.db"
    made = write_backup(settings.storage.database_path, file)
    held = f"{count(made.sessions, 'session')} with {count(made.turns, 'turn')}"
    say(f"Backed up and checked: {held}, {made.size_bytes / 1e6:,.1f} MB in {file}.")
    for old in [] if keep is None else sorted(folder.glob("roomtone-????-??-??-??????.db"))[:-keep]:
        old.unlink()


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `roomtone backup` wrote.", metavar="FILE")],
    regardless: Annotated[
        bool,
        typer.Option("--regardless", help="Also if the present database cannot be read. It is kept aside."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Restore a backup. The bot must not run.

    What was said since the backup is no longer used; the present database is kept aside. Whoever was forgotten since
    the backup stays forgotten, and whoever has opted out stays out. A damaged backup changes nothing.
    """

    settings = load()
    require_file_database(settings)
    storage = settings.storage
    with folder_lock(storage.data_dir):
        if storage.database_path.exists():
            confirm(f"{file} will take the place of {storage.database_path}, which is kept aside. Go on?", yes=yes)
        now = SystemClock().now()
        done = asyncio.run(restore_backup(file, storage.database_path, now=now, regardless=regardless))
    for line in _lines(done):
        say(line)


def _lines(done: RestoreReport) -> list[str]:
    held = f"{count(done.content.sessions, 'session')} with {count(done.content.turns, 'turn')}"
    lines = [f"Restored and checked: {held}. Start the bot."]
    if done.aside is not None:
        lines.append(f"What was here is in {done.aside}: delete it when all is well.")
    if done.forgotten is None:
        lines.append(
            "Who was forgotten after the backup is not known here, and is back. Forget them again: "
            "`roomtone memory forget --person NAME`."
        )
    elif done.forgotten:
        who = "1 person was" if done.forgotten == 1 else f"{done.forgotten} people were"
        lines.append(f"{who} forgotten since the backup, and stay forgotten.")
    return lines
