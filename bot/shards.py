"""Which part of Discord's servers this process serves.

Discord divides the servers of a large bot into shards, by their ids. Each shard has a connection of its own, so several
processes can share a bot. Without a choice of the operator one process serves all servers, as the only shard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# The choice that leaves the number of shards to Discord, all of them in one process.
AUTO = "auto"
# More than the largest bots have. `bot.store.dialects.postgresql_lock` puts a shard and the total into 31 bits.
MOST_SHARDS = 16_384
# A guild's id holds its time of creation above these bits (Discord's reference, "Sharding").
_ID_SHIFT = 22
_WRITTEN = re.compile(r"(?P<ids>\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*)/(?P<total>\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards `ids` of `total`, in order. `ids` is not empty."""

    ids: tuple[int, ...]
    total: int

    def of(self, guild_id: int) -> int:
        """Return the shard of a server, whichever process serves it."""
        return (guild_id >> _ID_SHIFT) % self.total

    def serves(self, guild_id: int) -> bool:
        """Return whether this process serves a server."""
        return self.of(guild_id) in self.ids

    @property
    def is_divided(self) -> bool:
        """Return whether there is more than one shard, here or elsewhere."""
        return self.total > 1

    @property
    def is_whole(self) -> bool:
        """Return whether this process serves every server."""
        return len(self.ids) == self.total

    @property
    def leads(self) -> bool:
        """Return whether this process does what is done once for the whole bot: it has the first shard."""
        return 0 in self.ids

    def __str__(self) -> str:
        return f"{ranges(self.ids)}/{self.total}"


ONLY_SHARD = Shards((0,), 1)


# What a process prints when it is loaded and follows another one.
WAITS = "Loaded. Waiting until the process before has handed its rooms over …"


class Succession(Enum):
    """What a process does if another one still serves its shards."""

    # It waits for as long as an ended process takes to close, and refuses to start then.
    REFUSES = auto()
    # The other one was given up, so its connections to the database are ended.
    TAKES_OVER = auto()
    # The other one goes on until everything is loaded here, and hands its rooms over. However long that takes.
    FOLLOWS = auto()


def whole(total: int) -> Shards:
    """Return all of `total` shards."""
    return Shards(tuple(range(total)), total)


def ranges(ids: Iterable[int]) -> str:
    """Return numbers as people write them: 0-3, 7."""
    # What follows one after the other is as far from its place in the list.
    runs = [[each for _, each in run] for _, run in groupby(enumerate(sorted(ids)), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def parse_shards(text: str) -> Shards:
    """Read the operator's choice: `0-3/16`, `5/16` or `0-3,7/16`. Raises `ValueError` with a plain sentence."""
    found = _WRITTEN.fullmatch("".join(text.split()))
    if found is None:
        raise ValueError(f"{text!r} names no shards. Write FIRST-LAST/TOTAL, for example 0-3/16, or {AUTO}.")
    total = int(found["total"])
    if not 1 <= total <= MOST_SHARDS:
        raise ValueError(f"{total} is not a number of shards: it must be from 1 to {MOST_SHARDS}.")
    ids: list[int] = []
    for part in found["ids"].split(","):
        first, _, last = part.partition("-")
        ids += range(int(first), int(last or first) + 1)
        if int(last or first) >= total or int(last or first) < int(first):
            raise ValueError(f"{part} is not among {total} shards, which are numbered from 0 to {total - 1}.")
    if len(set(ids)) != len(ids):
        raise ValueError(f"{text!r} names a shard twice.")
    return Shards(tuple(sorted(ids)), total)
