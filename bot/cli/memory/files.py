"""`roomtone memory export`: segments and queues as files (`compaction.memory.segment_record`)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import count, say
from bot.clock import SystemClock
from bot.errors import SetupError
from bot.private_files import make_private_folder, write_private_text
from config.load import load

if TYPE_CHECKING:
    from bot.memory.admin import SegmentOverview
    from config.schema import Settings

QUEUE_FOLDER = "context_queue"
_QUEUE_ENDING = "_pending.json"


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
    from compaction.memory.segment_record import segment_json

    for tier in overview.tiers:
        _write_json(folder / location_of(tier.kept), segment_json(tier.kept.segment, overview.record(tier)))
    name = f"{file_name(overview.session_id)}{_QUEUE_ENDING}"
    _write_json(folder / QUEUE_FOLDER / name, overview.queue())
    return len(overview.tiers)


def _write_json(path: Path, content: object) -> None:
    try:
        make_private_folder(path.parent)
        write_private_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise SetupError(
            f"{path} cannot be written: {reason}. Name a folder you may write to, with room on its disk."
        ) from error
