"""`roomtone memory export` and `import`: segments and queues as files (`compaction.memory.export_format`)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import count, say
from bot.clock import SystemClock
from bot.errors import BotError
from bot.private_files import make_private_folder, write_private_text
from bot.store.number_range import LARGEST_NUMBER
from config.load import load

if TYPE_CHECKING:
    from bot.memory.admin import SegmentOverview
    from config.schema import Settings

DAY_S = 86_400.0
QUEUE_FOLDER = "context_queue"
_QUEUE_ENDING = "_pending.json"
_ARCHIVE_FOLDER = "archived_context"


class ExchangeFileError(BotError):
    """A file cannot be read or written. The message has one sentence for each file."""


def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write to. It is created if needed.", metavar="DIR")],
    session: Annotated[
        str | None,
        typer.Option("--session", help="Only this session (its id or the beginning of its id).", metavar="ID"),
    ] = None,
) -> None:
    """Write segments and queues to files.

    Segments go to compressed_context/{segment_id}.json, archived ones to
    sessions/{session_id}/archived_context/{segment_id}.json, queues to context_queue/{session_id}_pending.json.
    """

    written = asyncio.run(_export(load(), session, folder))
    say(f"Wrote {count(sum(written), 'segment')} of {count(len(written), 'session')} to {folder}.")


def import_files(
    paths: Annotated[
        list[Path], typer.Argument(help="Files, or folders as `roomtone memory export` writes them.", metavar="PATH")
    ],
    guild: Annotated[
        int | None,
        typer.Option(
            "--guild",
            min=1,
            max=LARGEST_NUMBER,
            help="The id of the server that newly created sessions belong to.",
            metavar="ID",
        ),
    ] = None,
) -> None:
    """Import segments and queues from files.

    Known segments are updated. Nothing is added to a session that has turns of its own. A file that cannot be used is
    reported and skipped.
    """

    done = asyncio.run(_import_all(load(), _find_files(paths), guild))
    say(f"Imported: {_tell(done)}.")
    if done.problems:
        raise ExchangeFileError("\n".join(done.problems))


def _tell(done: _ImportCounts) -> str:
    parts = {"new segment": done.new, "known segment": done.known, "queued segment": done.queued}
    return ", ".join(count(number, what) for what, number in parts.items() if number) or "nothing"


@dataclass
class _ImportCounts:
    new: int = 0
    known: int = 0
    queued: int = 0
    problems: list[str] = field(default_factory=list)


async def _export(settings: Settings, session: str | None, folder: Path) -> list[int]:
    """Write the files of one session, or of all that have segments. Returns the number of segments of each."""
    from bot.cli.environment import open_existing_database
    from bot.memory.admin import MemoryAdmin
    from bot.store.sessions import Sessions

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        admin = MemoryAdmin(database, clock)
        if session is not None:
            return [_write(folder, await admin.overview(await admin.find_session(session)))]
        written: list[int] = []
        for each in reversed(await Sessions(database, clock).recent(limit=1_000_000)):
            overview = await admin.overview(each.id)
            if overview.tiers:
                written.append(_write(folder, overview))
        return written


def _write(folder: Path, overview: SegmentOverview) -> int:
    """Write one session's files and return the number of segments."""
    from bot.memory.admin import file_name, location_of
    from compaction.memory.export_format import queue_json, segment_json

    for tier in overview.tiers:
        _write_json(folder / location_of(tier.kept), segment_json(tier.kept.segment, overview.record(tier)))
    name = f"{file_name(overview.session_id)}{_QUEUE_ENDING}"
    _write_json(folder / QUEUE_FOLDER / name, queue_json(overview.queue()))
    return len(overview.tiers)


def _write_json(path: Path, content: object) -> None:
    try:
        make_private_folder(path.parent)
        write_private_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ExchangeFileError(
            f"{path} cannot be written: {reason}. Name a folder you may write to, with room on its disk."
        ) from error


def _find_files(paths: list[Path]) -> list[Path]:
    """Return the JSON files under `paths`, segments before queues."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(path.rglob("*.json"))
        elif path.exists():
            found.append(path)
        else:
            raise ExchangeFileError(f"There is no {path}. Name a file or folder that `roomtone memory export` wrote.")
    if not found:
        raise ExchangeFileError("There is no JSON file in what was named, so there is nothing to import.")
    return sorted(found, key=lambda path: path.name.endswith(_QUEUE_ENDING))


async def _import_all(settings: Settings, files: list[Path], guild: int | None) -> _ImportCounts:
    from bot.cli.environment import may_migrate
    from bot.store.database import open_database
    from bot.store.segment_import import SegmentImporter, SegmentImportError
    from compaction.memory.export_format import ExportFormatError

    done = _ImportCounts()
    storage = settings.storage
    # The only `memory` command that may create the database.
    async with open_database(storage.database, migrates=may_migrate(storage), data_dir=storage.data_dir) as database:
        importer = SegmentImporter(database)
        for path in files:
            try:
                await _import_file(importer, path, guild, done)
            except (ExportFormatError, SegmentImportError, ExchangeFileError) as error:
                done.problems.append(f"{path}: {error}")
    return done


async def _import_file(importer: object, path: Path, guild: int | None, done: _ImportCounts) -> None:
    from bot.store.segment_import import ImportResult, SegmentImporter
    from compaction.memory.export_format import is_queue, read_paragraph, read_queue, read_record
    from compaction.model import SessionId

    assert isinstance(importer, SegmentImporter), "the caller made it"
    written = _read_json(path)
    # Clocks differ. A time beyond that would keep the session from ever being deleted for its age.
    latest = SystemClock().now() + DAY_S
    if is_queue(written):
        session_id = SessionId(_id_of_file(path.name.removesuffix(_QUEUE_ENDING)))
        queued, missing = await importer.import_queue(session_id, read_queue(written, latest=latest))
        done.queued += queued
        if missing:
            done.problems.append(f"{path}: not stored, so not queued: {', '.join(missing)}.")
        return
    archived = _ARCHIVE_FOLDER in path.parts
    result = await importer.import_record(
        read_record(written, latest=latest),
        paragraph=read_paragraph(written),
        archived_at=SystemClock().now() if archived else None,
        guild_id=guild,
    )
    if result is ImportResult.NEW:
        done.new += 1
    else:
        done.known += 1


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ExchangeFileError(f"it cannot be read ({error.strerror or type(error).__name__}).") from error
    except (ValueError, RecursionError) as error:
        raise ExchangeFileError("it is not JSON. Export it again, or repair it by hand.") from error


def _id_of_file(name: str) -> str:
    """Return the id of a file name that `bot.memory.admin.file_name` made."""
    from urllib.parse import unquote

    return unquote(name)
