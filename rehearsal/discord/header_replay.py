"""Treats the packets of the local people as Discord treated those in a recording of `roomtone doctor --live`.

Each speaker follows one recorded stream, again and again: the same padding and extensions, packets of nothing but
padding between the others, the same gaps, and the same delays. What people say is their own.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# As in the file (`voice.transport.header_recorder`). These come between a speaker's packets.
_PADDING = "p"
_FIELDS = 7
_MAX_PACKETS = 100_000
_MAX_PADDING = 255
# A longer pause is the speaker's own silence.
_LONGEST_DELAY_S = 0.5
_SHORTEST_DELAY_MS = 1.0
_LONGEST_GAP = 50
_TICKS_A_SECOND = 48_000
_LAYOUT = re.compile(r"(?:bede:(?:\d{1,2}\.\d{1,2}(?:,\d{1,2}\.\d{1,2})*)?|[0-9a-f]{4}#\d{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordedPacket:
    """How one packet was treated. `lost_before`: packets that never came. `delay_s`: later than the fastest one."""

    padding_only: bool
    padding_bytes: int
    profile: int
    extension: bytes | None
    lost_before: int
    delay_s: float


@dataclass(slots=True)
class HeaderReplay:
    """The streams of one recording, and which of them each speaker follows."""

    streams: tuple[tuple[RecordedPacket, ...], ...]
    _following: dict[tuple[int, int], Iterator[RecordedPacket]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a recording. Raises `LocalDiscordError` with a plain sentence."""
        try:
            rows = json.loads(path.read_text("utf-8"))["packets"]
            return cls(_streams(rows))
        except OSError as error:
            raise LocalDiscordError(f"{path}: this recording cannot be read ({error.strerror}).") from error
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise LocalDiscordError(
                f"{path}: this is not a recording of `roomtone doctor --live` with packets ({error})."
            ) from error

    def next_packets(self, receiver_ssrc: int, sender_ssrc: int) -> list[RecordedPacket]:
        """Return how the speaker's next packet is treated, after the padding that comes before it."""
        pair = receiver_ssrc, sender_ssrc
        if pair not in self._following:
            stream = self.streams[len(self._following) % len(self.streams)]
            self._following[pair] = itertools.cycle(stream)
        taken = []
        for packet in self._following[pair]:
            taken.append(packet)
            if not packet.padding_only:
                break
        return taken

    def forget(self, ssrc: int) -> None:
        """Forget the streams of a session that has ended."""
        for pair in [pair for pair in self._following if ssrc in pair]:
            del self._following[pair]


def _streams(rows: list[Any]) -> tuple[tuple[RecordedPacket, ...], ...]:
    """Return the recorded streams with at least one packet that is not padding. Raises `ValueError`."""
    if not isinstance(rows, list) or not rows or len(rows) > _MAX_PACKETS:
        raise ValueError(f"it has no packets, or more than {_MAX_PACKETS}")
    by_stream: dict[int, list[list[Any]]] = {}
    for row in rows:
        if not isinstance(row, list) or len(row) != _FIELDS:
            raise ValueError("a packet has not seven fields")
        by_stream.setdefault(int(row[1]), []).append(row)
    found = [_stream(each) for each in by_stream.values()]
    spoken = tuple(stream for stream in found if any(not packet.padding_only for packet in stream))
    if not spoken:
        raise ValueError("nobody speaks in it")
    return spoken


def _stream(rows: list[list[Any]]) -> tuple[RecordedPacket, ...]:
    packets, expected_ms, fastest_ms = [], 0.0, float("inf")
    lateness: list[float] = []
    for at_ms, _, _, ticks, *_ in rows:
        # A new talkspurt's first packet is taken as being in time.
        expected_ms += 1000 * int(ticks) / _TICKS_A_SECOND
        late = float(at_ms) - expected_ms
        if abs(late - (lateness[-1] if lateness else late)) > 1000 * _LONGEST_DELAY_S:
            expected_ms, late = float(at_ms), 0.0
        lateness.append(late)
        fastest_ms = min(fastest_ms, late)
    for row, late in zip(rows, lateness, strict=True):
        _, _, step, _, kind, padding, layout = row
        if not 0 <= int(padding) <= _MAX_PADDING or not _LAYOUT.fullmatch(str(layout)):
            raise ValueError(f"{padding!r} and {layout!r} are no padding and extension")
        profile, extension = _extension(str(layout))
        packets.append(
            RecordedPacket(
                padding_only=kind == _PADDING,
                padding_bytes=int(padding),
                profile=profile,
                extension=extension,
                lost_before=min(max(0, int(step) - 1), _LONGEST_GAP),
                delay_s=_delay_s(late - fastest_ms),
            )
        )
    return tuple(packets)


def _delay_s(late_ms: float) -> float:
    """Return the delay to replay. Less than the loop's timers can tell apart is none, so that the order stays."""
    return min(late_ms / 1000, _LONGEST_DELAY_S) if late_ms >= _SHORTEST_DELAY_MS else 0.0


def _extension(layout: str) -> tuple[int, bytes | None]:
    """Return the profile and a body with this layout and zeros as values; None: no extension."""
    if not layout:
        return 0, None
    if "#" in layout:
        profile, _, words = layout.partition("#")
        return int(profile, 16), bytes(4 * int(words))
    body = b""
    for element in filter(None, layout.removeprefix("bede:").split(",")):
        number, _, size = element.partition(".")
        if not 0 <= int(number) < 16 or not 1 <= int(size) <= 16:
            raise ValueError(f"{element} is no element of one byte")
        body += bytes([int(number) << 4 | int(size) - 1]) + bytes(int(size))
    return 0xBEDE, body + bytes(-len(body) % 4)
