"""Treats the packets of the local people as Discord treated those in a recording of `roomtone doctor --live`.

Each speaker follows one recorded stream, again and again: the same padding and extensions, bursts of padding and of
silence between the others, frames in the clear, tiny ones, the same gaps, order and delays. RTCP comes as often, and
op 5 as late. What people say, and when they are silent, is their own; a stream of nothing but silence stays that.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The kinds of packets, as in the file (`voice.transport.header_recorder`).
_KINDS = frozenset("esctp?")
_PADDING, _SILENCE = "p", "s"
# What the file calls RTCP, with the packet's type (RFC 3550, section 12.1).
_RTCP = re.compile(r"rtcp (20[0-7])", re.ASCII)
_MAX_RTCP = 10_000
_LONGEST_ANNOUNCEMENT_S = 10.0
_FIELDS = 7
_MAX_PACKETS = 100_000
_MAX_PADDING = 255
# A longer pause is the speaker's own silence.
_LONGEST_DELAY_S = 0.5
_SHORTEST_DELAY_MS = 1.0
# After silence and so long without a packet, a talkspurt begins.
_PAUSE_MS = 200.0
_LONGEST_GAP = 50
_TICKS_A_SECOND = 48_000
_LAYOUT = re.compile(r"(?:bede:(?:\d{1,2}\.\d{1,2}(?:,\d{1,2}\.\d{1,2})*)?|[0-9a-f]{4}#\d{1,2})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RecordedPacket:
    """How one packet was treated.

    `kind`: as in the file. `between`: it is none of the speaker's 20 ms, but nothing but padding, or silence of a
    burst. `lost_before`: packets that never came. `delay_s`: later than the fastest one. `behind`: how many of the
    packets that were sent after it came before it; with one it has no delay, but came right after that one, whenever
    that was.
    """

    kind: str
    between: bool
    padding_bytes: int
    profile: int
    extension: bytes | None
    lost_before: int
    delay_s: float
    behind: int = 0


class _Following:
    """One speaker's place in a recorded stream, which has at least one packet that is not between others."""

    def __init__(self, stream: tuple[RecordedPacket, ...]) -> None:
        self._packets = itertools.cycle(stream)
        self._has_both = len({packet.kind == _SILENCE for packet in stream if not packet.between}) > 1

    def next_packets(self, *, silent: bool) -> list[RecordedPacket]:
        """See `HeaderReplay.next_packets`."""
        taken: list[RecordedPacket] = []
        passes_pause = False
        while True:
            packet = next(self._packets)
            if packet.between:
                if not passes_pause:
                    taken.append(packet)
            elif not self._has_both or (packet.kind == _SILENCE) is silent:
                return [*taken, packet]
            else:
                # Packets between others are passed over with what they came in.
                taken.clear()
                passes_pause = not silent


@dataclass(slots=True)
class HeaderReplay:
    """The streams of one recording, and which of them each speaker follows.

    `rtcp`: the types of the recorded RTCP packets. `announced_after_s`: how much later than its talkspurt's first
    packet each op 5 came; 0 if it came before.
    """

    streams: tuple[tuple[RecordedPacket, ...], ...]
    rtcp: tuple[int, ...] = ()
    announced_after_s: tuple[float, ...] = ()
    _packets: int = field(init=False)
    _delivered: Counter[int] = field(default_factory=Counter)  # by the receiver's SSRC
    _announced: int = 0
    _following: dict[tuple[int, int], _Following] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._packets = sum(not packet.between for stream in self.streams for packet in stream)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a recording. Raises `LocalDiscordError` with a plain sentence."""
        try:
            record = json.loads(path.read_text("utf-8"))
            return cls(
                _streams(record["packets"]),
                _rtcp(record.get("other_packets", {})),
                tuple(_announced_after_s(record.get("streams", []))),
            )
        except OSError as error:
            raise LocalDiscordError(f"{path}: this recording cannot be read ({error.strerror}).") from error
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise LocalDiscordError(
                f"{path}: this is not a recording of `roomtone doctor --live` with packets ({error})."
            ) from error

    def next_packets(self, receiver_ssrc: int, sender_ssrc: int, *, silent: bool) -> list[RecordedPacket]:
        """Return how the speaker's next packet is treated, after the packets that come before it.

        `silent`: the packet is silence. It is treated like recorded silence, and speech like recorded speech, if the
        stream has both; what is left of the recorded talkspurt or pause is passed over.
        """
        pair = receiver_ssrc, sender_ssrc
        if pair not in self._following:
            self._following[pair] = _Following(self.streams[len(self._following) % len(self.streams)])
        return self._following[pair].next_packets(silent=silent)

    def rtcp_due(self, receiver_ssrc: int) -> list[int]:
        """Return the types of the RTCP packets that follow one more packet, as often as in the recording."""
        before = self._delivered[receiver_ssrc]
        self._delivered[receiver_ssrc] += 1
        due = range(before * len(self.rtcp) // self._packets, (before + 1) * len(self.rtcp) // self._packets)
        return [self.rtcp[number % len(self.rtcp)] for number in due]

    def speaking_delay_s(self) -> float:
        """Return how much later the next op 5 comes."""
        if not self.announced_after_s:
            return 0.0
        self._announced += 1
        return self.announced_after_s[(self._announced - 1) % len(self.announced_after_s)]

    def forget(self, ssrc: int) -> None:
        """Forget the streams of a session that has ended."""
        for pair in [pair for pair in self._following if ssrc in pair]:
            del self._following[pair]
        self._delivered.pop(ssrc, None)


def _streams(rows: list[Any]) -> tuple[tuple[RecordedPacket, ...], ...]:
    """Return the recorded streams with at least one packet that is not between others. Raises `ValueError`."""
    if not isinstance(rows, list) or not rows or len(rows) > _MAX_PACKETS:
        raise ValueError(f"it has no packets, or more than {_MAX_PACKETS}")
    by_stream: dict[int, list[list[Any]]] = {}
    for row in rows:
        if not isinstance(row, list) or len(row) != _FIELDS:
            raise ValueError("a packet has not seven fields")
        by_stream.setdefault(int(row[1]), []).append(row)
    found = [_stream(each) for each in by_stream.values()]
    spoken = tuple(stream for stream in found if any(not packet.between for packet in stream))
    if not spoken:
        raise ValueError("nobody speaks in it")
    return spoken


@dataclass(frozen=True, slots=True)
class _PlacedRow:
    """One row of the file. `arrival`: its place among the packets as they came. `sequence`, `ticks`: counted on from
    the beginning of the stream. `restarts`: how often the client had begun its numbers anew before.
    """

    row: list[Any]
    arrival: int
    restarts: int
    sequence: int
    ticks: int

    @property
    def at_ms(self) -> float:
        return float(self.row[0])

    @property
    def kind(self) -> str:
        return str(self.row[4])


def _stream(rows: list[list[Any]]) -> tuple[RecordedPacket, ...]:
    placed = _in_order_of_sending(rows)
    packets, sequence, ticks = [], 0, 0
    for at, (one, delay_s) in enumerate(zip(placed, _delays_s(placed), strict=True)):
        _, _, step, _, kind, padding, layout = one.row
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is no kind of a packet")
        if not 0 <= int(padding) <= _MAX_PADDING or not _LAYOUT.fullmatch(str(layout)):
            raise ValueError(f"{padding!r} and {layout!r} are no padding and extension")
        profile, extension = _extension(str(layout))
        gap = one.sequence - sequence - 1
        behind = sum(later.arrival < one.arrival for later in placed[at + 1 : at + 1 + _LONGEST_GAP])
        packets.append(
            RecordedPacket(
                kind=kind,
                between=kind == _PADDING or (kind == _SILENCE and one.ticks == ticks),
                padding_bytes=int(padding),
                profile=profile,
                extension=extension,
                # After a packet that came far too late, the numbers go on where they were.
                lost_before=min(max(0, gap if int(step) <= 0 else min(gap, int(step) - 1)), _LONGEST_GAP),
                delay_s=0.0 if behind == 1 else delay_s,
                behind=behind,
            )
        )
        sequence, ticks = one.sequence, one.ticks
    return tuple(packets)


def _in_order_of_sending(rows: list[list[Any]]) -> list[_PlacedRow]:
    """Return the rows, which are in the order of arrival, in the order of their sequence numbers."""
    placed: list[_PlacedRow] = []
    # As in the recorder, a row's steps count from the highest number before it.
    highest = highest_ticks = restarts = 0
    for arrival, row in enumerate(rows):
        sequence, ticks = highest + int(row[2]), highest_ticks + int(row[3])
        if placed and sequence < placed[-1].sequence - _LONGEST_GAP:
            restarts += 1
        placed.append(_PlacedRow(row, arrival, restarts, sequence, ticks))
        if sequence > highest:
            highest, highest_ticks = sequence, ticks
    return sorted(placed, key=lambda one: (one.restarts, one.sequence))


def _delays_s(placed: list[_PlacedRow]) -> list[float]:
    """Return how much later each packet came than the fastest of its talkspurt, by their time stamps.

    A talkspurt's first packet is taken as being in time.
    """
    # Of each packet: its talkspurt, and how late it came.
    lateness: list[tuple[int, float]] = []
    fastest_ms: list[float] = []
    begun_ms, previous_ms, previous_kind = 0.0, 0.0, ""
    for one in placed:
        sent_ms = 1000 * one.ticks / _TICKS_A_SECOND
        late_ms = one.at_ms - sent_ms - begun_ms
        begins = previous_kind in (_SILENCE, _PADDING) and one.at_ms - previous_ms >= _PAUSE_MS
        if not lateness or begins or abs(late_ms - lateness[-1][1]) > 1000 * _LONGEST_DELAY_S:
            begun_ms, late_ms = one.at_ms - sent_ms, 0.0
            fastest_ms.append(0.0)
        lateness.append((len(fastest_ms) - 1, late_ms))
        fastest_ms[-1] = min(fastest_ms[-1], late_ms)
        previous_ms, previous_kind = one.at_ms, one.kind
    return [_delay_s(late_ms - fastest_ms[talkspurt]) for talkspurt, late_ms in lateness]


def _rtcp(other_packets: dict[str, Any]) -> tuple[int, ...]:
    """Return the types of the recorded RTCP packets. Raises `ValueError`."""
    types: list[int] = []
    for name, number in other_packets.items():
        if not name.startswith("rtcp "):
            continue
        found = _RTCP.fullmatch(name)
        if found is None or not isinstance(number, int) or not 0 <= number <= _MAX_RTCP:
            raise ValueError(f"{name}: {number!r} is no number of RTCP packets")
        types += [int(found[1])] * number
    return tuple(types)


def _announced_after_s(streams: list[dict[str, Any]]) -> Iterator[float]:
    """Yield how late each op 5 was. Raises `ValueError`."""
    for stream in streams:
        for each in stream.get("speaking_after_first_packet_ms", []):
            after_s = float(each) / 1000
            if not math.isfinite(after_s):
                raise ValueError(f"{each!r} is no delay")
            yield min(max(after_s, 0.0), _LONGEST_ANNOUNCEMENT_S)


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
