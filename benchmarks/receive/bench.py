"""`roomtone bench receive`: what it costs to receive people who speak at once.

The crowd and its Discord are one process, and who receives it is another one: the bare link or the whole bot. They get
their streams over UDP, with both encryptions, one after the other: the link from people who speak without a pause, and
the bot from people who pause, because only then it has something to recognise.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.child_process import child_process, python_module
from benchmarks.measuring import Measuring
from benchmarks.receive.targets import receive_targets
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.child_process import ChildProcess
    from benchmarks.progress import Progress
    from benchmarks.receive.options import ReceiveBenchOptions
    from benchmarks.receive.scene import Scene
    from benchmarks.report import BenchmarkReport, Json, Target

_JOIN_TIMEOUT_S = 180.0
# 100 people who talk for 40 s are 160,000 packets, which are encrypted beforehand.
_PREPARE_TIMEOUT_S = 240.0
# After the last packet, until the last sound has been delivered, and before the first.
_SETTLE_S = 0.5
_REPORT_S = 6.0
# Of the whole bot: until what was said is recognised, so that the next speakers do not bear it. 64 utterances may wait.
_RECOGNISED_WITHIN_S = 90.0
# The bot speaks to nobody here, and its data folder is deleted.
_BOT_SETTINGS = {
    "compaction.summariser": "extractive",
    "room.notice": "",
    # Its metrics are read here.
    "web.host": "127.0.0.1",
    "web.port": 0,
}


async def run(
    options: ReceiveBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] | None = None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part. Raises `BenchmarkError`."""
    measuring = _Measuring(options=options, progress=progress, on_part=on_part)
    measuring.remark_if_busy()
    async with AsyncExitStack() as stack:
        await measuring.all_parts(stack)
    return measuring.report()


@dataclass(slots=True, kw_only=True)
class _Measuring(Measuring):
    """One run and its results so far."""

    bench = "receive"

    options: ReceiveBenchOptions

    def targets(self) -> tuple[Target, ...]:
        return receive_targets(self.ours)

    async def all_parts(self, stack: AsyncExitStack) -> None:
        """Measure the chosen parts one after the other."""
        options = self.options
        self.progress.step(f"{options.people} people enter", total=1)
        crowd = await stack.enter_async_context(
            child_process("the crowd", python_module("benchmarks.receive.crowd_process"))
        )
        where = await crowd.ask("open", people=options.people, timeout_s=_JOIN_TIMEOUT_S)
        self.progress.advance()
        if options.wants("link"):
            await self._measure_ours(crowd, "link", where, options.link_scenes)
        if options.wants("bot"):
            await self._measure_ours(crowd, "bot", where, options.bot_scenes)

    async def _measure_ours(
        self, crowd: ChildProcess, op: str, where: Mapping[str, object], scenes: Sequence[Scene]
    ) -> None:
        """Measure the bare link or the whole bot."""
        name = {"link": "link", "bot": "whole bot"}[op]
        command = python_module("benchmarks.receive.receiving_process")
        figures: dict[str, Json] = {}
        with tempfile.TemporaryDirectory(prefix="roomtone-receive-") as folder:
            async with child_process(name, command) as receiver:
                settings = {**_BOT_SETTINGS, "storage.data_dir": folder}
                await receiver.ask(op, settings=settings, discord=where, timeout_s=_JOIN_TIMEOUT_S)
                self.progress.step(f"{name}: people speak at once", total=len(scenes))
                for scene in scenes:
                    sent, cost = await _perform(scene, crowd, receiver, ROOMTONE_BOT_ID)
                    if op == "bot":
                        await self._settle(receiver, scene.speakers)
                    counted = await receiver.ask("counters")
                    if self._is_measured(scene.speakers, counted):
                        figures[scene.name] = summary(sent, {**cost, **counted})
                    self.progress.advance()
        self.ours[name] = figures
        self.part_done()

    async def _settle(self, receiver: ChildProcess, speakers: int) -> None:
        """Wait until the bot's room has reported its counters, every five seconds, and has recognised what was said."""
        await asyncio.sleep(_REPORT_S)
        if not (await receiver.ask("settle", within_s=_RECOGNISED_WITHIN_S))["settled"]:
            self.remark(
                f"What {speakers} people said was not recognised {_RECOGNISED_WITHIN_S:g} s later, which costs those "
                "who speak next."
            )

    def _is_measured(self, speakers: int, counted: Mapping[str, Json]) -> bool:
        """Return False if the bot's room began anew meanwhile. A remark tells that, and what the bot logged."""
        logged, opened = counted["logged"], counted["rooms_opened"]
        assert isinstance(logged, dict)
        if logged:
            told = "; ".join(f"{count} x {entry}" for entry, count in sorted(logged.items()))
            self.remark(f"When {speakers} people spoke, the receiver logged: {told}.")
        if opened:
            self.remark(f"The room began anew when {speakers} people spoke, so they are not measured.")
        return not opened


async def _perform(
    scene: Scene, crowd: ChildProcess, receiver: ChildProcess, user_id: int
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Let people speak. Returns what was sent, and what it cost the receiver from the warm-up to the last packet. Then
    every sound has been delivered, so that it can be counted.
    """
    await crowd.ask(
        "prepare",
        receiver=user_id,
        speakers=scene.speakers,
        seconds=scene.warm_up_s + scene.seconds,
        pauses=scene.pauses,
        timeout_s=_PREPARE_TIMEOUT_S,
    )
    await crowd.ask("announce", speakers=scene.speakers)
    await asyncio.sleep(_SETTLE_S)
    await receiver.ask("begin")
    performing = crowd.ask("perform", receiver=user_id, in_step=scene.in_step, warm_up_s=scene.warm_up_s)
    sent, _ = await asyncio.gather(performing, _warm_up(receiver, scene.warm_up_s))
    # At once: a moment in which nobody speaks any more would make the share of a core smaller, and what the bot still
    # recognises then is not the cost of the speakers.
    cost = await receiver.ask("end")
    await asyncio.sleep(_SETTLE_S)
    return sent, cost


async def _warm_up(receiver: ChildProcess, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await receiver.ask("warmed_up")


def summary(sent: Mapping[str, Json], found: Mapping[str, Json]) -> dict[str, Json]:
    """Return the figures of one number of speakers: what was sent, what became sound, and what it cost.

    `sent` has all packets, and those `measured` for the cost: all but those of the warm-up.
    """
    counters = found["counters"]
    assert isinstance(counters, dict)
    packets, wall_s, cpu_s = _number(sent["packets"]), _number(found["wall_s"]), _number(found["cpu_s"])
    speaker_seconds = _number(sent["measured"]) / 50
    figures: dict[str, Json] = {
        "sent": int(packets),
        "lost": int(packets - _number(counters.get("decoded", 0)) - _number(counters.get("silence", 0))),
        "core": round(cpu_s / wall_s, 4),
        "cpu_s_a_speaker_second": round(cpu_s / speaker_seconds, 6),
        "threads": found.get("threads", {}),
        "loop_lag": found["loop_lag"],
        "counters": counters,
        "dropped": found.get("dropped", {}),
        "sender_latest_ms": sent["latest_ms"],
    }
    if "recogniser" in found:
        figures |= {"measured_s": round(wall_s, 1), "recogniser": found["recogniser"]}
    return figures


def _number(value: Json) -> float:
    assert isinstance(value, int | float), "a figure"
    return float(value)
