"""Makes the embeddings of what is stored, in the background, newest first.

One task of one process of the bot. New turns are searchable by their words at once, so nobody waits for this task, and
after a change of model the current session comes before old ones.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from compaction.errors import EmbeddingError, StoreError
from compaction.log_events import MemoryEvent
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.store.search.vector_store import VectorStore
    from compaction.ports import Embedder

log = structlog.get_logger()

# Passages in one step: under 100 ms with the local model, one request to an endpoint.
BATCH = 8
# The pause between two steps leaves half a core to the recogniser while an old database is embedded.
PAUSE_S = 0.1
# How long to wait when there is nothing to do. New turns are still in the window, so nobody needs their embeddings
# sooner.
IDLE_S = 2.0
# The timeout of one step at an endpoint; the local model takes a tenth of a second.
EMBED_TIMEOUT_S = 60.0
FIRST_RETRY_S = 2.0
LONGEST_RETRY_S = 300.0


class Indexer:
    """The background indexer. *Ownership*: `run` is a task of the process; the next one does what is left."""

    def __init__(self, vectors: VectorStore, embedder: Embedder, clock: Clock) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock

    async def run(self) -> None:
        """Work until cancelled. A failure is logged once and retried with growing delays."""
        failures = 0
        prepared = False
        while True:
            try:
                if not prepared:
                    await self._vectors.discard_other_models(self._embedder.model)
                    prepared = True
                pause_s = PAUSE_S if await self.step() else IDLE_S
                failures = 0
            except (StoreError, EmbeddingError, TimeoutError) as error:
                failures += 1
                pause_s = retry_pause_s(failures, first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S)
                if isinstance(error, EmbeddingError) and not error.retryable:
                    pause_s = LONGEST_RETRY_S
                if failures == 1:
                    log.warning(MemoryEvent.INDEXING_FAILED, problem=error, retry_s=pause_s)
            await self._clock.sleep(pause_s)

    async def step(self) -> bool:
        """Embed a few passages. Returns whether there were any."""
        waiting = await self._vectors.unembedded(limit=BATCH)
        if not waiting:
            return False
        texts = [text for _, text in waiting if text is not None]
        async with asyncio.timeout(EMBED_TIMEOUT_S):
            vectors = iter(await self._embedder.embed(texts) if texts else ())
        embedded = {each: None if text is None else next(vectors) for each, text in waiting}
        await self._vectors.store(self._embedder.model, embedded)
        return True
