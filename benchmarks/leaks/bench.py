"""`roomtone bench leaks`: whether memory, threads, files and tasks stay flat over many joins and packets.

The link joins the local Discord and leaves it, again and again, with two people in the channel. Then a receiver gets
packets of 200 SSRCs, half of which nobody announces, while people come and go. At last another gets the packets of a
room with end-to-end encryption; fewer, because each coming and going changes the keys of everybody in it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.child_process import ChildProcess, child_process, python_module
from benchmarks.figures import number_at
from benchmarks.leaks.growth import growth
from benchmarks.measuring import Measuring
from benchmarks.report import BenchmarkReport, Target, at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.progress import Progress
    from benchmarks.report import Json

_SAMPLES = 20
_JOINS_TIMEOUT_S = 300.0
# What the allocator may keep. A join that leaked its receiver and decoders would take a hundred times as much.
_MEMORY_MB = 3.0


@dataclass(frozen=True, slots=True)
class LeaksBenchOptions:
    """`joins`: how often the link joins and leaves. `packets`, `encrypted`: how many packets arrive without end-to-end
    encryption, and with it.
    """

    joins: int = 1000
    packets: int = 100_000
    encrypted: int = 40_000


async def run(
    options: LeaksBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the three parts. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    measuring = _Measuring(progress=progress, on_part=on_part)
    measuring.remark_if_busy()
    async with AsyncExitStack() as stack:
        crowd = await stack.enter_async_context(
            child_process("the crowd", python_module("benchmarks.receive.crowd_process"))
        )
        where = await crowd.ask("open", people=2)
        process = await stack.enter_async_context(child_process("the link", python_module("benchmarks.leaks.process")))
        await process.ask("enter", discord=where)
        parts = (("joins", options.joins), ("packets", options.packets), ("encrypted packets", options.encrypted))
        for op, total in parts:
            measuring.ours[f"{total:,} {op}"] = await _sampled(process, op, total, progress)
            measuring.part_done()
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "leaks"

    def targets(self) -> tuple[Target, ...]:
        return leaks_targets(self.ours)


async def _sampled(process: ChildProcess, op: str, total: int, progress: Progress) -> dict[str, Json]:
    """Do something `total` times, sample what the process holds on the way, and return the samples and the growth."""
    samples: list[dict[str, float]] = []
    progress.step(f"{total:,} {op}", total=_SAMPLES)
    for number in range(_SAMPLES):
        count = total * (number + 1) // _SAMPLES - total * number // _SAMPLES
        samples.append(await process.ask(op, count=count, timeout_s=_JOINS_TIMEOUT_S))
        progress.advance()
    first, last = dict(samples[0]), dict(samples[-1])
    return {"growth": growth(samples), "first": {**first}, "last": {**last}}


def leaks_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    targets = []
    for name in ours:
        for what, most, goal in (
            ("rss_mb", _MEMORY_MB, f"<= {_MEMORY_MB:g} MB"),
            ("threads", 0.0, "0"),
            ("files", 0.0, "0"),
            ("tasks", 0.0, "0"),
        ):
            grown = number_at(ours, name, "growth", what)
            targets.append(at_most(f"growth over {name}: {what}", goal, grown, most, name))
    return tuple(targets)
