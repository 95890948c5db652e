"""The list of memory systems: the name, the owner and the requirements of each, and how it is started for a
conversation.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import SecretStr

from benchmarks.errors import PeerError
from benchmarks.memory.systems.memory_system import LastTurnsBaseline, open_roomtone_memory
from benchmarks.memory.systems.recorded_answers import MODEL, TURNS, ReplayCounts, answering_model, replayed_endpoint
from benchmarks.peers.process import peer_process
from bot.llm.openai_chat import OpenAIChat
from bot.llm.settings import LlmSettings
from bot.wiring.summariser import choose_summariser
from compaction.model import Strategy
from compaction.settings import CompactionSettings, SummariserKind
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from benchmarks.local_model import ChatEndpoint
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.systems.memory_system import MemorySystem
    from benchmarks.peers.environment import PeerLibrary

# The systems whose answers are recorded, in our words: `roomtone` is the ledger.
RECORDED_SYSTEMS = ("roomtone", "recursive", "langchain", "pipecat")
# The timeouts are long, because a small model makes the machine busy and slow, and its speed is not measured here.
MODEL_TIMEOUT_S = 600.0
STORE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """One memory system. `ours`: it is Roomtone's. `claims`: its text is a summary, which can be wrong.

    `recorded`: its answers are recorded under this name, and `replays` counts by conversation how well they fit.
    """

    name: str
    ours: bool
    needs_model: bool
    enter: Callable[[RecordedConversation], AbstractAsyncContextManager[MemorySystem]]
    claims: bool = True
    recorded: str = ""
    replays: dict[str, ReplayCounts] = field(default_factory=dict)


def systems_without_model() -> tuple[SystemSpec, ...]:
    """Return the systems that need no language model."""
    return (
        SystemSpec("extractive", ours=True, needs_model=False, enter=_extractive),
        SystemSpec("last 50 turns", ours=False, needs_model=False, enter=_last_turns, claims=False),
    )


def roomtone_systems(endpoint: ChatEndpoint) -> tuple[SystemSpec, ...]:
    """Return Roomtone's systems with the model at this endpoint, one for each strategy."""
    return tuple(_strategy_entrant(strategy, endpoint) for strategy in Strategy)


def _strategy_entrant(strategy: Strategy, endpoint: ChatEndpoint) -> SystemSpec:
    settings = CompactionSettings(timeout_s=MODEL_TIMEOUT_S, store_timeout_s=STORE_TIMEOUT_S, strategy=strategy)

    @asynccontextmanager
    async def enter(conversation: RecordedConversation) -> AsyncIterator[MemorySystem]:
        async with (
            OpenAIChat(_llm_settings(endpoint)) as model,
            open_roomtone_memory(
                choose_summariser(SummariserKind.LLM, model, settings),
                settings,
                started_at=conversation.lines[0].at,
            ) as memory,
        ):
            yield memory

    return SystemSpec(strategy.value, ours=True, needs_model=True, enter=enter)


def peer_system(library: PeerLibrary, python: Path, endpoint: ChatEndpoint) -> SystemSpec:
    """Return another library's system with the model at this endpoint."""

    @asynccontextmanager
    async def enter(conversation: RecordedConversation) -> AsyncIterator[MemorySystem]:
        del conversation
        async with peer_process(library, python, endpoint) as peer:
            yield peer

    return SystemSpec(library.name, ours=False, needs_model=True, enter=enter)


def answered_system(name: str, endpoint: ChatEndpoint, pythons: Mapping[PeerLibrary, Path]) -> SystemSpec:
    """Return one of `RECORDED_SYSTEMS` with this endpoint. Raises PeerError if its library is not in `pythons`."""
    ours = {"roomtone": Strategy.LEDGER, "recursive": Strategy.RECURSIVE}
    if name in ours:
        return _strategy_entrant(ours[name], endpoint)
    for library, python in pythons.items():
        if library.name == name:
            return peer_system(library, python, endpoint)
    raise PeerError(f"{name} could not be installed.")


def recorded_systems(answers: Path, pythons: Mapping[PeerLibrary, Path]) -> list[SystemSpec]:
    """Return the systems that can be run here with the recorded answers in this folder."""
    there = {path.parent.name for path in answers.glob(f"*/*/{TURNS}")}
    here = {"roomtone", "recursive", *(library.name for library in pythons)}
    return [_recorded_system(name, answers, pythons) for name in RECORDED_SYSTEMS if name in there & here]


def _recorded_system(name: str, answers: Path, pythons: Mapping[PeerLibrary, Path]) -> SystemSpec:
    replays: dict[str, ReplayCounts] = {}

    @asynccontextmanager
    async def enter(conversation: RecordedConversation) -> AsyncIterator[MemorySystem]:
        counts = replays[conversation.name] = ReplayCounts()
        async with (
            replayed_endpoint(answers / conversation.name / name, conversation.lines, counts) as endpoint,
            answered_system(name, endpoint, pythons).enter(conversation) as memory,
        ):
            yield memory

    ours = name in {"roomtone", "recursive"}
    return SystemSpec(
        f"{name}, {answering_model(answers) or MODEL}",
        ours=ours,
        needs_model=True,
        enter=enter,
        recorded=name,
        replays=replays,
    )


def _llm_settings(endpoint: ChatEndpoint) -> LlmSettings:
    return LlmSettings(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=SecretStr(endpoint.api_key) if endpoint.api_key else None,
        total_timeout_s=MODEL_TIMEOUT_S,
    )


@asynccontextmanager
async def _extractive(conversation: RecordedConversation) -> AsyncIterator[MemorySystem]:
    async with open_roomtone_memory(
        ExtractiveSummariser(), CompactionSettings(store_timeout_s=STORE_TIMEOUT_S), started_at=conversation.lines[0].at
    ) as memory:
        yield memory


@asynccontextmanager
async def _last_turns(conversation: RecordedConversation) -> AsyncIterator[MemorySystem]:
    del conversation
    yield LastTurnsBaseline()
