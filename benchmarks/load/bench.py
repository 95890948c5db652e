"""`roomtone bench load`: what it costs to receive people who speak at once, how soon text comes in several rooms, and
whether joins and packets leak.

The crowd and its Discord are one process, and who receives it is another one: the bare connection or the whole bot.
They get their streams over UDP, with both encryptions: the connection from people who speak without a pause, and the
bot from people who pause, because only then it has something to recognise.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.child_process import ChildProcess, child_process
from benchmarks.cluster.bot_process import measure_bot
from benchmarks.figures import number_at, sample_at
from benchmarks.load.growth import growth
from benchmarks.measuring import Measuring, Progress, measuring
from benchmarks.recordings import load_recordings
from benchmarks.report import BenchmarkError, BenchmarkReport, Json, Target, at_most
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_RECEIVER = "benchmarks.load.receiving_process"
_JOIN_TIMEOUT_S = 180.0
# 100 people who talk for 40 s are 160,000 packets, which are encrypted beforehand.
_PREPARE_TIMEOUT_S = 240.0
# After the last packet, until the last sound has been delivered, and before the first.
_SETTLE_S = 0.5
# The bot's room reports its counters every five seconds.
_REPORT_S = 6.0
_LEAK_SAMPLES = 20
# As many as `bench cluster` takes.
_RECORDINGS = 12
_LEAKS_TIMEOUT_S = 300.0
_CORE_OF_100 = 0.20
_LAG_P99_MS = 20.0
# Who waits longer for an answer to begin thinks that nobody has listened.
_TEXT_P95_MS = 1000.0
# What the allocator may keep. A join that leaked its receiver and decoders would take a hundred times as much.
_GROWTH_MB = 3.0
# The bot speaks to nobody here, and its data folder is deleted.
_BOT_SETTINGS = {"tuning.summariser": "extractive", "web.host": "127.0.0.1", "web.port": 0}


@dataclass(frozen=True, slots=True)
class Scene:
    """How a number of people speak while it is measured for `seconds`, after `warm_up_s`.

    `pauses`: whether they pause again and again, at different moments; otherwise all speak all the time. `in_step`:
    whether the packets of all come at the same moment, every 20 ms; otherwise they lie evenly in the 20 ms.
    """

    speakers: int
    seconds: float
    warm_up_s: float
    pauses: bool = False
    in_step: bool = False

    @property
    def name(self) -> str:
        """The name of the figures."""
        return f"{self.speakers} speakers in step" if self.in_step else f"{self.speakers} speakers"


@dataclass(frozen=True, slots=True)
class LoadBenchOptions:
    """The options of one run. The defaults are a full run.

    `connection`, `bot`: how the bare connection and the whole bot are spoken to. `bot_runs`: how many bots are, one
    after the other. `joins`: how often the connection joins and leaves. `packets`: how many packets arrive with
    end-to-end encryption while people come and go. `rooms`: in how many rooms of one bot people talk at once, for
    `room_s` each. `only`: the parts to measure; empty means all.
    """

    connection: tuple[Scene, ...] = (Scene(100, 6.0, 1.0), Scene(200, 6.0, 1.0, in_step=True))
    bot: Scene = Scene(100, 30.0, 10.0, pauses=True)
    # The lag of one run says little: what is recognised beside it differs.
    bot_runs: int = 3
    joins: int = 1000
    packets: int = 40_000
    rooms: tuple[int, ...] = (2, 4, 6)
    room_s: float = 60.0
    only: tuple[str, ...] = ()

    @classmethod
    def quick(cls, *, only: tuple[str, ...] = ()) -> LoadBenchOptions:
        """Return the options for a short run, which only checks that everything works."""
        connection = (Scene(3, 1.0, 0.2), Scene(3, 1.0, 0.2, in_step=True))
        bot = Scene(3, 2.0, 1.0, pauses=True)
        return cls(connection, bot, bot_runs=1, joins=20, packets=800, rooms=(1, 2), room_s=5.0, only=only)


async def run(
    options: LoadBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    with measuring("load", load_targets, progress, on_part, options.only) as found:
        if found.wants("receive"):
            found.part_measured("receive", await _receive(found, options, "receive", options.connection))
        if found.wants("bot"):
            runs: list[dict[str, Json]] = []
            for _ in range(options.bot_runs):
                runs.append((await _receive(found, options, "whole bot", (options.bot,)))[options.bot.name])
                found.part_measured("whole bot", {options.bot.name: of_runs(runs)})
        if found.wants("rooms"):
            await _rooms(found, options)
        if found.wants("leaks"):
            await _leaks(found, options)
    return found.report()


async def _receive(
    found: Measuring, options: LoadBenchOptions, name: str, scenes: Sequence[Scene]
) -> dict[str, dict[str, Json]]:
    """Measure the bare connection or the whole bot, with as many people in the channel as the largest crowd needs.
    Returns the figures of each scene by its name.
    """
    figures: dict[str, dict[str, Json]] = {}
    async with AsyncExitStack() as stack:
        crowd, address = await _crowd(
            stack, found.progress, max(each.speakers for each in (*options.connection, options.bot))
        )
        receiver = await stack.enter_async_context(child_process(name, _RECEIVER))
        if name == "receive":
            await receiver.ask("enter", address=address)
            await receiver.ask("join_bare")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="roomtone-load-"))
            settings = {**_BOT_SETTINGS, "storage.data_dir": folder}
            await receiver.ask("join_bot", address=address, settings=settings, timeout_s=_JOIN_TIMEOUT_S)
        found.progress.step(f"{name}: people speak at once", total=len(scenes))
        for scene in scenes:
            sent, cost = await perform(scene, crowd, receiver)
            if name != "receive":
                await asyncio.sleep(_REPORT_S)
            counted = await receiver.ask("counters")
            if counted["rooms_opened"]:
                raise BenchmarkError(f"The room began anew when {scene.speakers} people spoke. See the bot's log.")
            figures[scene.name] = summary(sent, {**cost, **counted})
            found.progress.advance()
    return figures


async def _rooms(found: Measuring, options: LoadBenchOptions) -> None:
    """Let two people talk in turn in each of several rooms of one bot, which recognises all of it."""
    models = load().models.directory.absolute()
    clips = [str(recording.path.absolute()) for recording in load_recordings(None).some(_RECORDINGS)]
    for rooms in options.rooms:
        name = f"{rooms} room{'s' if rooms > 1 else ''}"
        found.progress.step(name, total=1)
        taken = await measure_bot(models, clips, rooms=rooms, seconds=options.room_s, recognises=True)
        found.part_measured(name, taken)


async def _leaks(found: Measuring, options: LoadBenchOptions) -> None:
    """Join and leave again and again, and let packets arrive while people come and go: by how much what the process
    holds grows on the way.
    """
    async with AsyncExitStack() as stack:
        _, address = await _crowd(stack, found.progress, 2)
        receiver = await stack.enter_async_context(child_process("the bare receiver", _RECEIVER))
        await receiver.ask("enter", address=address)
        for op, total in (("joins", options.joins), ("encrypted packets", options.packets)):
            samples: list[dict[str, float]] = []
            found.progress.step(f"{total:,} {op}", total=_LEAK_SAMPLES)
            for number in range(_LEAK_SAMPLES):
                count = total * (number + 1) // _LEAK_SAMPLES - total * number // _LEAK_SAMPLES
                held = await receiver.ask(op.replace(" ", "_"), count=count, timeout_s=_LEAKS_TIMEOUT_S)
                samples.append(held)
                found.progress.advance()
            figures: dict[str, Json] = {"growth": growth(samples), "first": {**samples[0]}, "last": {**samples[-1]}}
            found.part_measured(f"{total:,} {op}", figures)


async def _crowd(stack: AsyncExitStack, progress: Progress, people: int) -> tuple[ChildProcess, dict[str, Json]]:
    """Let so many people enter a Discord of their own. Returns its process, and its address."""
    progress.step(f"{people} people enter", total=1)
    crowd = await stack.enter_async_context(child_process("the crowd", "benchmarks.load.crowd"))
    return crowd, await crowd.ask("open", people=people, timeout_s=_JOIN_TIMEOUT_S)


async def perform(scene: Scene, crowd: ChildProcess, receiver: ChildProcess) -> tuple[dict[str, Json], dict[str, Json]]:
    """Let people speak. Returns what was sent, and what it cost the receiver from the warm-up to the last packet. Then
    every sound has been delivered, so that it can be counted.
    """
    seconds = scene.warm_up_s + scene.seconds
    prepared = {"speakers": scene.speakers, "seconds": seconds, "pauses": scene.pauses}
    await crowd.ask("prepare", timeout_s=_PREPARE_TIMEOUT_S, **prepared)
    await asyncio.sleep(_SETTLE_S)
    await receiver.ask("begin")
    performed = await asyncio.gather(
        crowd.ask("perform", in_step=scene.in_step, warm_up_s=scene.warm_up_s),
        receiver.ask("warm_up", seconds=scene.warm_up_s),
    )
    # At once: a moment in which nobody speaks any more would make the share of a core smaller, and what the bot still
    # recognises then is not the cost of the speakers.
    cost = await receiver.ask("end")
    await asyncio.sleep(_SETTLE_S)
    return performed[0], cost


def summary(sent: Mapping[str, Json], found: Mapping[str, Json]) -> dict[str, Json]:
    """Return the figures of one number of speakers: what was sent, what became sound, and what it cost.

    `sent` has all packets, and those `measured` for the cost: all but those of the warm-up.
    """
    packets, measured = number_at(sent, "packets") or 0.0, number_at(sent, "measured") or 0.0
    heard = sum(number_at(found, "counters", name) or 0.0 for name in ("decoded", "silence"))
    cpu_s, wall_s = number_at(found, "cpu_s") or 0.0, number_at(found, "wall_s") or 0.0
    return {
        "sent": int(packets),
        "lost": int(packets - heard),
        "core": round(cpu_s / wall_s, 4) if wall_s else None,
        "cpu_s_a_speaker_second": round(cpu_s * 50 / measured, 6) if measured else None,
        "loop_lag": found["loop_lag"],
        "texts": found["texts"],
        "counters": found["counters"],
        "dropped": found["dropped"],
        "sender_latest_ms": sent["latest_ms"],
    }


def of_runs(runs: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the figures of several runs: the median of their lags, all frames, the fewest texts, and each run."""
    lags_ms = [lag for run in runs if (lag := number_at(run, "loop_lag", "p99_ms")) is not None]
    counts = {name: [int(number_at(run, name) or 0) for run in runs] for name in ("sent", "lost", "texts")}
    return {
        "loop_lag": {"p99_ms": median(lags_ms)} if lags_ms else {},
        "sent": sum(counts["sent"]),
        "lost": sum(counts["lost"]),
        # A run without any would have a lag that no room has.
        "texts": min(counts["texts"]),
        **{f"run {number}": {**run} for number, run in enumerate(runs, 1)},
    }


def load_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`."""
    alone, in_step = ("receive", "100 speakers"), ("receive", "200 speakers in step")
    bot = ("whole bot", "100 speakers")

    def frames(words: str, *path: str) -> Target:
        return at_most(words, "0", number_at(ours, *path, "lost"), 0, sample_at(ours, "frames", *path, "sent"))

    core = number_at(ours, *alone, "core")
    # A lag without recognitions beside it is not what a room has.
    recognised = number_at(ours, *bot, "texts")
    lag_p99_ms = number_at(ours, *bot, "loop_lag", "p99_ms") if recognised else None
    meanwhile = f"median of the runs, {recognised:,.0f} utterances or more recognised meanwhile" if recognised else ""
    sent = sample_at(ours, "frames", *alone, "sent")
    return (
        at_most("receiving 100 speakers, share of a core", "<= 20 %", core, _CORE_OF_100, sent),
        frames("frames lost of 100 speakers", *alone),
        frames("frames lost of 200 speakers in step", *in_step),
        at_most("whole bot, 100 speakers: loop lag P99, ms", "<= 20 ms", lag_p99_ms, _LAG_P99_MS, meanwhile),
        frames("whole bot, 100 speakers: frames lost", *bot),
        *(
            at_most(
                f"{name}, in which somebody speaks: end of speech to text, P95 ms",
                f"<= {_TEXT_P95_MS:,.0f} ms",
                number_at(entry, "end_to_text_ms", "p95"),
                _TEXT_P95_MS,
                sample_at(entry, "utterances", "end_to_text_ms", "count"),
            )
            for name, entry in ours.items()
            if isinstance(entry, dict) and "end_to_text_ms" in entry
        ),
        *(
            at_most(f"growth over {name}: {what}", goal, number_at(ours, name, "growth", what), most, name)
            for name, entry in ours.items()
            if isinstance(entry, dict) and "growth" in entry
            for what, most, goal in (
                ("rss_mb", _GROWTH_MB, f"<= {_GROWTH_MB:g} MB"),
                *((each, 0.0, "0") for each in ("threads", "files", "tasks")),
            )
        ),
    )
