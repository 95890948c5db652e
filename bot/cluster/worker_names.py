"""How room workers are called: by the gateway process that they serve, and by number. Pure.

A name is that of an actor in Ray, of a folder on its machine, and of a line that people read. So it has few kinds of
characters and a bound, and no two gateway processes share one.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_NAME: Final = re.compile(r"([a-z0-9.-]+)-worker-([1-9][0-9]{0,5})")
# An address that can be read in the name as it is. Any other, of IPv6 for example, is told by a digest.
_PLAIN: Final = re.compile(r"[a-z0-9.-]{1,40}:[0-9]{1,5}")
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9.]+")
_READABLE_CHARACTERS: Final = 40
# Longer than a port, so that no plain address reads like one with a digest.
_DIGEST_CHARACTERS: Final = 12


def worker_name(gateway: str, number: int) -> str:
    """Return the name of a worker. `gateway`: HOST:PORT where the bot listens."""
    return f"{_part(gateway)}-worker-{number}"


def numbered(name: str) -> tuple[str, int]:
    """Return what a name says of the gateway process, and the number: workers are sorted by both. `("", 0)`: it is
    no worker's name.
    """
    match = _NAME.fullmatch(name)
    return (match[1], int(match[2])) if match else ("", 0)


def serves(name: str, gateway: str) -> bool:
    """Return whether a worker of this name offers rooms to the bot that listens there."""
    return numbered(name)[0] == _part(gateway)


def names_to_add(there: Collection[str], count: int, gateway: str) -> list[str]:
    """Return the names of the workers that are missing: the lowest numbers that are free. `there`: of this gateway."""
    names: list[str] = []
    number = 1
    while len(there) + len(names) < count:
        if (name := worker_name(gateway, number)) not in there:
            names.append(name)
        number += 1
    return names


def _part(gateway: str) -> str:
    address = gateway.strip().casefold()
    if _PLAIN.fullmatch(address):
        return address.replace(":", "-")
    digest = hashlib.sha256(address.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    readable = _NOT_PLAIN.sub("-", address)[:_READABLE_CHARACTERS].strip("-.")
    return f"{readable}-{digest}" if readable else digest
