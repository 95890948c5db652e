"""What the model is given to answer one question: memory, people and quotes of one session, on the guild's policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import events
from bot.brain.context import build_context_messages
from bot.brain.skip import skip_instruction
from bot.room.asker import asker_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.brain.context import ModelContext
    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.reply import Question
    from bot.brain.tools.toolbox import Toolbox
    from bot.channel.participants import Participants
    from bot.guild import PromptPolicy
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.part import Participation
    from bot.room.services import RoomServices
    from compaction.session import SessionMemory


class PromptBuilder:
    """Builds the contexts of one room's answers. `report` tells a trouble that costs no answer: where, and what."""

    def __init__(
        self,
        means: RoomServices,
        *,
        guild_id: int,
        memory: SessionMemory,
        company: Participants,
        keeper: MemoryUpkeep | None,
        quoting: QuoteFinder | None,
        toolbox: Toolbox,
        part: Participation,
        report: Callable[[str, str], None],
    ) -> None:
        self._means = means
        self._guild_id = guild_id
        self._memory = memory
        self._company = company
        self._keeper = keeper
        self._quoting = quoting
        self._toolbox = toolbox
        self._part = part
        self._overtaken = memory.external_changes
        self._report = report

    async def server(self) -> str:
        """Return what holds on this server besides, as the operator and its moderators word it; empty if nothing."""
        policy = await self._prompt_policy()
        return "" if policy is None else policy.instructions

    async def context(self, question: Question) -> ModelContext:
        """Return what is sent to answer `question`. Raises `CompactionError`."""
        means = self._means
        policy = await self._prompt_policy()
        self._let_go_of_forgotten()
        quotes = () if self._quoting is None else await self._quoting.find(question.turn, self._memory)
        context = build_context_messages(
            self._memory,
            question.turn,
            system=(self._instructions(policy), *self.besides(question)),
            max_input_tokens=means.max_input_tokens if policy is None else policy.max_input_tokens,
            now=means.clock.now(),
            zone=means.zone,
            quotes=quotes,
            participants=()
            if self._keeper is None
            else self._keeper.participants(self._part.heard(self._company.present())),
            policy=policy,
            toolbox=self._toolbox,
            asker=asker_of(question, self._company),
            may_skip=question.may_skip,
        )
        if self._keeper is not None:
            self._keeper.sent(context.parts)
        self._part.sent(sum(part.tokens for part in context.parts))
        means.observe(events.ContextBuilt(context.parts, question.turn.seq, means.clock.monotonic()))
        return context

    def _let_go_of_forgotten(self) -> None:
        """Forget what tools found when somebody's words were forgotten: they may be in it."""
        if self._memory.external_changes != self._overtaken:
            self._overtaken = self._memory.external_changes
            self._toolbox.exchanges.clear()

    def _instructions(self, policy: PromptPolicy | None) -> str:
        """Return what the model is told in every answer on this server."""
        guild = "" if policy is None else policy.instructions
        return self._means.instructions.text(tools=bool(self._toolbox.tools()), guild=guild)

    def besides(self, question: Question) -> tuple[str, ...]:
        """Return what the model is told about this answer alone."""
        names = [name for name in self._part.wake_names if name not in self._means.brain.wake_names]
        called = f"Here they also call you {' or '.join(names)}." if names else ""
        skipping = skip_instruction(question.reason) if question.may_skip and question.reason is not None else ""
        return tuple(text for text in (called, skipping) if text)

    async def _prompt_policy(self) -> PromptPolicy | None:
        """Return on what policy the guild's prompts are built, and go over to its mode if that has changed."""
        if self._means.policy is None:
            return None
        policy = await self._means.policy.prompt_policy(self._guild_id)
        try:
            await self._memory.set_mode(policy.mode)
        except StoreError as error:
            # The old mode goes on; the next reply tries again.
            self._report("memory_mode", str(error))
        return policy
