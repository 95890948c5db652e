"""`roomtone memory export` and `import`: segments and queues as files, in the shapes of docs/memory.md."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.errors import BotError

if TYPE_CHECKING:
    from bot.memory.admin import SegmentOverview
    from config.schema import Settings

QUEUE_FOLDER = "context_queue"
_QUEUE_ENDING = "_pending.json"
_ARCHIVE_FOLDER = "archived_context"


class ExchangeFileError(BotError):
    """A file cannot be read or written; one plain sentence a file."""


def export(
    folder: Annotated[Path, typer.Argument(help="Where to write; it is made if it is not there.", metavar="DIR")],
    session: Annotated[
        str | None, typer.Option("--session", help="Only this session (its id, or how it begins).", metavar="ID")
    ] = None,
) -> None:
    """Write segments and queues to files.

    Segments go to compressed_context/{segment_id}.json, archived ones to
    sessions/{session_id}/archived_context/{segment_id}.json, queues to context_queue/{session_id}_pending.json.
    """
    from config.load import load

    overviews = asyncio.run(_overviews(load(), session))
    written = sum(_write(folder, overview) for overview in overviews)
    typer.echo(f"Wrote {written} segments of {len(overviews)} sessions to {folder}.")


def import_files(
    paths: Annotated[
        list[Path], typer.Argument(help="Files, or folders as `roomtone memory export` writes them.", metavar="PATH")
    ],
    guild: Annotated[
        int | None, typer.Option("--guild", help="The server that sessions new to this bot belong to.", metavar="ID")
    ] = None,
) -> None:
    """Take segments and queues in from files.

    What is known is brought up to date; nothing is added to a session that has turns of its own. A file that cannot
    be used is told and left out; the others are taken.
    """
    from config.load import load

    done = asyncio.run(_bring(load(), _found(paths), guild))
    typer.echo(
        f"Brought {done.new} new segments, brought {done.known} up to date, and {done.waiting} entries of queues."
    )
    if done.trouble:
        raise ExchangeFileError("\n".join(done.trouble))


@dataclass
class _Done:
    new: int = 0
    known: int = 0
    waiting: int = 0
    trouble: list[str] = field(default_factory=list)


async def _overviews(settings: Settings, session: str | None) -> list[SegmentOverview]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin
    from bot.store.sessions import Sessions

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        admin = MemoryAdmin(database, clock)
        if session is not None:
            return [await admin.overview(await admin.find_session(session))]
        everybody = await Sessions(database, clock).recent(limit=1_000_000)
        found = [await admin.overview(each.id) for each in reversed(everybody)]
        return [overview for overview in found if overview.tiers]


def _write(folder: Path, overview: SegmentOverview) -> int:
    """Write one session's files; return how many segments they hold."""
    from bot.memory.admin import file_name, location_of
    from compaction.memory.export_format import queue_json, record_json

    count = 0
    for tier in overview.tiers:
        _write_json(folder / location_of(tier.kept), record_json(overview.record(tier)))
        count += 1
    name = f"{file_name(overview.session_id)}{_QUEUE_ENDING}"
    _write_json(folder / QUEUE_FOLDER / name, queue_json(overview.queue()))
    return count


def _write_json(path: Path, content: object) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ExchangeFileError(
            f"{path} cannot be written: {reason}. Name a folder you may write to, with room on its disk."
        ) from error


def _found(paths: list[Path]) -> list[Path]:
    """Return the JSON files there, those of segments before those of queues."""
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


async def _bring(settings: Settings, files: list[Path], guild: int | None) -> _Done:
    from bot.store.database import open_database
    from bot.store.segment_import import SegmentImporter, SegmentImportError
    from compaction.memory.export_format import ExportFormatError

    done = _Done()
    storage = settings.storage
    # The one command that may begin a memory: it brings one.
    async with open_database(storage.database_path) as database:
        bringing = SegmentImporter(database)
        for path in files:
            try:
                await _bring_one(bringing, path, guild, done)
            except (ExportFormatError, SegmentImportError, ExchangeFileError) as error:
                done.trouble.append(f"{path}: {error}")
    return done


async def _bring_one(bringing: object, path: Path, guild: int | None, done: _Done) -> None:
    from bot.clock import SystemClock
    from bot.store.segment_import import ImportResult, SegmentImporter
    from compaction.memory.export_format import is_queue, read_queue, read_record
    from compaction.model import SessionId

    assert isinstance(bringing, SegmentImporter), "made by the caller"
    written = _read_json(path)
    if is_queue(written):
        session_id = SessionId(_unfiled(path.name.removesuffix(_QUEUE_ENDING)))
        count, missing = await bringing.import_queue(session_id, read_queue(written))
        done.waiting += count
        if missing:
            done.trouble.append(f"{path}: not stored, so not queued: {', '.join(missing)}.")
        return
    archived = _ARCHIVE_FOLDER in path.parts
    brought = await bringing.import_record(
        read_record(written), archived_at=SystemClock().now() if archived else None, guild_id=guild
    )
    if brought is ImportResult.NEW:
        done.new += 1
    else:
        done.known += 1


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ExchangeFileError(f"it cannot be read ({error.strerror or type(error).__name__}).") from error
    except (ValueError, RecursionError) as error:
        raise ExchangeFileError("it is not JSON. Export it again, or mend it by hand.") from error


def _unfiled(name: str) -> str:
    """Return the id that `bot.memory.admin.file_name` made a file's name of."""
    from urllib.parse import unquote

    return unquote(name)
