"""Messages that people type to the bot."""

from __future__ import annotations

from bot.channel.port import Person, Recording
from tests.fakes.room_channel import ADA


class Message:
    """A message that somebody typed, with the answers that it got. `refused`: Discord takes none."""

    def __init__(
        self, text: str, *, person: Person = ADA, refused: bool = False, recording: Recording | None = None
    ) -> None:
        self.person, self.text = person, text
        self.refused, self.recording = refused, recording
        self.answers: list[str] = []

    async def answer(self, text: str) -> bool:
        if not self.refused:
            self.answers.append(text)
        return not self.refused
