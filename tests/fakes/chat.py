"""A text chat without Discord. A test adds files and reads what was posted."""

from __future__ import annotations

from collections.abc import Sequence

from bot.channel.port import ChatError, DroppedFile
from rehearsal.roomtone.written.channel import SilentChat


class FakeChat(SilentChat):
    """Implements `bot.channel.port.Chat` for tests. If `error` is set, every operation raises it."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[int, tuple[DroppedFile, bytes]] = {}
        self.calls: list[bool] = []
        self.error: ChatError | None = None

    def drop(
        self, name: str, content: bytes, *, by: str = "Ada", by_id: int = 1, content_type: str = "text/plain"
    ) -> DroppedFile:
        """Add a file to the chat. Each file is one minute newer than the one before."""
        number = len(self.contents)
        file = DroppedFile(number, name, len(content), content_type, by, by_id, 1_760_000_000.0 + 60 * number)
        self.contents[number] = (file, content)
        return file

    async def files(self, *, most: int) -> Sequence[DroppedFile]:
        """Return at most `most` files, newest first."""
        if self.error is not None:
            raise self.error
        return [file for file, _ in reversed(self.contents.values())][:most]

    async def fetch(self, file: DroppedFile, *, max_bytes: int) -> bytes:
        """Return the first `max_bytes` bytes of a file."""
        if self.error is not None:
            raise self.error
        return self.contents[file.id][1][:max_bytes]

    async def post(self, text: str, *, calls_asker: bool = False) -> None:
        """Store the posted text, and whether it calls who asks."""
        if self.error is not None:
            raise self.error
        self.posted.append(text)
        self.calls.append(calls_asker)
