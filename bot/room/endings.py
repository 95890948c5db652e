"""Why a room ends, where a part has to know it. The log and the events have the same words."""

from __future__ import annotations

from typing import Final

from bot.errors import BotError

# The process ends: nobody has sent the bot away.
PROCESS_ENDS: Final = "stopped"
# Another process goes on with the session, which does not end.
HANDED_OVER: Final = "handed_over"
# Somebody moved the bot into another channel.
MOVED: Final = "moved"


class ProcessLostError(BotError):
    """The process of the room has ended or does not answer. The message says which."""
