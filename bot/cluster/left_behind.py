"""The places for rooms on this machine whose actor is gone: they serve on, and are ended once they are not wanted.

While Ray is away nobody ends them, because people are in their rooms. Once it has been back for a while, each place has
an actor again, here or elsewhere. What has none here is one too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from bot.cluster.place_folder import places_here

if TYPE_CHECKING:
    from pathlib import Path

    from bot.clock import Clock
    from bot.cluster.place_folder import PlaceFolder

log = structlog.get_logger()

# Ray starts an actor anew within seconds. After the loss of its head, somebody has to ask for the places again, or the
# service of the first machine does, once Ray runs there.
WANTED_WITHIN_S: Final = 300.0
_LOOK_EVERY_S: Final = 5.0
_ENDED_EVERY_S: Final = 0.5


async def end_left_behind(cluster_folder: Path, clock: Clock) -> None:
    """Let places hand their rooms over that have had no actor for `WANTED_WITHIN_S`, until this is cancelled."""
    since: dict[str, float] = {}
    while True:
        alone = [place for place in places_here(cluster_folder) if place.process is not None and not place.is_kept]
        since = {place.name: since.get(place.name, clock.monotonic()) for place in alone}
        for place in alone:
            if clock.monotonic() - since[place.name] >= WANTED_WITHIN_S:
                log.info("place_left_behind", place=place.name)
                place.hand_over()
                # It takes a while; a second signal would end it at once.
                since[place.name] = clock.monotonic() + WANTED_WITHIN_S
        await clock.sleep(_LOOK_EVERY_S)


def places_in_use(cluster_folder: Path) -> list[PlaceFolder]:
    """Return the places of this machine that have a process."""
    return [place for place in places_here(cluster_folder) if place.process is not None]


async def hand_over_places(cluster_folder: Path, clock: Clock) -> None:
    """Let all places of this machine hand their rooms over, one after the other, and return when they have ended."""
    for place in places_in_use(cluster_folder):
        log.info("place_hands_over", place=place.name)
        place.hand_over()
        while place.process is not None:
            await clock.sleep(_ENDED_EVERY_S)
