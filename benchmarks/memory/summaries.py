"""Measures the summaries of conversations: which facts a strong model's tell, and whether people said each quote of
those without a model.

`python -m benchmarks.memory.summaries cabin` folds a written conversation. It asks the configured model for each answer
that is not kept, keeps it, and prints the final text with the facts to look for in it. A reader who sees nothing else
marks the facts that the text tells in `recorded/readings.toml`. `roomtone bench memory --only recorded` repeats the
folds without a model. An answer is kept under a hash of its request, so another prompt needs other answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
import tomllib
from datetime import UTC
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import percentile
from benchmarks.measuring import Progress, logging_disabled
from benchmarks.memory.conversations.synthetic_evenings import BOT
from bot.llm.factory import open_model
from bot.llm.model_calls import OPERATOR, PaidModel
from bot.memory.replay import Replay, replay
from bot.memory.transcript import read_transcript
from compaction.errors import CompletionError
from compaction.language.text import words
from compaction.mapping_store import MappingStore
from compaction.model import Mode, Segment, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import Completion, CompletionAnswer, CompletionRequest, TurnStore
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.folded import fold_request, make_segment
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import REACH_TURNS, Summariser
from compaction.window import BATCH_SIZE
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.report import Json

RECORDED = Path(__file__).parent / "recorded"
WRITTEN = ("cabin", "salt_gate")
# Long enough for a writer who reads each request.
_TIMEOUT_S = 600.0
_KEY_CHARS = 16
_QUOTE = re.compile(r'"([^"]*)"')


class RecordedAnswers:
    """A model that answers what was answered before. `model` answers the rest, and is kept in `path`; None fails."""

    model = "recorded"

    def __init__(self, path: Path, model: Completion | None = None) -> None:
        self._path = path
        self._model = model
        self._kept: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the kept answer, or ask for it."""
        key = text_key(f"{request.system}\n{request.prompt}")
        if key not in self._kept:
            if self._model is None:
                raise CompletionError("There is no recorded answer to this request.", retryable=False)
            self._kept[key] = (await self._model.complete(request)).text
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(json.dumps(self._kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return CompletionAnswer(self._kept[key], "stop", None, None)


async def fold_written(name: str, summariser: Summariser, store: TurnStore | None = None) -> Replay:
    """Return what the memory has after one of the `WRITTEN` conversations. `store`: None: one in memory."""
    return await replay(
        read_transcript(RECORDED / f"{name}.jsonl"),
        store=MappingStore({}) if store is None else store,
        summariser=summariser,
        timeout_s=_TIMEOUT_S,
        mode=Mode.SUMMARY,
        system=(),
        max_input_tokens=1_000_000,
        zone=UTC,
        own_names=(BOT,),
        on_event=lambda _: None,
        on_line=lambda: None,
    )


async def measure_recorded() -> dict[str, Json]:
    """Return how many of the `facts` the final texts tell, as far as answers and readings are kept."""
    readings = tomllib.loads((RECORDED / "readings.toml").read_text("utf-8"))
    facts = found = 0
    missing: list[Json] = []
    for name in WRITTEN:
        played = await fold_written(name, LlmSummariser(RecordedAnswers(answers_file(name))))
        read = readings.get(text_key(played.summary))
        if played.failed or read is None:
            missing.append(name)
            continue
        due = facts_due(name, played.cursor)
        facts += len(due)
        found += len(due.keys() & set(read))
    return {"facts": facts, "told": round(found / facts, 3) if facts else None, "missing": missing}


def answers_file(name: str) -> Path:
    """Return where the answers of a conversation are kept."""
    return RECORDED / "answers" / f"{name}.json"


def facts_due(name: str, cursor: int) -> dict[int, str]:
    """Return the labelled facts that hold after the turns before `cursor`, by their turns."""
    labels = tomllib.loads((RECORDED / f"{name}.labels.toml").read_text("utf-8"))["fact"]
    labelled = {each["text"]: each["turn"] for each in labels if each["turn"] < cursor}
    return {
        each["turn"]: each["text"]
        for each in labels
        if each["text"] in labelled and each.get("replaced_by") not in labelled
    }


def text_key(text: str) -> str:
    """Return the key under which an answer, or the reading of a text, is kept."""
    return sha256(text.encode()).hexdigest()[:_KEY_CHARS]


async def measure_extractive(conversations: Sequence[RecordedConversation], progress: Progress) -> dict[str, Json]:
    """Return the figures of all conversations: the `unsaid_quotes` of all `quotes`, and the time of a fold."""
    quotes = unsaid = 0
    times_ms: list[float] = []
    progress.step("quotes without a model", total=len(conversations))
    for conversation in conversations:
        turns = [
            Turn(Seq(seq), TurnKind.SPEECH, line.at, line.at, (TurnPart(line.speaker, line.speaker, line.text),))
            for seq, line in enumerate(conversation.lines)
        ]
        for segment in await _folded(turns, times_ms):
            for fact in segment.facts:
                said = " ".join(words(turns[fact.turn_seq].text))
                for quote in _QUOTE.findall(fact.text):
                    quotes += 1
                    unsaid += " ".join(words(quote)) not in said
        progress.advance()
    return {
        "conversations": len(conversations),
        "quotes": quotes,
        "unsaid_quotes": unsaid,
        "fold_ms_p50": round(percentile(times_ms, 0.5), 2) if times_ms else None,
        "fold_ms_p99": round(percentile(times_ms, 0.99), 2) if times_ms else None,
    }


async def _folded(turns: Sequence[Turn], times_ms: list[float]) -> list[Segment]:
    segments: list[Segment] = []
    for start in range(0, len(turns) - BATCH_SIZE + 1, BATCH_SIZE):
        batch, before = turns[start : start + BATCH_SIZE], turns[max(0, start - REACH_TURNS) : start]
        newest = segments[-1] if segments else None
        request = fold_request(Seq(start), batch, (), before, segments, newest=newest)
        began_at = time.perf_counter()
        fold = await ExtractiveSummariser().fold(request)
        times_ms.append(1_000 * (time.perf_counter() - began_at))
        segments.append(make_segment(request, fold, session_id=SessionId("bench"), revision=start, at=float(start)))
    return segments


async def _record(name: str) -> None:
    settings = load()
    with logging_disabled():
        async with open_model(settings.llm, settings.budget, settings.models) as model:
            answers = RecordedAnswers(answers_file(name), PaidModel(model, OPERATOR))
            played = await fold_written(name, LlmSummariser(answers))
    print(  # noqa: T201 - a command
        f'{len(played.landed)} folds, {len(played.failed)} failures\n\n"{text_key(played.summary)}"\n{played.summary}\n'
    )
    for turn, fact in facts_due(name, played.cursor).items():
        print(f"{turn}: {fact}")  # noqa: T201 - a command


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conversation", choices=WRITTEN)
    asyncio.run(_record(parser.parse_args().conversation))


if __name__ == "__main__":
    main()
