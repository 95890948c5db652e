"""Decides when the bot comes into a voice channel without being called, and when it goes along to another. Pure.

The server's managers make the rules (`/settings`). Only an arrival can bring the bot:
it never comes by itself at the start, or because somebody changed a setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.room.endings import EXPELLED, LEFT, LONGEST, NOT_ANNOUNCED

if TYPE_CHECKING:
    from bot.server_settings import ServerSettings

# Whoever ended the session so does not want the bot back at once: it waits until the channel has been empty.
DECLINING_ENDS = frozenset({LEFT, EXPELLED, LONGEST, NOT_ANNOUNCED})


@dataclass(frozen=True, slots=True)
class Arrival:
    """A person has come into a voice channel. `people`: how many are there now, without bots.

    `came_from`: the voice channel that they left for it, if any. `declined`: the bot was sent away from there, and the
    channel has not been empty since.
    """

    person_id: int
    channel_id: int
    people: int
    came_from: int | None = None
    declined: bool = False


@dataclass(frozen=True, slots=True)
class BotStay:
    """The channel that the bot is in, and how many people are there with it."""

    channel_id: int
    people: int


def should_go(rules: ServerSettings, arrival: Arrival, stay: BotStay | None) -> bool:
    """Return whether the bot goes to the channel of an arrival. `stay`: where it is; None: in no voice channel."""
    if stay is None:
        return not arrival.declined and _should_join(rules, arrival)
    if arrival.channel_id == stay.channel_id or arrival.came_from != stay.channel_id:
        return False
    match rules.follow:
        case "nobody":
            return False
        case "people":
            return arrival.person_id in rules.auto_join_with
        case "everybody":
            return stay.people == 0


def _should_join(rules: ServerSettings, arrival: Arrival) -> bool:
    enough = arrival.channel_id in rules.auto_join_channels and arrival.people >= rules.auto_join_people
    return enough or arrival.person_id in rules.auto_join_with
