"""Measures the memory beside a window and LangChain's summary buffer, on two written conversations.

`TZ=UTC uv run --with langchain-classic python docs/benchmarks/others/memory.py` prints JSON: the tokens of the context
after the last turn, the facts that hold then and those that the context tells, and what was asked of a model on the
way. No model is asked. `recorded` folds with the kept answers of a strong model, and a reader found the facts of its
summary and of its chapters (readings.toml). Otherwise quotes stand for a model's summary, for LangChain's too, and a
fact counts as told if its turn is in the context word for word, or a quote of that turn is. Window and buffer have as
many tokens as `quotes`.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from typing import TYPE_CHECKING, Any

from langchain_classic.memory import ConversationSummaryBufferMemory
from langchain_core.language_models.llms import LLM

from benchmarks.memory.conversations.synthetic_evenings import BOT
from benchmarks.memory.summaries import RECORDED, WRITTEN, RecordedAnswers, answers_file, facts_due, text_key
from bot.memory.transcript import SaidLine, read_transcript
from compaction import ConversationMemory, LlmSummariser, Turn
from compaction.language.text import words
from compaction.model import Seq
from compaction.summary.extractive import quote_turns
from compaction.summary.folded import summary_texts
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.ports import CompletionAnswer, CompletionRequest

_ALL = Seq(1_000_000)


class _Counted(RecordedAnswers):
    """Recorded answers that count what they are asked."""

    calls = tokens = 0

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        self.calls += 1
        self.tokens += estimate_text_tokens(request.system + request.prompt)
        return await super().complete(request)


class _Quotes(LLM):  # type: ignore[misc]
    """Answers LangChain with the best quotes of all turns that have left its buffer."""

    turns: Any
    folded: int = 0
    calls: int = 0
    tokens: int = 0

    @property
    def _llm_type(self) -> str:
        return "quotes"

    def get_num_tokens(self, text: str) -> int:
        return estimate_text_tokens(text)

    def _call(self, prompt: str, *_others: object, **_options: object) -> str:
        new = prompt.rpartition("New lines of conversation:")[2]
        self.folded += new.count("\nHuman: ")
        self.calls += 1
        self.tokens += estimate_text_tokens(prompt)
        return quote_turns(self.turns[: self.folded], max_chars=MAX_SUMMARY_CHARS)


def _told(turns: Sequence[Turn], facts: dict[int, str], summary: str, first: int) -> int:
    quoted = [" ".join(words(text)) for _, text in summary_texts(summary)]
    said = {turn: " ".join(words(turns[turn].text)) for turn in facts}
    return sum(turn >= first or any(each and each in said[turn] for each in quoted) for turn in facts)


async def _remembered(name: str, model: _Counted | None) -> tuple[ConversationMemory, list[Turn], list[str]]:
    turns = []
    summariser = None if model is None else LlmSummariser(model)
    async with ConversationMemory.open(name, store={}, summarise=summariser) as memory:
        for line in read_transcript(RECORDED / f"{name}.jsonl"):
            assert isinstance(line, SaidLine)
            turns.append(await memory.add(line.speaker, line.text, at=line.at, is_assistant=line.speaker == BOT))
            await memory.fold()
        return memory, turns, [each["content"] for each in memory.context(max_tokens=_ALL)]


def _tokens(*texts: str) -> int:
    return sum(map(estimate_text_tokens, texts))


async def _measured(name: str) -> dict[str, Any]:
    facts, model = facts_due(name, _ALL), _Counted(answers_file(name))
    memory, turns, context = await _remembered(name, model)
    readings = tomllib.loads((RECORDED / "readings.toml").read_text("utf-8"))
    read = {*readings[text_key(memory.summary or "")], *readings[text_key(context[1])]}
    told = sum(turn in read or turn >= memory.cursor for turn in facts)
    rows = {"recorded": (_tokens(*context), told, model.calls, model.tokens)}
    memory, turns, context = await _remembered(name, None)
    tokens = _tokens(*context)
    # The first message is the summary, the second has the chapters.
    rows["quotes"] = (tokens, _told(turns, facts, "".join(context[:2]), memory.cursor), 0, 0)
    lines = [f"{turn.parts[0].speaker}: {turn.text}" for turn in turns]
    rows["everything"] = (_tokens(*lines), len(facts), 0, 0)
    first = next(at for at in range(len(lines)) if _tokens(*lines[at:]) <= tokens)
    rows["window"] = (_tokens(*lines[first:]), _told(turns, facts, "", first), 0, 0)
    quotes = _Quotes(turns=turns)
    buffer = ConversationSummaryBufferMemory(llm=quotes, max_token_limit=tokens - _tokens(memory.summary or ""))
    for line in lines:
        buffer.chat_memory.add_user_message(line)
        buffer.prune()
    told = _told(turns, facts, buffer.moving_summary_buffer, quotes.folded)
    rows["langchain"] = (_tokens(buffer.buffer), told, quotes.calls, quotes.tokens)
    names = ("tokens", "told", "model_calls", "model_tokens")
    return {"facts": len(facts)} | {row: dict(zip(names, figures, strict=True)) for row, figures in rows.items()}


if __name__ == "__main__":
    print(json.dumps({name: asyncio.run(_measured(name)) for name in WRITTEN}, indent=2))
