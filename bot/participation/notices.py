"""What the bot writes into the channel about its own silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.texts.text import counted

if TYPE_CHECKING:
    from bot.texts.text import Text


def silenced_for(minutes: int) -> Text:
    """Return the sentence that the bot is silent for so many minutes."""
    return counted(
        minutes,
        "I am silent for {count} minute, or until /talk. I go on listening.",
        "I am silent for {count} minutes, or until /talk. I go on listening.",
    )


def over_ceiling(minutes: int) -> Text:
    """Return the notice that the hour's ceiling is reached, and for how long."""
    return counted(
        minutes,
        "I have reached this server's hourly limit, so I am silent for about a minute. I go on listening; /status "
        "shows the figures.",
        "I have reached this server's hourly limit, so I am silent for about {count} minutes. I go on listening; "
        "/status shows the figures.",
    )
