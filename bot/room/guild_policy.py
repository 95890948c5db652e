"""Combines a guild's choice with the settings: how its sessions remember, and how large a prompt may be.

If the choice cannot be read, the settings apply, and the log says so; a reply never fails because of it. The store
keeps what it has read (`bot.store.guilds`), so a database that is away for a moment changes no server's memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.guild import GuildChoice, PromptPolicy
from compaction.errors import StoreError
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from bot.guild import GuildChoices
    from bot.llm.budget import Budget
    from compaction.model import Mode

log = structlog.get_logger()

# More than any model takes, for prompts that are not limited.
NO_LIMIT_TOKENS = 1 << 40


class GuildPolicy:
    """The policy of all guilds. `mode`: the default, from the settings. `max_output_tokens`: the limit of a reply."""

    def __init__(
        self,
        choices: GuildChoices,
        budget: Budget,
        *,
        mode: Mode,
        max_output_tokens: int,
    ) -> None:
        self._choices = choices
        self._budget = budget
        self._mode = mode
        self._max_output_tokens = max_output_tokens

    async def mode(self, guild_id: int) -> Mode:
        """Return the memory mode of the guild's sessions."""
        choice = await self._choice(guild_id)
        return self._mode if choice.mode is None else choice.mode

    async def prompt_policy(self, guild_id: int) -> PromptPolicy:
        """Return how the guild's next prompt is built."""
        choice = await self._choice(guild_id)
        settings = self._budget.settings
        enforced = settings.enabled if choice.budget_enabled is None else choice.budget_enabled
        room = self._budget.room(max_output_tokens=self._max_output_tokens)
        return PromptPolicy(
            mode=self._mode if choice.mode is None else choice.mode,
            max_input_tokens=room if enforced else NO_LIMIT_TOKENS,
            enforced=enforced,
            summarise_dropped=settings.summarize_on_truncate,
            trim=self._budget.trim_options,
            # A server's manager may not write the operator's sections.
            instructions=inline(choice.persona or "").strip(),
        )

    async def _choice(self, guild_id: int) -> GuildChoice:
        try:
            return await self._choices.choice(guild_id)
        except StoreError as error:
            log.warning("guild_choice_unread", guild_id=guild_id, problem=error)
            return GuildChoice()
