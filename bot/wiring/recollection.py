"""Opens what reads the memory and summarises it: for rooms, commands and the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.brain.embedded.first_sentences import FirstSentences
from bot.llm.factory import open_budget, open_model
from bot.memory.digests import Digests
from bot.memory.personal_recall import PersonalRecall
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.room.guild_policy import GuildPolicy
from bot.store.history import SessionHistory
from bot.wiring.memory import open_recall
from bot.wiring.summariser import summarisers_by_guild

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack

    from bot.health import Health
    from bot.llm.fallback import FallbackModel
    from bot.memory.recall import Recall
    from bot.participation.all_guilds import GuildParticipations
    from bot.server_settings import ServerSettingsBook
    from bot.shards import Shards
    from bot.wiring.process_parts import ProcessParts
    from bot.wiring.settings import BotSettings
    from compaction.summary.port import Summariser

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LanguageModels:
    """What is loaded or connected once for the process. `model`: the language model; None if none is configured.
    `recall`: the memory search, with what embeds texts.
    """

    model: FallbackModel | None
    recall: Recall
    first_sentences: FirstSentences


async def open_language_models(stack: AsyncExitStack, parts: ProcessParts, shards: Shards) -> LanguageModels:
    """Open them, and register with the metrics what can be measured. `watch_model` is for what can fail.

    Raises `BotError` when something needed is missing.
    """
    settings, stores = parts.settings, parts.stores
    model: FallbackModel | None = None
    if settings.llm.configured:
        opening = open_model(
            settings.llm, settings.budget, settings.models, clock=parts.clock, on_call=parts.metrics.on_model_call
        )
        model = await stack.enter_async_context(opening)
    else:
        log.info("no_language_model", responder="embedded")
    recall = await open_recall(stack, settings, stores.database, stores.turns, parts.clock, indexes=shards.leads)
    examples = FirstSentences.running(recall.embedder if model is None else None)
    return LanguageModels(model, recall, await stack.enter_async_context(examples))


def watch_model(models: LanguageModels, health: Health) -> None:
    """Register the language model with `health`. People read of it after what hears and speaks."""
    if models.model is not None:
        health.add_check(models.model.degraded_parts)
        health.add_fault_check(models.model.faults)


@dataclass(frozen=True, slots=True)
class Recollection:
    """What reads the memory of servers, and summarises it. `summariser_of`: returns that of a server."""

    models: LanguageModels
    policy: GuildPolicy
    summariser_of: Callable[[int], Awaitable[Summariser]]
    readable: ReadableMemory


async def recollection_of(
    parts: ProcessParts, models: LanguageModels, *, participation: GuildParticipations
) -> Recollection:
    """Return what reads the memory of the servers. Raises `BotError` when something is missing."""
    settings, stores = parts.settings, parts.stores
    summariser_of = summarisers_by_guild(settings.compaction, models.model, participation, parts.clock, parts.zone)
    reader = SessionReader(stores.sessions, stores.turns, withheld=participation.withheld_on)
    digests = Digests(reader, SessionHistory(stores.database), summariser_of=summariser_of)
    reach = settings.recall.scope if settings.recall.enabled else None
    personal = PersonalRecall(models.recall, reader, reach=reach, accesses=stores.accesses)
    return Recollection(
        models=models,
        policy=await policy_for(settings, models.model, stores.servers),
        summariser_of=summariser_of,
        readable=ReadableMemory(reader, digests, personal),
    )


async def policy_for(settings: BotSettings, model: FallbackModel | None, servers: ServerSettingsBook) -> GuildPolicy:
    """Return the policy that gives each guild's compaction mode and token budget."""
    budget = model.budget if model is not None else await open_budget("", settings.budget)
    return GuildPolicy(
        servers,
        budget,
        mode=settings.compaction.mode,
        max_output_tokens=settings.llm.max_output_tokens,
    )
