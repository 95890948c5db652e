"""What a share page is told when it comes, and why it may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.errors import BotError

if TYPE_CHECKING:
    from bot.texts.text import Text


class NotAdmittedError(BotError):
    """A page may not share. `reason`: one word for the page. The message is a plain sentence for the person."""

    def __init__(self, reason: str, sentence: Text) -> None:
        super().__init__(sentence)
        self.reason = reason


class PageClosedError(Exception):
    """The connection is over: its share has ended, or the page has opened another connection."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """The first message to an admitted page. `resume_secret`: lets the page reconnect. `sharing`: its share is still
    running. `reading`: who sees the pictures, a plain sentence. `trouble`: why they can't be read now, or empty.
    """

    who: str
    room: str
    server: str
    bot: str
    reading: Text
    resume_secret: str
    sharing: bool
    trouble: str = ""
