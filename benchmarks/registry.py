"""The list of benchmarks. Importing this module is cheap: a benchmark's module is imported only when it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. `module` has `async def run(options, progress) -> BenchmarkReport`."""

    name: str
    title: str
    duration: str
    module: str


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        name="memory",
        title="What is left of an evening after 5, 20 and 100 folds, and what remembering costs a reply",
        duration="5 minutes without a language model, half an hour more with a small one",
        module="benchmarks.memory.bench",
    ),
    Benchmark(
        name="receive",
        title="What it costs to receive 10 to 200 people who speak at once",
        duration="6 minutes",
        module="benchmarks.receive.bench",
    ),
    Benchmark(
        name="leaks",
        title="Whether memory, threads, files and tasks stay flat over 1,000 joins and 140,000 packets",
        duration="4 minutes",
        module="benchmarks.leaks.bench",
    ),
    Benchmark(
        name="reply",
        title="How long an answer takes, whether it was meant to come, how it stops, and how it grows with rooms",
        duration="half an hour, most of which people speak",
        module="benchmarks.reply.bench",
    ),
    Benchmark(
        name="unasked",
        title="How often the bot speaks in real talk among people of whom nobody means it",
        duration="2 minutes; it needs conversations, which are not included",
        module="benchmarks.unasked.bench",
    ),
    Benchmark(
        name="asr",
        title="What the recogniser mishears, what it costs, and how soon text comes when several people speak",
        duration="15 minutes with 90 recordings; the parts can be run one by one",
        module="benchmarks.asr.bench",
    ),
    Benchmark(
        name="endpoint",
        title="How many pauses inside speech are taken for its end, against how late the end is known",
        duration="4 minutes; 6 more the first time, to make the free talk",
        module="benchmarks.endpoint.bench",
    ),
    Benchmark(
        name="store",
        title="How many turns 1, 4 and 16 processes store in one PostgreSQL database",
        duration="a minute; it needs PostgreSQL",
        module="benchmarks.store.bench",
    ),
    Benchmark(
        name="cluster",
        title="What a call to the recogniser service costs, what more of them bring, and what a bot takes",
        duration="ten minutes, as root: it runs in a network of its own",
        module="benchmarks.cluster.bench",
    ),
)
