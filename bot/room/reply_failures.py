"""What the channel reads of an answer that failed or could not be spoken. Pure.

Somebody asked and waits, so what could not be said is written each time. Why is told once while it lasts: a voice that
is away for an evening would else fill the channel with the same paragraph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.brain.reply import Reply

WANTED_TO_SAY = "I wanted to say:"


class ReplyFailures:
    """One room's."""

    def __init__(self) -> None:
        # Why answers could not be spoken, as far as people were told, since one was.
        self._told: set[str] = set()

    def of(self, reply: Reply) -> str:
        """Return what is written of an answer that is over; empty where there is nothing to write."""
        if reply.failure is None:
            if reply.text:
                self._told.clear()
            return ""
        if not reply.unsaid:
            return reply.failure
        words = f"{WANTED_TO_SAY} {reply.unsaid}"
        if reply.failure in self._told:
            return words
        self._told.add(reply.failure)
        return f"{reply.failure}\n{words}"
