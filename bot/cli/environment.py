"""What several commands need: logging, and the bot's database."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from bot.clock import SystemClock
from bot.errors import SetupError
from config.schema import Settings, secrets_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bot.logs.log_file import LogFile
    from bot.memory.admin import MemoryAdmin
    from bot.store.database import Database
    from compaction.model import SessionId

# Within the data folder: a rehearsal without a token is kept apart from what the bot remembers of real evenings.
TRIAL_FOLDER = "trial"


def require_folder(option: str, file: Path) -> None:
    """Raise `typer.BadParameter` if the folder of an output file does not exist, before the work begins."""
    if not file.absolute().parent.is_dir():
        raise typer.BadParameter(f"{option}: there is no folder {file.parent}. Create it, or name a file elsewhere.")


def write_json(file: Path, value: object, *, example: str) -> None:
    """Write a value as JSON, as `write_named_file` writes a text."""
    write_named_file(file, json.dumps(value, ensure_ascii=False, indent=2) + "\n", example=example)


def write_named_file(file: Path, text: str, *, example: str) -> None:
    """Write a file for its owner alone, in a folder that is made if needed. Raises `SetupError`, with an `example`."""
    from bot.private_files import make_private_folder, write_private_text

    try:
        make_private_folder(file.parent)
        write_private_text(file, text)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise SetupError(
            f"{file} cannot be written: {reason}. Name a place that you may write to and that has room, for example "
            f"{example}."
        ) from error


def logging_from_settings(settings: Settings, *, console: TextIO | None = None) -> AbstractContextManager[LogFile]:
    """Write logs as `[storage]` says until the context ends; the settings' secrets are redacted.

    `console`: the terminal's stream, stderr by default.
    """
    from bot.logs.log_file import KEEP_FILES
    from bot.logs.output import configured_logging

    storage = settings.storage
    return configured_logging(
        storage.data_dir,
        console=console,
        secrets=tuple(secrets_in(settings)),
        max_file_bytes=1_000_000 * storage.log_mb // (1 + KEEP_FILES),
    )


@contextmanager
def logging_to_file(settings: Settings) -> Iterator[None]:
    """Write logs as `logging_from_settings` does, but not to the terminal, where the command shows something else."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, logging_from_settings(settings, console=nowhere):
        yield


def require_file_database(settings: Settings) -> None:
    """Raise `SetupError` if the memory is on a PostgreSQL server, which has its own tools for backups."""
    if settings.storage.database_url is not None:
        raise SetupError(
            "The memory is in PostgreSQL (ROOMTONE_DATABASE_URL). Use its own tools: `pg_dump --format=custom` while "
            "the bot runs, and `pg_restore` into an empty database while it does not."
        )


def require_database(settings: Settings) -> None:
    """Raise `SetupError` if there is no database file yet. Only the server knows about one with a URL."""
    storage = settings.storage
    if storage.database_url is None and not storage.database_path.is_file():
        trial = storage.data_dir / TRIAL_FOLDER
        look = f"`roomtone --config {shlex.quote(str(trial))}` and the command"
        kept = f" The trial in {trial} has one: {look}." if trial.is_dir() else ""
        raise SetupError(
            f"There is no memory yet at {storage.database_path}: `roomtone run` creates it.{kept} If it is elsewhere, "
            "set storage.data_dir, or name its settings with --config."
        )


@asynccontextmanager
async def open_existing_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the configured database. Raises `SetupError` if there is none yet, `StoreError` if it cannot be opened, also
    because a bot of an earlier version runs.
    """
    from bot.folder_lock import is_locked
    from bot.store.database import open_database

    require_database(settings)
    storage = settings.storage
    # Not while a bot has it open, which may be of an earlier version. PostgreSQL knows by itself whether one does.
    migrates = storage.database_url is not None or not is_locked(storage.data_dir)
    async with open_database(storage.database, create=False, migrates=migrates, data_dir=storage.data_dir) as database:
        yield database


@asynccontextmanager
async def open_memory_admin(settings: Settings) -> AsyncIterator[MemoryAdmin]:
    """Open what manages the memory in the configured database. Raises as `open_existing_database` does."""
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        yield MemoryAdmin(database, SystemClock())


async def find_session(database: Database, name: str | None) -> SessionId | None:
    """Return the session whose id begins so; None if none is named. Raises `MemoryAdminError` unless it is one."""
    from bot.memory.admin import MemoryAdmin

    return None if name is None else await MemoryAdmin(database, SystemClock()).find_session(name)
