"""Keeps memory search complete in the background: indexes old rows, makes embeddings, wipes forgotten text.

One task for the process; of several processes on one database one works, and another takes over when it ends. New turns
are searchable by their words at once. Their embeddings are made here, newest first, so that after a restart or a change
of model the current session comes before old ones. Nothing waits for this task, and urgent embedding requests go first.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.store.search.indexing import catch_up
from bot.store.wiping import wipe_if_due
from compaction.errors import EmbeddingError, StoreError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.clock import Clock
    from bot.store.database import Database, DatabaseWorkLock
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
# How long nothing must have been deleted before the indexer wipes: forgetting a person may take so long.
SETTLED_S = 60.0
FIRST_RETRY_S = 2.0
# How often a process asks whether the one that works has ended.
LOCKED_S = 10.0
LONGEST_RETRY_S = 300.0


class Indexer:
    """The background indexer. `embedder` None: no embeddings are made."""

    def __init__(self, database: Database, vectors: VectorStore, *, embedder: Embedder | None, clock: Clock) -> None:
        self._database = database
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock

    @classmethod
    @asynccontextmanager
    async def running(
        cls, database: Database, vectors: VectorStore, *, embedder: Embedder | None, clock: Clock
    ) -> AsyncIterator[None]:
        """Run the indexer for the duration of the block. The next run does what is left."""
        indexer = cls(database, vectors, embedder=embedder, clock=clock)
        async with background_task(indexer.run(), name="recall-indexer"):
            yield

    async def run(self) -> None:
        """Work until cancelled. A failure is logged once and retried with growing delays."""
        async with self._database.work_lock("recall-indexer") as lock:
            await self._run(lock)

    async def _run(self, lock: DatabaseWorkLock) -> None:
        failures = 0
        prepared = False
        while True:
            try:
                if not await lock.taken():
                    prepared = False
                    await self._clock.sleep(LOCKED_S)
                    continue
                if not prepared:
                    await self._prepare()
                    prepared = True
                busy = await self.step()
                failures = 0
            except (StoreError, EmbeddingError, TimeoutError) as error:
                failures += 1
                retry_s = retry_pause_s(failures, first_s=FIRST_RETRY_S, longest_s=LONGEST_RETRY_S)
                if isinstance(error, EmbeddingError) and not error.retryable:
                    retry_s = LONGEST_RETRY_S
                if failures == 1:
                    log.warning("recall_indexing_failed", problem=error, retry_s=retry_s)
                await self._clock.sleep(retry_s)
                continue
            await self._clock.sleep(PAUSE_S if busy else IDLE_S)

    async def step(self) -> bool:
        """Obey opt-outs, remove forgotten text from the index, or wipe what is due for that and embed a few passages.
        Returns whether there was anything to do.

        Embeddings come last: an embedder may be away for days, or busy with an old database for hours.
        """
        if await self._vectors.obey_opt_outs():
            return True
        if await self._vectors.purge():
            # A rewritten source lost its passage together with its old text.
            await catch_up(self._database)
            return True
        # Who is forgotten now has their words wiped at the end of that.
        await wipe_if_due(self._database, now=self._clock.now(), settled_s=SETTLED_S)
        return self._embedder is not None and await self._embed_some(self._embedder)

    async def _embed_some(self, embedder: Embedder) -> bool:
        waiting = await self._vectors.unembedded(limit=BATCH)
        if not waiting:
            return False
        texts = [text for _, text in waiting if text is not None]
        async with asyncio.timeout(EMBED_TIMEOUT_S):
            vectors = iter(await embedder.embed(texts) if texts else ())
        embedded = {each: None if text is None else next(vectors) for each, text in waiting}
        await self._vectors.store(embedder.model, embedded)
        return True

    async def _prepare(self) -> None:
        count = await catch_up(self._database)
        if count:
            log.info("recall_index_caught_up", count=count)
        if self._embedder is not None:
            await self._vectors.discard_other_models(self._embedder.model)
