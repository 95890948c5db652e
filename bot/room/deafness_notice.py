"""What people in a room read when the bot understands nobody, and when it does again. Pure."""

from __future__ import annotations

from typing import Final

from bot.texts.text import Text

UNDERSTANDS_NOBODY: Final = Text(
    "I cannot understand you: my speech recogniser fails, and what you say is lost. I go on trying. /status says more."
)
UNDERSTANDS_AGAIN: Final = Text("My speech recogniser works again: I understand you.")
# A recogniser that fails and works in turn must not fill the chat.
TELL_AGAIN_AFTER_S: Final = 600.0


class DeafnessNotice:
    """Remembers what a room was told."""

    def __init__(self) -> None:
        self._told_at: float | None = None
        self._is_deaf = False

    def next(self, *, is_deaf: bool, now: float) -> Text | None:
        """Return the sentence to write now, or None. `is_deaf`: the recogniser has failed several times in a row.
        `now`: monotonic seconds.
        """
        if is_deaf == self._is_deaf:
            return None
        if not is_deaf:
            self._is_deaf = False
            return UNDERSTANDS_AGAIN
        if self._told_at is not None and now - self._told_at < TELL_AGAIN_AFTER_S:
            return None
        self._is_deaf, self._told_at = True, now
        return UNDERSTANDS_NOBODY
