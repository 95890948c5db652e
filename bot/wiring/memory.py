"""Opens what remembers, reads the memory and summarises it: for rooms, commands and the dashboard."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, tzinfo
from random import Random
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.brain.context import QuoteFinder
from bot.brain.embedded.chat import BY_WORDS_ALONE, FirstSentences
from bot.conversation.services import PromptPolicies
from bot.errors import SetupError
from bot.llm.factory import open_budget, open_model
from bot.llm.model_calls import OPERATOR, BilledModel, PaidModel
from bot.memory.digests import Digests
from bot.memory.indexer import Indexer
from bot.memory.personal_recall import MemoryReaders, PersonalRecall
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.memory.session_views import SessionViews
from bot.memory.upkeep import MemoryUpkeep
from bot.store.claims import RoomClaim, fenced
from bot.store.history import SessionHistory
from bot.store.people import PeopleStore
from bot.store.prompts import PromptStore
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.tiers import TierStore
from bot.texts.text import Text
from compaction.session import SessionTimeline
from compaction.settings import BudgetSettings, SummariserKind
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import FOLD_TIMEOUT_S, Summariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.conversation.services import OpenTimeline, OpenUpkeep
    from bot.llm.fallback import FallbackModel
    from bot.llm.settings import LlmSettings
    from bot.participation.guild_state import GuildStates
    from bot.server_settings import ServerSettingsBook
    from bot.settings import ModelsSettings
    from bot.shards import Shards
    from bot.store.attendance import AttendanceStore
    from bot.store.database import Database
    from bot.wiring.process import ProcessParts, Stores
    from bot.wiring.settings import BotSettings
    from bot.words import Words
    from compaction.events import CompactionEvent
    from compaction.model import SessionId
    from compaction.ports import Completion, Embedder, TurnStore

log = structlog.get_logger()


async def open_recall(
    stack: AsyncExitStack,
    settings: BotSettings,
    database: Database,
    store: TurnStore,
    clock: Clock,
    *,
    embedder: Embedder | None = None,
    indexes: bool = True,
) -> Recall:
    """Start memory search on `stack`, and the indexer if this process `indexes`: one of a bot does. `embedder`: finds
    the same thing said in other words; None: nothing does.
    """
    vectors = VectorStore(database, most=settings.tuning.vectors_in_memory)
    if indexes and embedder is not None:
        indexing = Indexer(vectors, embedder, clock).run()
        await stack.enter_async_context(background_task(indexing, name="recall-indexer"))
    return Recall(SqlRecallIndex(database, vectors), store, embedder=embedder)


def quoting_factory(
    settings: BotSettings,
    recall: Recall,
    zone: tzinfo,
    *,
    first_sentences: FirstSentences = BY_WORDS_ALONE,
    attendance: AttendanceStore,
    participation: GuildStates,
) -> Callable[[RecallScope, RoomChannel], QuoteFinder | None]:
    """Return the factory of a room's quote finder; it returns None if quotes are switched off.

    `participation`: knows whose words may not be quoted.
    """

    def quoting(scope: RecallScope, channel: RoomChannel) -> QuoteFinder | None:
        if not settings.recall.enabled or not settings.tuning.quotes:
            return None
        room = RoomRecall(
            recall,
            scope,
            reach=settings.recall.scope,
            channel=channel,
            withheld=participation.opted_out_of,
            attendance=attendance,
        )
        return QuoteFinder(
            room,
            most=settings.tuning.quotes,
            within_s=settings.tuning.quote_wait_s,
            max_input_tokens=settings.budget.max_input_tokens,
            zone=zone,
            meaning_of=first_sentences.meaning_of,
        )

    return quoting


def upkeep_factory(settings: BotSettings, stores: Stores) -> OpenUpkeep:
    """Return the factory of a room's memory upkeep, whose writes carry the room's claim. `stores.upkeeps` gets each."""

    def new_upkeep(session_id: SessionId, claim: RoomClaim, timeline: SessionTimeline, words: Words) -> MemoryUpkeep:
        mine = fenced(stores.database, claim)
        upkeep = MemoryUpkeep(
            session_id,
            claim.guild_id,
            timeline=timeline,
            words=words,
            turns=stores.turns,
            tiers=TierStore(mine),
            people=stores.people.for_session(session_id, PeopleStore(mine)),
            prompts=PromptStore(mine),
            accesses=stores.accesses,
            clock=stores.clock,
            max_input_tokens=settings.budget.max_input_tokens,
        )
        stores.upkeeps[session_id] = upkeep
        return upkeep

    return new_upkeep


def memory_factory(
    stores: Stores,
    summariser_of: Callable[[int], Awaitable[Summariser]],
    settings: BotSettings,
    policy: PromptPolicies,
    *,
    seed: int | None = None,
) -> OpenTimeline:
    """Return the function that opens a session's timeline as a context manager.

    `summariser_of`: returns that of a server. `stores.in_use` has the sessions whose timeline is open. `seed`: of
    the numbers that spread the retries of folds; None: others each time.
    """

    @asynccontextmanager
    async def open_timeline(
        session_id: SessionId, claim: RoomClaim, on_event: Callable[[CompactionEvent], None]
    ) -> AsyncIterator[SessionTimeline]:
        guild_id = claim.guild_id
        async with SessionTimeline.open(
            session_id,
            store=stores.turns_of(claim),
            summariser=await summariser_of(guild_id),
            mode=policy.mode(guild_id),
            clock=stores.clock,
            guild_id=str(guild_id),
            rng=Random(seed),  # noqa: S311 - no secret
            on_event=on_event,
            searchable=settings.recall.enabled,
        ) as timeline:
            stores.in_use.add(session_id)
            try:
                yield timeline
            finally:
                stores.in_use.discard(session_id)

    return open_timeline


def choose_summariser(kind: SummariserKind, completion: Completion | None, zone: tzinfo = UTC) -> Summariser:
    """Return the summariser of `kind`. `completion`: the language model, None if none is configured. `zone`: the time
    zone of the days that it writes.

    Raises `SetupError` if `kind` needs a language model and there is none.
    """
    if kind is SummariserKind.EXTRACTIVE or (kind is SummariserKind.AUTO and completion is None):
        return ExtractiveSummariser()
    if completion is None:
        raise SetupError(
            Text(
                "You want summaries by a language model, but there is none. Set llm.model, and "
                "llm.base_url (for example http://127.0.0.1:11434/v1) or llm.api_key."
            )
        )
    from compaction.summary.llm import LlmSummariser

    return LlmSummariser(completion, within_s=FOLD_TIMEOUT_S, zone=zone)


def summarisers_by_guild(
    kind: SummariserKind,
    model: BilledModel | None,
    participation: GuildStates,
    zone: tzinfo = UTC,
) -> Callable[[int], Awaitable[Summariser]]:
    """Return the function that makes a server's summariser, which waits while that server's hour is used up.

    Raises `SetupError` if `kind` needs a language model and there is none.
    """
    # Made once at the start too, so that a mistake in the settings or the prompt files is found then.
    unmetered = choose_summariser(kind, None if model is None else PaidModel(model, OPERATOR), zone)

    async def summariser_of(guild_id: int) -> Summariser:
        if model is None:
            return unmetered
        return choose_summariser(kind, PaidModel(model, await participation.of_guild(guild_id)), zone)

    return summariser_of


@asynccontextmanager
async def open_summariser(
    llm: LlmSettings,
    kind: SummariserKind,
    *,
    budget: BudgetSettings | None = None,
    models: ModelsSettings | None = None,
) -> AsyncIterator[Summariser]:
    """Yield a summariser with a model connection of its own, which the operator pays for, limited by `budget` (default:
    the default budget).

    `models`: where the model's tokenizer file may be.
    """
    if not llm.configured or kind is SummariserKind.EXTRACTIVE:
        yield choose_summariser(kind, None)
        return
    async with open_model(llm, budget or BudgetSettings(), models) as model:
        yield choose_summariser(kind, PaidModel(model, OPERATOR))


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """What reads the memory of servers, and summarises it. `model`: the language model; None if none is configured.
    `recall`: the memory search, with what embeds texts. `summariser_of`: returns that of a server.
    """

    model: FallbackModel | None
    recall: Recall
    first_sentences: FirstSentences
    policy: PromptPolicies
    summariser_of: Callable[[int], Awaitable[Summariser]]
    readable: MemoryReaders


async def open_recollection(
    stack: AsyncExitStack,
    parts: ProcessParts,
    participation: GuildStates,
    shards: Shards,
    *,
    embedder: Embedder | None = None,
) -> MemoryParts:
    """Open it, and register with the metrics what can be measured. `embedder`: see `open_recall`.

    Raises `BotError` when something is missing.
    """
    settings, stores = parts.settings, parts.stores
    model: FallbackModel | None = None
    if settings.llm.configured:
        opening = open_model(
            settings.llm,
            settings.budget,
            settings.models,
            first_token_s=settings.tuning.first_token_s,
            clock=parts.clock,
            meter=parts.metrics,
        )
        model = await stack.enter_async_context(opening)
        parts.health.add_check(model.faults)
    else:
        log.info("no_language_model", responder="embedded")
    recall = await open_recall(
        stack, settings, stores.database, stores.turns, parts.clock, embedder=embedder, indexes=shards.leads
    )
    # Also with a model: it may be away at the first question.
    first_sentences = FirstSentences(recall.embedder)
    reading = background_task(first_sentences.read_examples(parts.clock), name="first-sentences")
    await stack.enter_async_context(reading)
    summariser_of = summarisers_by_guild(settings.tuning.summariser, model, participation, parts.zone)
    views = SessionViews(stores.sessions, stores.turns, withheld=participation.withheld_on)
    history = SessionHistory(stores.database)
    digests = Digests(views, history, summariser_of=summariser_of, dashboard=settings.web.public_url)
    reach = settings.recall.scope if settings.recall.enabled else None
    personal = PersonalRecall(recall, views, stores.sessions.attendance, reach=reach, accesses=stores.accesses)
    return MemoryParts(
        model=model,
        recall=recall,
        first_sentences=first_sentences,
        policy=await policy_for(settings, model, stores.servers),
        summariser_of=summariser_of,
        readable=MemoryReaders(views, digests, personal),
    )


async def policy_for(settings: BotSettings, model: FallbackModel | None, servers: ServerSettingsBook) -> PromptPolicies:
    """Return the policy that gives each guild's compaction mode and token budget."""
    budget = model.budget if model is not None else await open_budget("", settings.budget)
    return PromptPolicies(
        servers,
        budget,
        default_mode=settings.compaction.mode,
        max_output_tokens=settings.llm.max_output_tokens,
    )
