"""What a tail asks of the other gateway processes, and what they answer. Whatever comes in is checked strictly."""

from __future__ import annotations

import hashlib
import platform
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

if TYPE_CHECKING:
    from bot.shards import Shards

# On which requests come.
CHANNEL: Final = "roomtone_log"
# How often a tail that follows asks again, and for how long a process goes on without that.
RENEW_S: Final = 10.0
FORGET_S: Final = 30.0
# How much of what a log has already one process answers.
MOST_LINES: Final = 5_000
MOST_PATTERNS: Final = 20
MOST_PATTERN_CHARS: Final = 80
# As many processes as a tail listens to.
MOST_SEEN: Final = 64
MOST_SESSION_CHARS: Final = 100
# With a traceback of 40 calls.
MOST_LINE_CHARS: Final = 8_000
# The kernel draws it anew at each start; containers of a machine have the same.
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
_TailId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Pattern = Annotated[str, Field(max_length=MOST_PATTERN_CHARS)]
_Time = Annotated[str, Field(max_length=40)]
_Machine = Annotated[str, Field(max_length=64)]
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Answer with the lines of your log.

    `tail`: a number for this tail; its answers go to a channel of that name. `at`: when this was asked, by the
    database's clock, so that nobody can ask it again. `last`: only so many of those that the log
    has; None: as many as are told. `follow`: tell new ones too, until this is not asked again for `FORGET_S`.
    `since_s`: how long ago the tail began; a process that did not hear of it before begins there. None: this is the
    beginning. `seen`: the time of the last line from each log, where a process that was away goes on. `ends`: tell no
    more.
    """

    tail: _TailId
    machine: _Machine
    at: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    session: Annotated[str, Field(max_length=MOST_SESSION_CHARS)] | None = None
    patterns: Annotated[tuple[_Pattern, ...], Field(max_length=MOST_PATTERNS)] = ()
    last: Annotated[int, Field(ge=1)] | None = None
    follow: bool = False
    since_s: Annotated[float, Field(ge=0, le=1e8)] | None = None
    seen: Annotated[dict[_Hex, _Time], Field(max_length=MOST_SEEN)] = field(default_factory=dict)
    ends: bool = False


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """Lines of the log of a process, in order; none: the process is there.

    `origin`: of the log (`origin_of`). `run`: another one counts its lines from 0 again. `first`: the number of the
    first line. `caught_up`: all lines that the log had when it was asked were told. `older`: it has older ones, which
    are not told. `refused`: too many follow already, so nothing is told.
    """

    origin: _Hex
    machine: _Machine
    shards: Annotated[str, Field(max_length=2_000)]
    run: _Hex
    first: _Count = 0
    lines: Annotated[tuple[Annotated[str, Field(max_length=MOST_LINE_CHARS)], ...], Field(max_length=500)] = ()
    caught_up: bool = False
    older: bool = False
    refused: bool = False


def answers_channel(tail: str) -> str:
    """Return the channel on which a tail is answered."""
    return f"tail_{tail}"


def origin_of(folder: Path) -> str:
    """Return the mark of a log's folder: the same for all processes and containers that have the folder, until the
    machine is started again.
    """
    try:
        boot = _BOOT_ID.read_text("ascii").strip()
    except OSError:
        boot = platform.node()
    try:
        status = folder.stat()
        place = f"{status.st_dev} {status.st_ino}"
    except OSError:
        place = str(folder)
    return hashlib.sha256(f"{boot} {place}".encode()).hexdigest()[:16]


def own_machine() -> str:
    """Return the name of this machine."""
    return "".join(each for each in socket.gethostname() if each.isprintable())[:64]


def short_name(shards: Shards) -> str:
    """Return shards in one word: 0-3,7/16."""
    return str(shards).replace(" ", "")
