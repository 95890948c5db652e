"""Measure how steadily one process sends in many rooms at once, and what each room costs.

The measurement uses the kernel's receive times of the packets, outside the bot. In every room the bot speaks without a
pause while a person talks over it. Its event loop is repeatedly blocked for 40 ms.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.reply.jitter import FRAME_S, jitter_ms, lateness_ms, talkspurts
from benchmarks.reply.many_rooms import open_many_rooms
from benchmarks.stats import percentile
from rehearsal.script.scenario_file import load_scenario, scenario_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.progress import Progress
    from benchmarks.reply.many_rooms import ManyRooms
    from benchmarks.report import Json

# The event loop is blocked this long at a time, and for this share of all time, in addition to its own work.
BLOCK_MS = 40.0
BLOCK_SHARE = 0.4
# Seconds after opening a room that are not measured, because joining and the first answer are not the steady state.
_SETTLE_S = 3.0
# Seconds for the models' first work, which no room should be charged for. Everybody speaks twice in this time.
_WARM_UP_S = 18.0


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The figures of `rooms` simultaneous rooms, in milliseconds; None if no packets came. `late` is relative to each
    talkspurt's earliest packet.

    `packets_due`: how many come if every room speaks all the time. `cpu_share`: the share of one core, including the
    deliberate blocking.
    """

    rooms: int
    packets: int
    packets_due: int
    jitter_p50_ms: float | None
    jitter_p95_ms: float | None
    jitter_p99_ms: float | None
    jitter_max_ms: float | None
    late_p99_ms: float | None
    rss_mb: float
    threads: int
    cpu_share: float


@dataclass(frozen=True, slots=True)
class PacingFigures:
    """The results for each number of rooms. `quiet`: the maximum number again, without blocking the event loop."""

    steps: tuple[Steadiness, ...]
    quiet: Steadiness
    memory_a_room_mb: float | None

    def as_json(self) -> dict[str, Json]:
        """Return the figures for the report."""
        return {
            "blocked_ms": BLOCK_MS,
            "blocked_share": BLOCK_SHARE,
            "rooms": {str(step.rooms): dict(asdict(step)) for step in self.steps},
            "without_blocking": dict(asdict(self.quiet)),
            "memory_a_room_mb": self.memory_a_room_mb,
        }


async def measure_pacing(*, rooms: int = 10, seconds: float = 20.0, progress: Progress) -> PacingFigures:
    """Let one process speak in 1, 2, 5 and so on up to `rooms` rooms, for `seconds` each.

    People say a bundled sentence meanwhile. Raises `BenchmarkError` if rooms cannot be opened.
    """
    counts = counts_up_to(rooms)
    progress.step("rooms that all talk at once", total=len(counts) + 1)
    steps: list[Steadiness] = []
    async with open_many_rooms(_bundled_clip()) as (opened, data_dir):
        for count in counts:
            while len(opened.arrivals) < count:
                await opened.open_another(data_dir)
            if not steps:
                await asyncio.sleep(_WARM_UP_S)
            await opened.ask("busy", block_ms=BLOCK_MS, share=BLOCK_SHARE)
            steps.append(await _steadiness(opened, seconds))
            await opened.ask("busy", block_ms=0.0, share=0.0)
            progress.advance()
        quiet = await _steadiness(opened, seconds)
        progress.advance()
    return PacingFigures(tuple(steps), quiet, growth_mb(steps))


def counts_up_to(rooms: int) -> list[int]:
    """Return the numbers of rooms to measure: 1, 2, 5, 10, 20, 50 and so on, and finally `rooms` itself."""
    usual = [factor * ten for ten in (1, 10, 100) for factor in (1, 2, 5)]
    return [*(count for count in usual if count < rooms), rooms]


def growth_mb(steps: Sequence[Steadiness]) -> float | None:
    """Return the memory for each additional room, from the last two steps, or None if there is only one step.

    The models need extra memory once when several rooms use them for the first time. The earlier steps contain it.
    """
    if len(steps) < 2:
        return None
    before, after = steps[-2:]
    return round((after.rss_mb - before.rss_mb) / (after.rooms - before.rooms), 2)


async def _steadiness(opened: ManyRooms, seconds: float) -> Steadiness:
    await asyncio.sleep(_SETTLE_S)
    before = await opened.ask("figures")
    for arrivals in opened.arrivals:
        arrivals.clear()
    began = time.monotonic()
    await asyncio.sleep(seconds)
    took_s = time.monotonic() - began
    kept = [list(arrivals) for arrivals in opened.arrivals]
    after = await opened.ask("figures")
    spurts = [spurt for arrivals in kept for spurt in talkspurts(arrivals)]
    jitter, late = jitter_ms(spurts), list(lateness_ms(spurts))
    return Steadiness(
        rooms=len(kept),
        packets=sum(map(len, kept)),
        packets_due=round(len(kept) * took_s / FRAME_S),
        jitter_p50_ms=_ms(jitter, 0.5),
        jitter_p95_ms=_ms(jitter, 0.95),
        jitter_p99_ms=_ms(jitter, 0.99),
        jitter_max_ms=_ms(jitter, 1.0),
        late_p99_ms=_ms(late, 0.99),
        rss_mb=float(after["rss_mb"]),
        threads=int(after["threads"]),
        cpu_share=round((float(after["cpu_s"]) - float(before["cpu_s"])) / took_s, 3),
    )


def _ms(values: Sequence[float], share: float) -> float | None:
    return round(percentile(values, share), 3) if values else None


def _bundled_clip() -> Path:
    return load_scenario(scenario_path("hello")).says[0].audio
