"""How `roomtone run` and `roomtone cluster rooms` start the processes of rooms."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.remote.link.address import RoomsAddress
    from bot.wiring.room_processes import RoomStart
    from config.schema import Settings


class RoomPlacement(StrEnum):
    """Where rooms run."""

    HERE = "here"
    PROCESSES = "processes"


def room_command(
    cluster: str | None, gateway: str, run_id: str, *, machine: str = "", rooms_each: int = 1, elsewhere: bool = False
) -> list[str]:
    """Return the command of a process for `rooms_each` rooms. It reads the same settings as this one. `elsewhere`: the
    bot's rooms may run on other machines too.
    """
    more = [] if cluster is None else ["--cluster", cluster]
    more += ["--elsewhere"] if elsewhere else []
    named = ["--machine", machine] if machine else []
    several = ["--rooms", str(rooms_each)] if rooms_each > 1 else []
    return [sys.executable, "-m", "bot", "room", gateway, run_id, *more, *named, *several]


def gateway_for_others(listen: RoomsAddress) -> str:
    """Return what `--gateway` is on other machines."""
    return f"THIS-MACHINE:{listen.port}" if listen.is_everywhere else str(listen)


def room_start(
    settings: Settings, rooms: RoomPlacement, listen: str | None, cluster: str | None, *, rooms_each: int = 1
) -> RoomStart | None:
    """Return how rooms get processes of their own; None: they get none. Raises `SetupError`.

    `rooms_each`: how many rooms one process runs. `listen`: HOST:PORT for other machines, for which the cluster's token
    is made if there is none.
    """
    from bot.errors import SetupError

    if rooms is RoomPlacement.HERE:
        if listen is not None:
            raise SetupError("--rooms-listen is for rooms in processes of their own. Add --rooms processes.")
        if rooms_each > 1:
            raise SetupError("--rooms-each is for rooms in processes of their own. Add --rooms processes.")
        return None
    from bot.wiring.room_processes import RoomStart

    command = partial(room_command, cluster, rooms_each=rooms_each)
    if listen is None:
        return RoomStart(command, rooms_each=rooms_each)
    from bot.cli.environment import cluster_folder
    from bot.cluster.address import read_token
    from bot.cluster.node import make_token
    from bot.remote.link.address import RoomsAddress

    address, folder = RoomsAddress.parsed(listen), cluster_folder(settings)
    make_token(folder)
    return RoomStart(partial(command, elsewhere=True), address, read_token(folder), rooms_each)
