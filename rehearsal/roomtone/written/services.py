"""The room services of a written scenario: the bot's real parts on a temporary database, with fake audio.

Room, decider, memory, store, search and upkeep are real. There is no language model, so a scenario has the same answers
everywhere, or a scripted one.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from bot.brain.embedded.chat import EmbeddedResponder, FirstSentences
from bot.brain.responder import ModelResponder
from bot.brain.system_prompt import SystemPrompt
from bot.clock import Clock
from bot.conversation.services import MemoryServices, ReplyServices, RoomServices, SpeechModels
from bot.events import Observer
from bot.folder_lock import folder_lock
from bot.health import Health
from bot.llm.budgeted import BudgetedModel
from bot.llm.factory import open_budget
from bot.llm.fallback import FallbackModel
from bot.llm.model_calls import PaidModel
from bot.memory.recall import Recall
from bot.participation.guild_state import GuildStates
from bot.store.claims import RoomClaim
from bot.tuning import Tuning, split_overrides
from bot.wiring.memory import memory_factory, open_recall, policy_for, quoting_factory, upkeep_factory
from bot.wiring.process import Stores, open_stores
from bot.wiring.services import toolbox_factory
from bot.wiring.settings import BotSettings
from compaction.events import CompactionEvent
from compaction.model import SessionId
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Summariser
from config.load import load
from config.schema import Settings
from rehearsal.roomtone.trial import names_with
from rehearsal.roomtone.written.channel import LoudnessDetector, ToneSynthesizer
from rehearsal.roomtone.written.scripted_model import WrittenModel
from rehearsal.script.scenario import Scenario
from voice.asr.port import Recogniser

if TYPE_CHECKING:
    from bot.conversation.services import OpenTimeline


# The wait for quotes is in real time; a busy machine needs longer.
_IN_WRITING = Tuning(quote_wait_s=2.0)


def written_settings(scenario: Scenario, overrides: Mapping[str, object] = MappingProxyType({})) -> Settings:
    """Return the settings in which a written scenario is played. Raises `ConfigError`."""
    chosen = {"brain.names": names_with(scenario.bot.name), **scenario.settings, **overrides}
    return load(overrides=split_overrides(chosen)[1])


@dataclass(frozen=True, slots=True)
class WrittenServices:
    """What a written room uses, and the stores and the memory search behind it."""

    services: RoomServices
    stores: Stores
    recall: Recall


@asynccontextmanager
async def open_written_services(
    settings: Settings,
    recogniser: Recogniser,
    *,
    clock: Clock,
    observe: Observer,
    data_dir: Path | None = None,
    model: WrittenModel | None = None,
    seed: int | None = None,
) -> AsyncIterator[WrittenServices]:
    """Open everything that the room needs, and yield it. Its database is in `data_dir` or in a temporary folder.

    `model`: answers, with the tools of a room, and folds; None: no language model does. `seed`: of
    `memory_factory`.
    Raises `SetupError` if a bot uses `data_dir`.
    """
    parts = BotSettings.from_schema(settings, _IN_WRITING)
    async with AsyncExitStack() as stack:
        if data_dir is not None:
            stack.enter_context(folder_lock(data_dir))
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-evening-")))
        storage = parts.storage.model_copy(update={"data_dir": folder, "database_url": None})
        parts = replace(parts, storage=storage)
        stores = await open_stores(stack, parts, clock)
        await stores.servers.load()
        database, store, accesses = stores.database, stores.turns, stores.accesses
        participation = GuildStates(
            stores.servers,
            stores.opt_outs,
            parts.participation,
            wake_names=parts.brain.names,
            clock=clock,
        )
        embedder = None if model is None else model.embedder
        recall = await open_recall(stack, parts, database, store, clock, embedder=embedder)
        first_sentences = FirstSentences(embedder)
        await first_sentences.read_examples(clock)
        chat, replies = (
            None,
            ReplyServices(
                new_responder=lambda _: EmbeddedResponder(zone=UTC),
                instructions=SystemPrompt(parts.brain.name, parts.brain.instructions),
                max_input_tokens=parts.budget.max_input_tokens,
                can_skip=False,
            ),
        )
        if model is not None:
            budgeted = BudgetedModel(model.endpoint, await open_budget(model.endpoint.model, parts.budget))
            chat = FallbackModel([budgeted], within_s=parts.tuning.first_token_s, clock=clock)
            answered_by, most = partial(PaidModel, chat), parts.llm.max_output_tokens
            tools = toolbox_factory(
                recall,
                attendance=stores.sessions.attendance,
                accesses=accesses,
                reach=parts.recall.scope,
                clock=clock,
                zone=UTC,
                participation=participation,
            )
            replies = replace(
                replies,
                new_responder=lambda payer: ModelResponder(answered_by(payer), max_output_tokens=most),
                open_toolbox=tools,
                can_skip=True,
            )
        policy, health = await policy_for(parts, chat, stores.servers), Health(clock)
        health.started()

        async def summariser_of(_guild_id: int) -> Summariser:
            return ExtractiveSummariser() if model is None else model.summariser

        services = RoomServices(
            speech=SpeechModels(recogniser, LoudnessDetector(), ToneSynthesizer()),
            memory=MemoryServices(
                sessions=stores.sessions,
                open_timeline=_known_to(
                    model,
                    memory_factory(stores, summariser_of, parts, policy, seed=seed),
                ),
                open_upkeep=upkeep_factory(parts, stores),
                open_quoting=quoting_factory(
                    parts,
                    recall,
                    UTC,
                    first_sentences=first_sentences,
                    attendance=stores.sessions.attendance,
                    participation=participation,
                ),
            ),
            replies=replace(replies, guild_policy=policy),
            room=parts.room,
            brain=parts.brain,
            asr=parts.asr,
            speaking=parts.speaking,
            participation=participation,
            zone=UTC,
            clock=clock,
            health=health,
            observe=observe,
        )
        yield WrittenServices(services, stores, recall)


def _known_to(model: WrittenModel | None, open_timeline: OpenTimeline) -> OpenTimeline:
    """Return `open_timeline`, which tells the model the timeline that it opens."""

    @asynccontextmanager
    async def opened(
        session_id: SessionId, claim: RoomClaim, on_event: Callable[[CompactionEvent], None]
    ) -> AsyncIterator[SessionTimeline]:
        async with open_timeline(session_id, claim, on_event) as timeline:
            if model is not None:
                model.timeline = timeline
            yield timeline

    return opened
