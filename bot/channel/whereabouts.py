"""What the bot says of where it is, in commands and in rooms of any process."""

from __future__ import annotations

from bot.texts.text import Text

COMING = Text("I am coming to {channel}.")
HERE_ALREADY = Text("I am in {channel} already. Use /leave first.")
