"""Fit the weights of `compaction.memory.reranking`: `python -m benchmarks.memory.fit_reranking DIR`.

DIR holds QMSum's meetings and CRD3's episodes, of which only the numbers of lines are used: the weights tell what makes
a passage an answer, and nothing of what was said. The questions are the written ones (`evidence.WRITTEN_QUESTIONS`).
Those about planted facts are found without being fitted on, and LoCoMo judges.

The loss is that of a softmax over the passages that a search found, of which that with the answer is right. A sixth of
the conversations is kept apart in turn, to tell how often weights that were fitted without them bring the answer among
the first ten. It takes ten minutes of a core.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.memory.conversations.transcripts import read_conversations
from benchmarks.memory.evidence import AMONG, asked_questions
from benchmarks.memory.roomtone_search import PATIENCE_S, open_roomtone_search
from bot.embedding.factory import open_embedder
from bot.memory.recall import Recall
from compaction.memory.reranking import WEIGHTS, Comparison
from compaction.model import Turn
from compaction.ports import Embedder, TurnStore, WordComparer
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from compaction.memory.passage import PassageId, RecallIndex

_JUDGING = "LoCoMo"
# Adam, with a penalty that keeps features without a use at zero.
_STEPS = 300
_RATE = 0.05
_PENALTY = 0.01
_FOLDS = 6


@dataclass(frozen=True, slots=True)
class _Asked:
    """The passages that a question found: a row of features each, and whether it is the answer."""

    conversation: str
    rows: NDArray[np.float64]
    right: NDArray[np.bool_]


class _RecordingRecall(Recall):
    """A search that keeps the features of the turns that it last compared, by seq."""

    def __init__(self, index: RecallIndex, turns: TurnStore, *, embedder: Embedder) -> None:
        super().__init__(index, turns, embedder=embedder)
        self.rows: dict[int, tuple[float, ...]] = {}

    async def compared(self, comparison: Comparison, *, by: float) -> dict[PassageId, float]:
        if isinstance(self.embedder, WordComparer):
            found = await self.embedder.compare_words(comparison.unnamed, comparison.texts)
            features = comparison.features(dict(zip(comparison.texts, found, strict=True)))
            for passage, row in zip(comparison.passages, features, strict=True):
                if isinstance(passage.source, Turn):
                    self.rows[passage.source.seq] = row
        return {}


async def _found(conversations: Sequence[RecordedConversation], embedder: Embedder) -> list[_Asked]:
    asked: list[_Asked] = []
    for number, conversation in enumerate(conversations, start=1):
        questions = list(asked_questions(conversation))
        if not questions:
            continue
        async with open_roomtone_search(embedder, conversation.lines) as search:
            recall = _RecordingRecall(search.index, search.store, embedder=embedder)
            for question in questions:
                recall.rows.clear()
                await recall.search(question.text, embed_within_s=PATIENCE_S)
                if recall.rows:
                    right = np.array([seq in question.evidence for seq in recall.rows])
                    asked.append(_Asked(conversation.name, np.array(list(recall.rows.values())), right))
        sys.stderr.write(f"{number} of {len(conversations)} conversations, {len(asked)} questions\n")
    return asked


def _fitted(asked: Sequence[_Asked]) -> NDArray[np.float64]:
    """Return the weights with the least loss."""
    used = [each for each in asked if each.right.any() and not each.right.all()]
    every = np.concatenate([each.rows for each in used])
    middle, spread = every.mean(axis=0), every.std(axis=0) + 1e-6
    scaled = [((each.rows - middle) / spread, each.right) for each in used]
    weights = mean = square = np.zeros(len(middle))
    for step in range(1, _STEPS + 1):
        slope = _PENALTY * weights
        for rows, right in scaled:
            sums = rows @ weights
            odds = np.exp(sums - sums.max())
            hoped = np.where(right, odds, 1e-30)
            slope = slope + rows.T @ (odds / odds.sum() - hoped / hoped.sum()) / len(scaled)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        move = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        weights = weights - _RATE * move
    fitted: NDArray[np.float64] = weights / spread
    return fitted


def _share_found(asked: Sequence[_Asked], weights: NDArray[np.float64]) -> float:
    best = (each.right[np.argsort(-(each.rows @ weights), kind="stable")[:AMONG]] for each in asked)
    return sum(bool(each.any()) for each in best) / max(1, len(asked))


def _share_found_apart(asked: Sequence[_Asked]) -> float:
    names = sorted({each.conversation for each in asked})
    fold_of = {name: number % _FOLDS for number, name in enumerate(names)}
    found = 0.0
    for fold in range(_FOLDS):
        apart = [each for each in asked if fold_of[each.conversation] == fold]
        weights = _fitted([each for each in asked if fold_of[each.conversation] != fold])
        found += _share_found(apart, weights) * len(apart)
    return found / len(asked)


async def _main(folder: Path) -> None:
    supplied = [each for each in read_conversations(folder) if each.origin != _JUDGING]
    settings = load()
    async with open_embedder(settings.recall, models=settings.models, llm=settings.llm) as embedder:
        if embedder is None:
            sys.exit("The embedding model is missing. Run `roomtone models pull embed`.")
        asked = await _found(supplied, embedder)
    for name, weight in zip(WEIGHTS, _fitted(asked).tolist(), strict=True):
        sys.stdout.write(f'    "{name}": {weight:.2f},\n')
    apart = f"{_share_found_apart(asked):.1%} of {len(asked)} questions"
    sys.stdout.write(f"Found among {AMONG} by weights of other conversations: {apart}.\n")


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
