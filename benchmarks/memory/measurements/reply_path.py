"""Measures how much time memory adds to a reply at 10,000 turns: checking whether a fold is due, and building the
payload.

Both happen between a person's last word and the model's first. Each call is measured, with a new turn before it.
Counting tokens is measured separately, because every memory needs it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.measurements.room import MAX_INPUT_TOKENS, add_turn, open_roomtone_memory
from benchmarks.stats import percentile
from bot.clock import SystemClock
from bot.store.turns import SqlTurnStore
from compaction.budget.tool_outputs import ToolOutputOptions
from compaction.budget.trim import TrimOptions
from compaction.context.build import build_payload
from compaction.summary.extractive import ExtractiveSummariser, compose_paragraph
from compaction.summary.folded import standing_facts
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from benchmarks.memory.measurements.room import RoomtoneMemory
    from benchmarks.progress import Progress
    from benchmarks.report import Json
    from compaction.settings import CompactionSettings

# Replies that are measured at the full length. Each one follows a new turn, and every tenth one commits a fold.
_REPLIES = 1_000
_RENDERINGS = 50
_SYSTEM = ("You take part in a voice conversation.",)
_STATM = Path("/proc/self/statm")


@dataclass(slots=True)
class _Samples:
    trigger_ms: list[float] = field(default_factory=list)
    payload_ms: list[float] = field(default_factory=list)
    tokenising_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


async def measure_reply_path(turns: int, settings: CompactionSettings, progress: Progress) -> dict[str, Json]:
    """Return the cost that memory adds to a reply at `turns` turns, and the growth of the session's memory use."""
    lines = generate_evening(0, TemplateSet.TUNING, lines=turns + _REPLIES).lines
    progress.step("what the reply pays", total=len(lines))
    growth: list[Json] = []
    samples = _Samples()
    async with open_roomtone_memory(ExtractiveSummariser(), settings, started_at=lines[0].at) as contender:
        for number, line in enumerate(lines[:turns], start=1):
            await contender.hear(line)
            progress.advance()
            if number in {turns // 10, turns // 2, turns}:
                growth.append(_size(contender, number))
        meter = _Meter()
        for line in lines[turns:]:
            contender.turn = await add_turn(contender.memory, line)
            _sample(contender, meter, samples)
            await contender.memory.settle()
            progress.advance()
        rendering = await _rendering(contender)
    return {
        "turns": turns,
        "replies": _REPLIES,
        "trigger_ms": _spread(samples.trigger_ms),
        "payload_ms": _spread(samples.payload_ms),
        "trigger_and_payload_ms": _spread(
            [trigger + payload for trigger, payload in zip(samples.trigger_ms, samples.payload_ms, strict=True)]
        ),
        "tokenising_ms": _spread(samples.tokenising_ms),
        # CPU time, which is the time on an idle machine.
        "trigger_and_payload_cpu_ms": _spread(samples.cpu_ms),
        "rendering": rendering,
        "growth": growth,
    }


async def _rendering(contender: RoomtoneMemory) -> dict[str, Json]:
    """Return the CPU time of composing a paragraph of all stored facts."""
    stored = await SqlTurnStore(contender.database, SystemClock()).load(contender.memory.session_id)
    facts = [each.fact for each in standing_facts(stored.segments)]
    times_ms: list[float] = []
    for _ in range(_RENDERINGS):
        started = time.thread_time()
        compose_paragraph(facts)
        times_ms.append((time.thread_time() - started) * 1000)
    return {"segments": len(stored.segments), "cpu_ms": _spread(times_ms)}


def _sample(contender: RoomtoneMemory, meter: _Meter, samples: _Samples) -> None:
    cpu = time.thread_time()
    started = time.perf_counter()
    context = contender.memory.context(current=contender.turn, max_input_tokens=MAX_INPUT_TOKENS)
    asked = time.perf_counter()
    meter.seconds = meter.cpu_s = 0.0
    build_payload(context, system=_SYSTEM, options=TrimOptions(tool_outputs=ToolOutputOptions(count=meter.count)))
    built = time.perf_counter()
    samples.cpu_ms.append((time.thread_time() - cpu - meter.cpu_s) * 1000)
    samples.trigger_ms.append((asked - started) * 1000)
    samples.payload_ms.append((built - asked - meter.seconds) * 1000)
    samples.tokenising_ms.append(meter.seconds * 1000)


@dataclass(slots=True)
class _Meter:
    """Counts tokens as the bot does, and measures how long the counting takes."""

    seconds: float = 0.0
    cpu_s: float = 0.0

    def count(self, text: str) -> int:
        started, worked = time.perf_counter(), time.thread_time()
        tokens = estimate_text_tokens(text)
        self.cpu_s += time.thread_time() - worked
        self.seconds += time.perf_counter() - started
        return tokens


def _spread(values_ms: list[float]) -> dict[str, Json]:
    return {
        "p50": round(percentile(values_ms, 0.5), 4),
        "p99": round(percentile(values_ms, 0.99), 4),
        "max": round(max(values_ms), 4),
    }


def _size(contender: RoomtoneMemory, turns: int) -> dict[str, Json]:
    memory = contender.memory
    payload = build_payload(memory.context(current=contender.turn, max_input_tokens=MAX_INPUT_TOKENS), system=_SYSTEM)
    return {
        "turns": turns,
        "turns_in_memory": len(memory.turns),
        "segments": len(memory.segments),
        "summary_chars": len(memory.summary or ""),
        "payload_messages": len(payload),
        "payload_tokens": sum(part.tokens for part in payload),
        "process_mb": _process_mb(),
    }


def _process_mb() -> float | None:
    """Return the process's memory, or None where the system does not report it."""
    try:
        pages = int(_STATM.read_text("utf-8").split()[1])
    except OSError:
        return None
    return round(pages * 4096 / 1e6, 1)
