"""Combines what a server has chosen with the settings: how its sessions remember, and how large a prompt may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.guild import PromptPolicy
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from bot.llm.budgeted import Budget
    from bot.server_settings import ServerSettingsBook
    from compaction.model import Mode

# More than any model takes, for prompts that are not limited.
NO_LIMIT_TOKENS = 1 << 40


class GuildPolicy:
    """The policy of all guilds. `mode`: the default, from the settings. `max_output_tokens`: the limit of a reply."""

    def __init__(
        self,
        servers: ServerSettingsBook,
        budget: Budget,
        *,
        mode: Mode,
        max_output_tokens: int,
    ) -> None:
        self._servers = servers
        self._budget = budget
        self._mode = mode
        self._max_output_tokens = max_output_tokens

    def mode(self, guild_id: int) -> Mode:
        """Return the memory mode of the guild's sessions."""
        choice = self._servers.of(guild_id)
        return self._mode if choice.mode is None else choice.mode

    def prompt_policy(self, guild_id: int) -> PromptPolicy:
        """Return how the guild's next prompt is built."""
        choice = self._servers.of(guild_id)
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
