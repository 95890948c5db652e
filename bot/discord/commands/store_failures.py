"""What a command answers when the store fails. The error says why and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.texts.text import Text, sentence_of

if TYPE_CHECKING:
    from compaction.errors import StoreError

NOT_READ = Text("I could not read it now. {error} Try again in a moment.")
NOT_LOOKED_UP = Text("I cannot look that up now. {error}")
NOT_STORED = Text("That could not be stored. {error}")


def not_read(error: StoreError) -> Text:
    """Return that what somebody asked for could not be read."""
    return NOT_READ.fill(error=sentence_of(error))


def not_looked_up(error: StoreError) -> Text:
    """Return that the answer to a question could not be looked up."""
    return NOT_LOOKED_UP.fill(error=sentence_of(error))


def not_stored(error: StoreError) -> Text:
    """Return that what somebody has chosen could not be stored."""
    return NOT_STORED.fill(error=sentence_of(error))
