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

from bot.private_files import write_private_text

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

log = structlog.get_logger()

# In the data folder.
FILE_NAME = "waiting-opt-outs.json"
# Two numbers of 20 digits for each of `waiting_opt_outs.MOST_WAITING` people, and much room.
_MOST_BYTES = 200_000
# What the database can store. Discord's ids are smaller.
_MOST_ID = 2**63 - 1


def read_opt_outs(file: Path) -> frozenset[tuple[int, int]]:
    """Return the opt-outs in the file: server and person. A file that cannot be read is logged, and stays until the
    next one is written.
    """
    try:
        with file.open("rb") as opened:
            listed = json.loads(opened.read(_MOST_BYTES))
        return frozenset((_id(guild_id), _id(person_id)) for guild_id, person_id in listed)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError, RecursionError) as error:
        log.warning(
            "waiting_opt_outs_unreadable",
            path=str(file),
            error_class=type(error).__name__,
            remedy="Some people who opted out while the database was away may be heard again. Tell the servers.",
        )
        return frozenset()


def write_opt_outs(file: Path, opt_outs: Collection[tuple[int, int]]) -> None:
    """Write the opt-outs in one step, or remove the file if there are none. Raises `OSError`."""
    if not opt_outs:
        file.unlink(missing_ok=True)
        return
    fresh = file.with_name(f"{file.name}.new")
    write_private_text(fresh, json.dumps(sorted(opt_outs)))
    fresh.replace(file)


def _id(value: object) -> int:
    if type(value) is not int or not 0 < value <= _MOST_ID:
        raise ValueError("not an id")
    return value
