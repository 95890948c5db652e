"""What people are told about shared screens, in plain sentences: on the page, by the commands, in the timeline."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import Sequence


SURFACES = {"monitor": "the whole screen", "window": "a window", "browser": "a browser tab"}
ANY_SURFACE = "a screen"
# A recap is one turn; what it tells of more than this is in the notes.
RECAP_CHARS = 600


class ScreenError(BotError):
    """A screen can't be shared or looked at: the message says why and what to do."""


class ShareEnd(StrEnum):
    """Why a share is over."""

    STOPPED = "stopped"
    COMMAND = "command"
    LEFT = "left"
    LOST = "lost"
    SUPERSEDED = "superseded"
    CLOSED = "closed"
    MISBEHAVED = "misbehaved"
    BROKEN = "broken"
    OPTED_OUT = "opted_out"


# What is seen is remembered like what is said.
OPTED_OUT = "You asked me not to hear you, and a shared screen is remembered like what is said. /opt-in changes that."

# For the person who shared, on the page.
END_MESSAGES = {
    ShareEnd.STOPPED: "You stopped sharing.",
    ShareEnd.COMMAND: "Sharing was ended with /watch stop.",
    ShareEnd.LEFT: "You left the voice channel.",
    ShareEnd.LOST: "The connection was lost for too long.",
    ShareEnd.SUPERSEDED: "You share from another page now.",
    ShareEnd.CLOSED: "The bot has left the voice channel.",
    ShareEnd.MISBEHAVED: "This page sent what no picture of a screen is.",
    ShareEnd.BROKEN: "Something in the bot broke.",
    ShareEnd.OPTED_OUT: "You asked the bot not to hear you, so it does not see your screen either.",
}


def describe_surface(told: object) -> str:
    """Return what is shared, by what the browser calls it; anything else is a screen."""
    return SURFACES.get(told, ANY_SURFACE) if isinstance(told, str) else ANY_SURFACE


def format_share_start(name: str, surface: str) -> str:
    """Return the turn that stands in the timeline when a share begins."""
    return f"{name} shares {surface} with the bot from now on."


def format_recap(name: str, surface: str, *, minutes: int, seen: Sequence[str]) -> str:
    """Return the turn that stands in the timeline when a share is over. `seen`: its notes, oldest first."""
    length = "less than a minute" if minutes < 1 else f"{minutes} minute{'' if minutes == 1 else 's'}"
    told = f"{name} stopped sharing {surface} after {length}."
    lead = " Last seen on it: "
    room, parts = RECAP_CHARS - len(told) - len(lead) - 1, list[str]()
    for what in reversed(seen):
        if len(what) + 2 > room:
            break
        parts.insert(0, what.rstrip("."))
        room -= len(what) + 2
    return f"{told}{lead}{'; '.join(parts)}." if parts else told
