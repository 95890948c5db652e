"""Divides the bot's shards into groups. Each group is served by one process. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cluster.ray_access import ClusterError
from bot.shards import MOST_SHARDS, Shards, parse_shards

_PREFIX = "shards "
# An actor's name is its own while it is there, so the one that a group moves to has another.
_MOVED = " (moved)"
# Discord lets one shard of a bot identify in this time ("Sharding" in its reference, with a `max_concurrency` of 1).
IDENTIFY_S = 5


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """The shards of one process. `number`: of the group, from 0; its pages are at `web.port` plus this."""

    shards: Shards
    number: int = 0

    @property
    def name(self) -> str:
        """Return the name of its actor in Ray, and of each second one to which it moves."""
        return f"{_PREFIX}{self.shards}"


def divided(total: int, groups: int) -> list[ShardGroup]:
    """Return `total` shards in so many groups, as even as they can be. Raises `ClusterError`."""
    if not 1 <= groups <= total <= MOST_SHARDS:
        raise ClusterError(f"{total} shards cannot be divided into {groups} groups: give 1 to {total} groups.")
    bounds = [total * number // groups for number in range(groups + 1)]
    return [
        ShardGroup(Shards(tuple(range(bounds[number], bounds[number + 1])), total), number) for number in range(groups)
    ]


def shards_of(name: str) -> Shards | None:
    """Return the shards of an actor with this name; None: it keeps none."""
    return parse_shards(name.removeprefix(_PREFIX).removesuffix(_MOVED)) if name.startswith(_PREFIX) else None


def name_of_next(name: str) -> str:
    """Return the name of the actor to which the group of an actor moves."""
    return name.removesuffix(_MOVED) if name.endswith(_MOVED) else f"{name}{_MOVED}"
