"""The decoders alone, on the same frames in one thread: ours to 16 kHz mono, and discord.py's to 48 kHz stereo."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import discord

from voice.transport import opus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Json

# The fastest of so many passes: everything slower is somebody else's work on the machine.
_PASSES = 5
_FRAMES_A_SECOND = 50


def measure_decoders(packets: Sequence[bytes]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the figures of our decoder and of discord.py's."""
    if not discord.opus.is_loaded():
        discord.opus.load_opus(opus.library()._name)
    ours, stock = opus.Decoder(), discord.opus.Decoder()  # type: ignore[no-untyped-call]
    return (
        _figures(_fastest(ours.decode, packets), len(packets), opus.version()),
        _figures(_fastest(lambda packet: stock.decode(packet, fec=False), packets), len(packets), discord.__version__),
    )


def _figures(seconds: float, frames: int, version: str) -> dict[str, Json]:
    return {
        "version": version,
        "frames": frames,
        "us_a_frame": round(1e6 * seconds, 2),
        "cpu_s_a_speaker_second": round(_FRAMES_A_SECOND * seconds, 6),
        "core_of_100_speakers": round(100 * _FRAMES_A_SECOND * seconds, 4),
    }


def _fastest(decode: Callable[[bytes], object], packets: Sequence[bytes]) -> float:
    """Return the CPU seconds of one frame."""
    passes = []
    for _ in range(_PASSES):
        begun = time.thread_time()
        for packet in packets:
            decode(packet)
        passes.append(time.thread_time() - begun)
    return min(passes) / len(packets)
