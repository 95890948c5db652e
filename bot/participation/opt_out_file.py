"""The file with opt-outs that could not be stored, so that a restart while the database is away forgets none.

A database can be away while the folder can be written: PostgreSQL is on another machine, and a SQLite file may be
locked, damaged or on its last page. The file has ids of servers and people alone, as the database has, with mode 0600;
it is there only while something waits. Each gateway process has a data folder of its own, so nobody else writes it.

It has opt-outs only. An opt-in that is lost means that somebody is not heard and asks again; one that is read from an
old file could have somebody heard who has opted out since.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import structlog

from bot.private_files import replace_private_text
from bot.store.number_range import LARGEST_NUMBER

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

log = structlog.get_logger()

# In the data folder.
FILE_NAME = "waiting-opt-outs.json"
# Two numbers of 20 digits for each of `waiting_opt_outs.MOST_WAITING` people, and much room.
_MOST_BYTES = 200_000
_REMEDY = "Some people who opted out while the database was away may be heard again. Tell the servers."


def read_opt_outs(file: Path) -> frozenset[tuple[int, int]]:
    """Return the opt-outs in the file: server and person. Entries that are none are logged and left out.

    A file of which nothing can be read is logged and gets the name `….unreadable`, so that the next one that is written
    does not replace it.
    """
    try:
        with file.open("rb") as opened:
            listed = json.loads(opened.read(_MOST_BYTES))
        if not isinstance(listed, list):
            raise TypeError("not a list")
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError, RecursionError) as error:
        aside = _moved_aside(file)
        log.warning("waiting_opt_outs_unreadable", path=str(aside), error_class=type(error).__name__, remedy=_REMEDY)
        return frozenset()
    valid = [entry for entry in map(_opt_out, listed) if entry is not None]
    if len(valid) < len(listed):
        log.warning("waiting_opt_outs_damaged", path=str(file), count=len(listed) - len(valid), remedy=_REMEDY)
    return frozenset(valid)


def write_opt_outs(file: Path, opt_outs: Collection[tuple[int, int]]) -> None:
    """Write the opt-outs in one step, or remove the file if there are none. Raises `OSError`.

    They outlive a power failure. A removal may not, and then they are stored once more.
    """
    if not opt_outs:
        file.unlink(missing_ok=True)
        return
    replace_private_text(file, json.dumps(sorted(opt_outs)), durable=True)


def _moved_aside(file: Path) -> Path:
    """Give the file another name. Returns where it is now."""
    try:
        return file.replace(file.with_name(f"{file.name}.unreadable"))
    except OSError:
        return file


def _opt_out(entry: object) -> tuple[int, int] | None:
    """Return an entry of the file if it is an opt-out."""
    match entry:
        case [int() as guild_id, int() as person_id] if _is_id(guild_id) and _is_id(person_id):
            return guild_id, person_id
        case _:
            return None


def _is_id(value: int) -> bool:
    return not isinstance(value, bool) and 0 < value <= LARGEST_NUMBER
