"""Values about one guild (a Discord server): when the bot speaks, whether it is silenced, how a prompt is built.

`bot.server_settings` has what a server has chosen. `bot.conversation.services` combines it with the operator's
settings for prompts, and `bot.participation.guild_state` for speech.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from compaction.budget.trim import TrimOptions

if TYPE_CHECKING:
    from compaction.model import Mode

# For longer silences there is `/silence`.
MOST_SILENT_MINUTES = 24 * 60


class VoiceMode(StrEnum):
    """When the bot speaks if several people are present. Each mode includes the one before."""

    NAME = "name"  # when it is called by name, also alone with somebody
    ENGAGED = "engaged"  # and when somebody goes on talking with it, and alone with one person
    FREE = "free"  # and when somebody asks the room


@dataclass(frozen=True, slots=True)
class Silence:
    """Whether the bot may speak on a guild. `always`: a manager silenced it, and only a manager can undo that.

    `session_id`: the session until whose end somebody silenced it. `until` (UTC epoch seconds): when a silence for some
    minutes ends, whatever the session is by then.
    """

    always: bool = False
    session_id: str | None = None
    until: float | None = None

    def applies(self, session_id: str | None, *, now: float) -> bool:
        """Return whether the bot is silent in that session. `now`: UTC epoch seconds."""
        return self.always or self.applies_for_now(session_id, now=now)

    def applies_for_now(self, session_id: str | None, *, now: float) -> bool:
        """Return whether the bot is silenced in that session for a time; ignores `always`."""
        if self.until is not None and now < self.until:
            return True
        return self.session_id is not None and self.session_id == session_id

    def silence_session(self, session_id: str) -> Silence:
        """Return a copy that silences the session until it ends. A silence for some minutes goes on if it is longer."""
        return replace(self, session_id=session_id)

    def silence_until(self, until: float) -> Silence:
        """Return a copy that silences all sessions until `until`, and then none."""
        return replace(self, session_id=None, until=until)

    def silence_always(self) -> Silence:
        return replace(self, always=True)

    def lift(self, *, by_manager: bool) -> Silence:
        """Return a copy without the silence for now, and without the guild's if a manager lifts it."""
        return Silence(always=self.always and not by_manager)


@dataclass(frozen=True, slots=True)
class PromptPolicy:
    """How the next prompt of a guild is built.

    `max_input_tokens`: the limit, in tokens as `trim` counts them; it applies if `enforced`. `instructions`: the
    operator's and the managers' for this guild, or empty.
    """

    mode: Mode
    max_input_tokens: int
    enforced: bool
    trim: TrimOptions = field(default_factory=TrimOptions)
    instructions: str = ""
