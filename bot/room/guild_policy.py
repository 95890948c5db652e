"""What holds in a guild: what its moderators have chosen, or else the settings; and how much a prompt may be.

A choice that can't be read never stops a reply: the settings hold then, and the log says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.store.guilds import GuildChoice
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.llm.budget import Budget
    from compaction.model import Mode

log = structlog.get_logger()

# More than any model takes: for calls that are sent as they are.
NO_LIMIT_TOKENS = 1 << 40


class Choices(Protocol):
    """Where guilds' choices are; `bot.store.guilds` has them. Raises `StoreError`."""

    async def choice(self, guild_id: int) -> GuildChoice:
        """Return what the guild has chosen."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a prompt is built: the session's mode, how many tokens it may cost by `count`, and whether that
    is enforced. `condense`: a summary of what is left out is put in. `instructions`: the server's own, or empty."""

    mode: Mode
    max_input_tokens: int
    enforced: bool
    count: Callable[[str], int]
    condense: bool
    instructions: str = ""


class GuildPolicy:
    """Says what holds. `mode`: that of the settings. `max_output_tokens`: how long an answer may be.

    `instructions`: what the operator wants said to the model on each server, by its id.
    """

    def __init__(
        self,
        choices: Choices,
        budget: Budget,
        *,
        mode: Mode,
        max_output_tokens: int,
        instructions: Mapping[str, str] | None = None,
    ) -> None:
        self._choices = choices
        self._budget = budget
        self._mode = mode
        self._max_output_tokens = max_output_tokens
        self._instructions = instructions or {}

    async def mode(self, guild_id: int) -> Mode:
        """Return how the guild's sessions remember."""
        choice = await self._choice(guild_id)
        return self._mode if choice.mode is None else choice.mode

    async def terms(self, guild_id: int) -> Terms:
        """Return on what terms the next prompt in the guild is built."""
        choice = await self._choice(guild_id)
        settings = self._budget.settings
        enforced = settings.enabled if choice.budget_enabled is None else choice.budget_enabled
        room = self._budget.room(max_output_tokens=self._max_output_tokens)
        return Terms(
            mode=self._mode if choice.mode is None else choice.mode,
            max_input_tokens=room if enforced else NO_LIMIT_TOKENS,
            enforced=enforced,
            count=self._budget.count,
            condense=settings.summarize_on_truncate,
            instructions=_joined(self._instructions.get(str(guild_id), ""), choice.persona or ""),
        )

    async def _choice(self, guild_id: int) -> GuildChoice:
        try:
            return await self._choices.choice(guild_id)
        except StoreError as error:
            log.warning("guild_choice_unread", guild_id=guild_id, problem=str(error))
            return GuildChoice()


def _joined(*texts: str) -> str:
    return "\n".join(text.strip() for text in texts if text.strip())
