"""The two summarisers of a session, and which of them makes what: a model usually, and rules when it keeps failing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.folding.signals import FailureSource
from compaction.folding.withheld import tells_anything
from compaction.model import Strategy
from compaction.summary.port import ChapterRequest, FoldRequest

if TYPE_CHECKING:
    from compaction.folding.state import Run
    from compaction.summary.port import ChapterFold, Fold, Summariser


class Summarisers:
    """The summarisers of one session. `usual`: the one of the settings. `fallback`: must not depend on anything that
    can fail. `timeout_s`: the most seconds for one fold.
    """

    def __init__(self, usual: Summariser, fallback: Summariser, *, strategy: Strategy, timeout_s: float) -> None:
        self._usual = usual
        self._fallback = fallback
        self._strategy = strategy
        self._timeout_s = timeout_s

    @property
    def timeout_s(self) -> float:
        """Return the most seconds for one fold."""
        return self._timeout_s

    @property
    def can_repair(self) -> bool:
        """Return whether a segment of the fallback can be made again, better.

        That needs the ledger strategy, because one recursive paragraph can't be rewritten without the later ones. It
        also needs a model, because the fallback alone would make the same segment again.
        """
        return self._strategy is Strategy.LEDGER and self.has_model

    @property
    def makes_chapters(self) -> bool:
        """Return whether segments are folded into chapters, which only the ledger strategy has."""
        return self._strategy is Strategy.LEDGER

    @property
    def has_model(self) -> bool:
        """Return whether the usual summariser is another one than the fallback."""
        return self._usual.name != self._fallback.name

    def of(self, run: Run, request: FoldRequest | ChapterRequest | None) -> Summariser:
        """Return the summariser of a run. `request`: None if it is not known yet."""
        return self._usual if self.asks_usual(run, request) else self._fallback

    def asks_usual(self, run: Run, request: FoldRequest | ChapterRequest | None) -> bool:
        """Return whether the usual summariser is asked. It is not if it keeps failing, and a model is not if there is
        nothing in the batch that it may be told.
        """
        empty = isinstance(request, FoldRequest) and not tells_anything(request)
        return not (run.degraded or (empty and self.has_model))

    def culprit(self, run: Run, request: FoldRequest | ChapterRequest) -> FailureSource:
        """Return who is at fault if a run's fold fails."""
        return FailureSource.FALLBACK if self.of(run, request) is self._fallback else FailureSource.MODEL

    async def fold(self, run: Run, request: FoldRequest | ChapterRequest) -> Fold | ChapterFold:
        """Let the run's summariser fold. Raises what it raises, and `TimeoutError`."""
        summariser = self.of(run, request)
        async with asyncio.timeout(self._timeout_s):
            if isinstance(request, ChapterRequest):
                return await summariser.fold_chapter(request)
            # Of a withheld person's screen there is nothing to tell.
            return await summariser.fold(request if tells_anything(request) else replace(request, notes=()))
