"""Which of a session's two summarisers makes what."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from compaction.folding.signals import FailureSource
from compaction.folding.state import Run
from compaction.folding.summarisers import Summarisers
from compaction.folding.withheld import SOME_SCREEN, SOMEBODY
from compaction.model import Note, NoteId, RunId, Seq, Strategy
from compaction.summary.port import ChapterFold, ChapterRequest, Fold, FoldRequest
from tests.compaction.folding.test_fold_input import Bench

BATCH = Run(RunId("r"), Seq(20), Seq(30), Seq(70), (), 1, False, 0.0)
DEGRADED = replace(BATCH, degraded=True)
CHAPTER = ChapterRequest(1, (), (), (), ())


@dataclass
class NamedSummariser:
    """A summariser whose folds have its name as gist."""

    name: str
    model: str = ""

    async def fold(self, _: FoldRequest) -> Fold:
        """Return a fold at once, or never for the one that stalls."""
        if self.name == "stalls":
            await asyncio.Event().wait()
        return Fold(self.name, ())

    async def fold_chapter(self, _: ChapterRequest) -> ChapterFold:
        """Return a chapter at once."""
        return ChapterFold(self.name, ())


def _summarisers(usual: str = "llm", *, strategy: Strategy = Strategy.LEDGER, timeout_s: float = 5.0) -> Summarisers:
    return Summarisers(NamedSummariser(usual), NamedSummariser("extractive"), strategy=strategy, timeout_s=timeout_s)


def test_a_degraded_run_is_the_fallback_s() -> None:
    """The usual summariser folds, and the fallback a degraded run. Each is at fault for what it does not make."""
    summarisers = _summarisers()
    assert [summarisers.of(run, None).name for run in (BATCH, DEGRADED)] == ["llm", "extractive"]
    batch = Bench().request(BATCH)
    culprits = [summarisers.culprit(run, batch) for run in (BATCH, DEGRADED)]
    assert culprits == [FailureSource.MODEL, FailureSource.FALLBACK]


def test_a_model_is_not_asked_about_nothing() -> None:
    """A batch of which nothing may be told goes to the fallback, without what is left of a withheld person's screen."""
    summarisers = _summarisers()
    batch = Bench().request(BATCH)
    silent = replace(batch, turns=tuple(replace(each, parts=(), tombstone=True) for each in batch.turns))
    screens = [Note(NoteId("n"), 1.0, SOMEBODY, SOME_SCREEN), Note(NoteId("m"), 1.0, "Bo", "A map of Tokyo.")]
    for notes, asked in ((), "extractive"), (screens[:1], "extractive"), (screens, "llm"):
        request = replace(silent, notes=tuple(notes))
        assert summarisers.of(BATCH, request).name == asked
        assert summarisers.asks_usual(BATCH, request) is (asked == "llm")
        assert asyncio.run(summarisers.fold(BATCH, request)) == Fold(asked, ())
    assert summarisers.culprit(BATCH, silent) is FailureSource.FALLBACK
    # Without a model the usual one makes that, too, so a session that needs none goes on to its chapters.
    assert _summarisers("extractive").asks_usual(BATCH, silent)


@pytest.mark.parametrize(
    ("usual", "strategy", "expected"),
    [
        ("llm", Strategy.LEDGER, (True, True, True)),
        ("extractive", Strategy.LEDGER, (False, False, True)),
        ("llm", Strategy.RECURSIVE, (True, False, False)),
        ("extractive", Strategy.RECURSIVE, (False, False, False)),
    ],
)
def test_repairs_need_a_model_and_the_ledger(usual: str, strategy: Strategy, expected: tuple[bool, bool, bool]) -> None:
    """Only a model makes a segment better, and only the ledger strategy has parts that can be made again."""
    summarisers = _summarisers(usual, strategy=strategy)
    assert (summarisers.has_model, summarisers.can_repair, summarisers.makes_chapters) == expected


def test_a_chapter_is_asked_as_a_chapter() -> None:
    """A request for a chapter and one for a batch go to the run's summariser, each by its own way."""
    summarisers = _summarisers()
    batch = Bench().request(BATCH)
    made = [asyncio.run(summarisers.fold(DEGRADED, CHAPTER)), asyncio.run(summarisers.fold(BATCH, batch))]
    assert made == [ChapterFold("extractive", ()), Fold("llm", ())]


def test_a_summariser_that_stalls_is_given_up() -> None:
    """A fold ends in `TimeoutError` when its time is over."""
    batch = Bench().request(BATCH)
    with pytest.raises(TimeoutError):
        asyncio.run(_summarisers("stalls", timeout_s=0.0).fold(BATCH, batch))
