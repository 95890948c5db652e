"""Measures what search finds, and how long it takes.

- Whether the prompt of a reply quotes the answer to a question at the end of a conversation, called by name. The quotes
  are chosen as `bot.brain.context` chooses them, with the last turns in view and no summary.
- Whether it finds what was said in German, French, Spanish and Japanese, asked in other words. Each language is a
  conversation of 30 turns: the turns that answer the questions of `other_languages.toml`, and as many that share words
  with the questions and answer nothing.
- How long it takes over 100,000 turns in the bot's own store.
"""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from benchmarks.figures import percentile, share_of
from benchmarks.memory.conversations.conversation import ConversationLine
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT, TemplateSet, generate_evening
from benchmarks.memory.roomtone_search import SESSION, open_roomtone_search, quoted_turns, turn_of
from compaction.model import Seq
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.memory.conversations.conversation import RecordedConversation
    from benchmarks.memory.roomtone_search import RoomtoneSearch
    from benchmarks.report import Json
    from compaction.memory.quotes import Quote
    from compaction.ports import Embedder

# Seconds after the last line in which the question is asked.
_ASKED_AFTER_S = 60.0
PAIRS = Path(__file__).parent / "other_languages.toml"
# The answer to a question in another language must be among so many hits.
AMONG = 3
_EVENING_LINES = 2_000
_QUERIES = 300
_HITS = 10
_PIECE = 500


@dataclass(frozen=True, slots=True)
class _AskedFact:
    """A question, the lines that answer it, and the lines whose answer was corrected later."""

    text: str
    answers: frozenset[int]
    stale: frozenset[int]


async def measure_prompts(
    sets: Mapping[str, Sequence[RecordedConversation]], embedder: Embedder | None, progress: Progress
) -> dict[str, Json]:
    """Return the figures of `quotes_in_prompts` for each set of conversations that has questions."""
    figures: dict[str, Json] = {"embedder": None if embedder is None else embedder.model}
    for name, conversations in sets.items():
        if any(each.facts or each.questions for each in conversations):
            figures[name] = await quotes_in_prompts(conversations, embedder, progress)
    return figures


async def quotes_in_prompts(
    conversations: Sequence[RecordedConversation], embedder: Embedder | None, progress: Progress
) -> dict[str, Json]:
    """Return how many questions have their answer among the quotes of the prompt.

    The questions are those about planted facts, and people's questions with known evidence, if the answer is not in
    the last turns anyway. `corrected`: questions whose answer was corrected; `stale_first`: those of them with the old
    answer quoted first. `stale_alone`: questions of which only an old answer is quoted.
    """
    asked: list[dict[str, int]] = []
    progress.step("quotes in prompts", total=len(conversations))
    for conversation in conversations:
        seen = len(conversation.lines) - RECENT_WINDOW
        questions = [each for each in _asked_facts(conversation) if max(each.answers) < seen]
        if questions:
            async with open_roomtone_search(embedder) as search:
                await search.add(conversation.lines)
                await search.embed_all()
                window = [turn_of(line, seen + at) for at, line in enumerate(conversation.lines[seen:])]
                asked_at, view = conversation.lines[-1].at + _ASKED_AFTER_S, (SESSION, Seq(seen))
                for each in questions:
                    told = await search.quotes(each.text, asked_at=asked_at, window=window, in_view=view)
                    asked.append(_counted(each, told))
        progress.advance()
    figures: dict[str, Json] = {"questions": len(asked), "conversations": len(conversations)}
    if asked:
        total = {name: sum(each[name] for each in asked) for name in asked[0]}
        figures |= {
            "answered": round(total["answered"] / len(asked), 4),
            "corrected": total["corrected"],
            "stale_first": share_of(total["stale_first"], total["corrected"]),
            "stale_alone": round(total["stale_alone"] / len(asked), 4),
            "without_quote": total["without_quote"],
            "quotes": round(total["quotes"] / len(asked), 2),
            "tokens_mean": round(total["tokens"] / len(asked), 1),
            "tokens_most": max(each["tokens"] for each in asked),
        }
    return figures


def _counted(asked: _AskedFact, found: Sequence[Quote]) -> dict[str, int]:
    """Return what one question adds to the figures."""
    shown = quoted_turns(found)
    stale = asked.stale.intersection(shown)
    first = next((seq for seq in shown if seq in asked.answers | asked.stale), None)
    return {
        "answered": not asked.answers.isdisjoint(shown),
        "corrected": bool(asked.stale),
        "stale_first": first in stale,
        "stale_alone": asked.answers.isdisjoint(shown) and bool(stale),
        "without_quote": not found,
        "quotes": len(found),
        "tokens": sum(quote.tokens for quote in found),
    }


def _asked_facts(conversation: RecordedConversation) -> Iterator[_AskedFact]:
    for fact in conversation.facts:
        *old, current = fact.statements
        yield _AskedFact(fact.question, frozenset({current.seq}), frozenset(each.seq for each in old))
    for question in conversation.questions:
        if question.evidence:
            yield _AskedFact(question.text, frozenset(question.evidence), frozenset())


async def measure_languages(embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return the share of the questions whose answer is among the first three hits: `found`, `apart` of those that were
    kept apart, and of each language.
    """
    of_language: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    pairs = tomllib.loads(PAIRS.read_text("utf-8"))["pair"]
    languages = list(dict.fromkeys(pair["language"] for pair in pairs))
    progress.step("other languages", total=len(languages))
    for language in languages:
        own = [pair for pair in pairs if pair["language"] == language]
        said = [text for pair in own for text in (pair["answer"], pair["beside"])]
        lines = [ConversationLine("Ada", text, STARTED_AT + 6.0 * at) for at, text in enumerate(said)]
        async with open_roomtone_search(embedder) as search:
            await search.add(lines)
            await search.embed_all()
            for number, pair in enumerate(own):
                hits = await search.search(pair["question"], limit=AMONG)
                of_language[language].append((any(hit.seq == 2 * number for hit in hits), pair["apart"]))
        progress.advance()
    every = [each for found in of_language.values() for each in found]
    return {
        "questions": len(every),
        "found": _share(every),
        "apart": _share([each for each in every if each[1]]),
        **{language: _share(found) for language, found in of_language.items()},
    }


def _share(found: list[tuple[bool, bool]]) -> float:
    return round(sum(hit for hit, _ in found) / len(found), 4)


async def measure_search_speed(turns: int, embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return how long searches among `turns` turns of generated evenings take, and how long filling the index took. The
    `embedder` embeds and compares the queries; the turns have no embeddings.
    """
    async with open_roomtone_search(embedder) as search:
        begun = time.perf_counter()
        questions = await _filled(search, turns, progress)
        added_s = time.perf_counter() - begun
        progress.step(f"search in {turns} turns", total=len(questions))
        # CPU time of all threads together is the time on an idle machine.
        times: list[tuple[float, float]] = []
        # Search once before the measurement, to load what is then kept in memory.
        await search.search(questions[0], limit=_HITS)
        for question in questions:
            begun, worked = time.perf_counter(), time.process_time()
            await search.search(question, limit=_HITS)
            times.append(((time.perf_counter() - begun) * 1000, (time.process_time() - worked) * 1000))
            progress.advance()
    times_ms, cpu_ms = zip(*times, strict=True)
    return {
        "turns": turns,
        "queries": len(times),
        "added_s": round(added_s, 1),
        "p50_ms": round(percentile(times_ms, 0.5), 2),
        "p95_ms": round(percentile(times_ms, 0.95), 2),
        "max_ms": round(max(times_ms), 2),
        "cpu_p50_ms": round(percentile(cpu_ms, 0.5), 2),
        "cpu_p95_ms": round(percentile(cpu_ms, 0.95), 2),
    }


async def _filled(search: RoomtoneSearch, turns: int, progress: Progress) -> list[str]:
    """Add the turns. Returns questions about them, of all evenings and not only of the first."""
    progress.step(f"taking in {turns} turns", total=turns)
    questions: list[str] = []
    for seed in range(-(-turns // _EVENING_LINES)):
        made = generate_evening(1_000 + seed, TemplateSet.TUNING, lines=_EVENING_LINES)
        questions.extend(fact.question for fact in made.facts)
        lines = made.lines[: turns - seed * _EVENING_LINES]
        for first in range(0, len(lines), _PIECE):
            await search.add(lines[first : first + _PIECE])
            progress.advance(len(lines[first : first + _PIECE]))
    asked = list(dict.fromkeys(questions))
    Random(0).shuffle(asked)  # noqa: S311 - the same questions each time
    return asked[:_QUERIES]
