"""What a command answers when the store fails. The error says why and what helps."""

from __future__ import annotations

from bot.participation.all_guilds import NOT_STORED_YET, NotStoredYetError, ParticipationUnreadError
from bot.texts.text import Text, sentence_of
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


def not_chosen(error: Exception, *, unless_stored: Text = NOT_STORED) -> Text:
    """Return what became of a choice that failed. `unless_stored`: what holds if it could not be stored."""
    reason = sentence_of(error)
    match error:
        case ParticipationUnreadError():
            return Text(
                "I cannot look up now how I take part on this server, so nothing was changed. {error}", error=reason
            )
        case NotStoredYetError():
            return NOT_STORED_YET.fill(error=reason)
        case StoreError():
            return unless_stored.fill(error=reason)
        case _:
            return reason
