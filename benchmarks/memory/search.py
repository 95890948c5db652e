"""Measures what search finds, and how long it takes.

- Whether the prompt of a reply quotes the answer to a question at the end of a conversation, called by name. The quotes
  are chosen as `bot.brain.context` chooses them, with the last turns in view and no summary.
- Whether it finds what was said in German, French, Spanish and Japanese, asked in other words. Each language is a
  conversation of 30 turns: the turns that answer the questions of `other_languages.toml`, and as many that share words
  with the questions and answer nothing.
- How long it takes over 100,000 turns in the bot's own store, and how long the tiers of a session take: each check, and
  pruning all that is archived.
"""

from __future__ import annotations

import time
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.figures import share_of, spread
from benchmarks.memory.conversations.conversation import ConversationLine, RecordedConversation
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT, TemplateSet, generate_evening
from benchmarks.memory.roomtone_search import SESSION, RoomtoneSearch, open_roomtone_search, quoted_turns, turn_of
from bot.clock import SystemClock
from bot.memory.tier_checks import TierChecks
from bot.store.tiers import PRUNED_AT_ONCE, TierStore
from compaction.memory.tiers import CHECK_EVERY_TURNS
from compaction.model import Mode, Seq
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.window import RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from benchmarks.measuring import Progress
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
# A full context, so that each check queues, compresses and archives what it may.
_CONTEXT_TOKENS = 28_672


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
            async with open_roomtone_search(embedder, conversation.lines) as search:
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
        async with open_roomtone_search(embedder, lines) as search:
            for number, pair in enumerate(own):
                hits = await search.search(pair["question"], limit=AMONG)
                of_language[language].append((any(hit.seq == 2 * number for hit in hits), pair["apart"]))
        progress.advance()
    every = [each for found in of_language.values() for each in found]
    return {
        "questions": len(every),
        "found": fmean(hit for hit, _ in every),
        "apart": fmean(hit for hit, is_apart in every if is_apart),
        **{language: fmean(hit for hit, _ in found) for language, found in of_language.items()},
    }


async def measure_tiers(turns: int, progress: Progress) -> dict[str, Json]:
    """Return how long the checks of a session with so many turns take, and then pruning what it has archived, piece by
    piece: nothing else is written during a piece.
    """
    clock = SystemClock()
    checked, pruned = list[tuple[float, float]](), list[tuple[float, float]]()
    progress.step(f"tiers of {turns} turns", total=turns)
    async with (
        open_roomtone_search() as search,
        SessionTimeline.open(
            SESSION,
            store=search.store,
            summariser=ExtractiveSummariser(),
            mode=Mode.SUMMARY,
            clock=clock,
        ) as timeline,
    ):
        tiers = TierStore(search.database)
        checks = TierChecks(SESSION, timeline, tiers, clock=clock, max_input_tokens=_CONTEXT_TOKENS)
        checks.context_tokens = _CONTEXT_TOKENS
        for number, line in enumerate(generate_evening(1, TemplateSet.TUNING, lines=turns).lines, start=1):
            said = turn_of(line, number)
            await timeline.append(said.kind, said.parts, started_at=said.started_at, ended_at=said.ended_at)
            timeline.context(max_input_tokens=_CONTEXT_TOKENS)
            await timeline.settle()
            if number % CHECK_EVERY_TURNS == 0:
                checked.append(await _timed(checks.check_if_due()))
            progress.advance()
        archived = (await tiers.archived())[SESSION]
        for first in range(0, len(archived), PRUNED_AT_ONCE):
            piece = archived[first : first + PRUNED_AT_ONCE]
            pruned.append(await _timed(tiers.prune({SESSION: piece}, now=clock.now())))
    return {"turns": turns, "segments": len(archived), "check": _spreads(checked), "prune": _spreads(pruned)}


async def measure_search_speed(turns: int, embedder: Embedder | None, progress: Progress) -> dict[str, Json]:
    """Return how long searches among `turns` turns of generated evenings take. The `embedder` embeds and compares the
    queries.
    """
    async with open_roomtone_search(embedder) as search:
        questions = await _filled(search, turns, progress)
        # Vectors by chance, about of unit length: comparing them takes as long, and embedding all turns ten minutes.
        async with search.database.writing() as connection:
            await connection.exec_driver_sql(
                "INSERT INTO passage_vectors (passage_id, model, scale, vector) "
                "SELECT id, ?, 0.0006, randomblob(512) FROM passages",
                ("" if embedder is None else embedder.model,),
            )
        progress.step(f"search in {turns} turns", total=len(questions))
        times: list[tuple[float, float]] = []
        # Search once before the measurement, to load what is then kept in memory.
        await search.search(questions[0], limit=_HITS)
        for question in questions:
            times.append(await _timed(search.search(question, limit=_HITS)))
            progress.advance()
    return {"turns": turns, "queries": len(times), **_spreads(times)}


async def _timed(work: Awaitable[object]) -> tuple[float, float]:
    """Return how long it takes, and the CPU time of all threads: on an idle machine it takes about that. Both in ms."""
    begun, worked = time.perf_counter(), time.process_time()
    await work
    return (time.perf_counter() - begun) * 1000, (time.process_time() - worked) * 1000


def _spreads(times: Sequence[tuple[float, float]]) -> dict[str, Json]:
    return {name: spread(each) for name, each in zip(("ms", "cpu_ms"), zip(*times, strict=True), strict=True)}


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
