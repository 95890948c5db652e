"""Why a room ends, where a part has to know it. The log and the events have the same words."""

from __future__ import annotations

from typing import Final

# The process ends: nobody has sent the bot away.
PROCESS_ENDS: Final = "stopped"
# Somebody moved the bot into another channel.
MOVED: Final = "moved"
