"""What a command answers when the store fails. The error says why and what helps."""

from __future__ import annotations

from bot.participation.all_guilds import NotStoredError
from bot.texts.text import Text, sentence_of
from compaction.errors import StoreError

NOT_READ = Text("I could not read it now. {error} Try again in a moment.")
NOT_LOOKED_UP = Text("I cannot look that up now. {error}")
HOLDS_FOR_NOW = Text(
    "That holds, but I could not store it: it ends when I am started again. Use the command once more in a moment. "
    "{error}"
)
NOT_STORED = Text("That could not be stored. {error}")


def not_read(error: StoreError) -> Text:
    """Return that what somebody asked for could not be read."""
    return NOT_READ.fill(error=sentence_of(error))


def not_looked_up(error: StoreError) -> Text:
    """Return that the answer to a question could not be looked up."""
    return NOT_LOOKED_UP.fill(error=sentence_of(error))


def not_chosen(error: Exception) -> Text:
    """Return what became of a choice that failed."""
    reason = sentence_of(error)
    match error:
        case NotStoredError():
            return HOLDS_FOR_NOW.fill(error=reason)
        case StoreError():
            return NOT_STORED.fill(error=reason)
        case _:
            return reason
