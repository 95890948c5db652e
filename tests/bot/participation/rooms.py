"""A room that can be told to be silent."""

from __future__ import annotations

from bot.participation.participation import Participation


class SilencedRoom(Participation):
    """A room that counts how often it was told to stop speaking."""

    session_id = "evening"

    def __init__(self) -> None:
        self.silences = 0

    def stop_speaking(self) -> None:
        """Count the call."""
        self.silences += 1
