"""The list of benchmarks. Importing this module is cheap: a benchmark's module is imported only when it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. `module` has `async def run(options, progress) -> BenchmarkReport`.

    `results`: the kept results in docs/benchmarks, which show where a figure was measured with an earlier arrangement.
    """

    name: str
    title: str
    duration: str
    module: str
    results: tuple[str, ...]


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "reply",
        "How soon the bot answers, and how soon it falls silent",
        "half an hour, most of which people speak",
        "benchmarks.reply.bench",
        ("reply-questions", "reply-requests", "reply"),
    ),
    Benchmark(
        "listen",
        "Whether pauses are taken for ends, what is for the bot is answered, and nothing else",
        "20 minutes; conversations of people are not included",
        "benchmarks.listen.bench",
        ("listen-requests", "listen-free-talk", "listen-made-up", "listen-read", "listen"),
    ),
    Benchmark(
        "asr",
        "What the recogniser mishears, and what it costs",
        "10 minutes with 90 recordings",
        "benchmarks.asr.bench",
        ("asr", "asr-questions", "asr-voices"),
    ),
    Benchmark(
        "load",
        "What 100 people who speak at once and several rooms cost, and whether joins and packets leak",
        "20 minutes",
        "benchmarks.load.bench",
        ("load", "load-rooms"),
    ),
    Benchmark(
        "memory",
        "What memory keeps, what search finds, and how long it takes",
        "5 minutes",
        "benchmarks.memory.bench",
        ("memory", "memory-tiers"),
    ),
    Benchmark(
        "cluster",
        "What a call to the recogniser service costs, how much it recognises at once, and what a bot takes",
        "10 minutes, as root: it runs in a network of its own",
        "benchmarks.cluster.bench",
        ("cluster",),
    ),
)
