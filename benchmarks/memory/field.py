"""Who takes part: name, side, what it needs, and how it enters a conversation."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from benchmarks.memory.contenders import LastTurns, our_memory
from benchmarks.peers.process import peer_process
from bot.llm.openai_chat import OpenAIChat
from bot.settings import LlmSettings
from bot.wiring.summariser import choose_summariser
from compaction.model import Strategy
from compaction.settings import CompactionSettings, SummariserKind
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from benchmarks.localmodel import Endpoint
    from benchmarks.memory.contenders import Contender
    from benchmarks.peers.environment import PeerLibrary

# A fold may take its time here: a small model on a busy machine is slow, and that is not what is measured.
MODEL_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Entrant:
    """One contender. `ours`: it is Roomtone's; `claims`: its text is a summary, and can be wrong.

    `enter` is given when the conversation starts, in UTC epoch seconds.
    """

    name: str
    ours: bool
    needs_model: bool
    enter: Callable[[float], AbstractAsyncContextManager[Contender]]
    claims: bool = True


def model_free() -> tuple[Entrant, ...]:
    """Return who needs no language model."""
    return (
        Entrant("extractive", ours=True, needs_model=False, enter=_extractive),
        Entrant("last 50 turns", ours=False, needs_model=False, enter=_last_turns, claims=False),
    )


def with_model(endpoint: Endpoint) -> tuple[Entrant, ...]:
    """Return our own who ask the model at this endpoint: one a strategy."""
    return tuple(_strategy_entrant(strategy, endpoint) for strategy in Strategy)


def _strategy_entrant(strategy: Strategy, endpoint: Endpoint) -> Entrant:
    settings = CompactionSettings(timeout_s=MODEL_TIMEOUT_S, strategy=strategy)

    @asynccontextmanager
    async def enter(started_at: float) -> AsyncIterator[Contender]:
        async with (
            OpenAIChat(_llm_settings(endpoint)) as model,
            our_memory(
                choose_summariser(SummariserKind.LLM, model, settings), settings, started_at=started_at
            ) as memory,
        ):
            yield memory

    return Entrant(strategy.value, ours=True, needs_model=True, enter=enter)


def peer_entrant(library: PeerLibrary, python: Path, endpoint: Endpoint) -> Entrant:
    """Return another library, asking the model at this endpoint."""

    @asynccontextmanager
    async def enter(started_at: float) -> AsyncIterator[Contender]:
        del started_at
        async with peer_process(library, python, endpoint) as peer:
            yield peer

    return Entrant(library.name, ours=False, needs_model=True, enter=enter)


def _llm_settings(endpoint: Endpoint) -> LlmSettings:
    return LlmSettings(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=SecretStr(endpoint.api_key) if endpoint.api_key else None,
        total_timeout_s=MODEL_TIMEOUT_S,
    )


@asynccontextmanager
async def _extractive(started_at: float) -> AsyncIterator[Contender]:
    async with our_memory(ExtractiveSummariser(), CompactionSettings(), started_at=started_at) as memory:
        yield memory


@asynccontextmanager
async def _last_turns(started_at: float) -> AsyncIterator[Contender]:
    del started_at
    yield LastTurns()
