"""Sources of discord.py become frames of the sending thread, and their ends are told once."""

from __future__ import annotations

import discord

from tests.rehearsal.discord.stock import Tone
from voice.transport.source_frames import SourceFrames


class Packets(discord.AudioSource):
    """A source of Opus packets, which says that it was cleaned up, and may break."""

    def __init__(self, *packets: bytes, breaks: bool = False) -> None:
        self._packets = list(packets)
        self._breaks = breaks
        self.cleaned_up = 0

    def read(self) -> bytes:
        if not self._packets and self._breaks:
            raise OSError("The file is gone.")
        return self._packets.pop(0) if self._packets else b""

    def is_opus(self) -> bool:
        return True

    def cleanup(self) -> None:
        self.cleaned_up += 1


def test_packets_pass_as_they_are_and_the_end_is_told_once() -> None:
    told: list[Exception | None] = []
    source = Packets(b"one", b"two")
    frames = SourceFrames(source, told.append, bitrate_bps=64_000)
    assert [frames.next_frame() for _ in range(4)] == [b"one", b"two", None, None]
    frames.end()
    assert (told, source.cleaned_up, frames.over) == ([None], 1, True)


def test_pcm_is_encoded() -> None:
    frames = SourceFrames(Tone(0.04), bitrate_bps=8_000)
    packets = [frames.next_frame() for _ in range(3)]
    assert [isinstance(each, bytes) for each in packets] == [True, True, False]


def test_a_source_that_breaks_ends_with_its_error() -> None:
    """Whatever the program does when it is told, sending goes on."""
    told: list[Exception | None] = []

    def after(error: Exception | None) -> None:
        told.append(error)
        raise RuntimeError

    frames = SourceFrames(Packets(breaks=True), after, bitrate_bps=64_000)
    assert frames.next_frame() is None
    assert [type(each) for each in told] == [OSError]
    assert frames.over
