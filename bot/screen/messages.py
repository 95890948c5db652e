"""The sentences about shared screens: on the share page, in command replies, and in the timeline."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from bot.errors import BotError
from bot.texts.text import Text
from bot.time_phrases import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

SURFACES = {"monitor": Text("the whole screen"), "window": Text("a window"), "browser": Text("a browser tab")}
ANY_SURFACE = Text("a screen")
# A recap is one turn. The notes contain the rest.
RECAP_CHARS = 600


class ScreenError(BotError):
    """A screen can't be shared or looked at. The message gives the reason and the remedy."""


class ShareEnd(StrEnum):
    """Why a share ended. The values go to the page and to the log."""

    STOPPED = "stopped"
    COMMAND = "command"
    LEFT = "left"
    LOST = "lost"
    SUPERSEDED = "superseded"
    CLOSED = "closed"
    HANDED_OVER = "handed_over"
    MISBEHAVED = "misbehaved"
    BROKEN = "broken"
    OPTED_OUT = "opted_out"


NOT_HEARD = Text(
    "I do not hear you here, so I cannot look at your screen. Press “Hear me” below my notice. If "
    "you used /opt-out, use /opt-in. Then type /watch start again."
)
NO_ROOM_TO_SHARE_IN = Text("I am not in a voice channel here. First join one and use /join.")
TOO_MANY = Text("People already share as many screens here as I can watch. Ask somebody to stop first.")

# Shown on the page to the person who shared.
END_MESSAGES = {
    ShareEnd.STOPPED: Text("You stopped sharing."),
    ShareEnd.COMMAND: Text("Somebody stopped the sharing with /watch stop."),
    ShareEnd.LEFT: Text("You left the voice channel."),
    ShareEnd.LOST: Text("This page was not connected for too long."),
    ShareEnd.SUPERSEDED: Text("You are sharing from another page now."),
    ShareEnd.CLOSED: Text("The bot has left the voice channel."),
    ShareEnd.HANDED_OVER: Text("The bot is still in the voice channel, but another copy of it works there now."),
    ShareEnd.MISBEHAVED: Text("This page sent something that is not a picture of a screen."),
    ShareEnd.BROKEN: Text("Something went wrong inside the bot."),
    ShareEnd.OPTED_OUT: Text("You asked the bot not to hear you, so it does not see your screen either."),
}


def describe_surface(surface: object) -> str:
    """Return a phrase for a `displaySurface` of the browser; an unknown one is 'a screen'."""
    return SURFACES.get(surface, ANY_SURFACE) if isinstance(surface, str) else ANY_SURFACE


def format_share_start(name: str, surface: str) -> str:
    """Return the text of the timeline turn for the start of a share."""
    return f"{name} shares {surface} with the bot from now on."


def format_recap(name: str, surface: str, *, lasted_s: float, seen: Sequence[str]) -> str:
    """Return the text of the timeline turn for the end of a share. `seen`: its notes, oldest first."""
    sentence = f"{name} stopped sharing {surface} after {format_duration(lasted_s)}."
    lead = " Last seen on it: "
    room, parts = RECAP_CHARS - len(sentence) - len(lead) - 1, list[str]()
    for what in reversed(seen):
        if len(what) + 2 > room:
            break
        parts.insert(0, what.rstrip("."))
        room -= len(what) + 2
    return f"{sentence}{lead}{'; '.join(parts)}." if parts else sentence


class NotAdmittedError(BotError):
    """A page may not share. `reason`: one word for the page. The message is a plain sentence for the person."""

    def __init__(self, reason: str, sentence: Text) -> None:
        super().__init__(sentence)
        self.reason = reason


class PageClosedError(Exception):
    """The connection is over: its share has ended, or the page has opened another connection."""
