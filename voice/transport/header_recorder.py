"""Notes what the packets of a voice connection look like, without what is said, for `roomtone doctor --live`.

Kept of a packet: when it came, its numbers relative to the one before, its padding, the layout of its header extension,
and of which kind its frame is. Of the two encryptions only the one between us and the voice server is opened: nobody
knows here who has opted out of being heard, so no frame is decrypted, decoded or kept. Of the voice gateway's messages
the opcodes are counted, and the kinds of MLS messages in the binary ones (`mls_kinds`); sizes are kept of the binary
ones and of those with an unknown opcode.
Not kept: sizes of packets (they follow the voice), ids, addresses, keys, what is in a message, and the values of
extensions. People are numbered.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voice.transport.aead import PacketOpener
from voice.transport.counters import PacketCounters
from voice.transport.decrypt import looks_encrypted, open_transport
from voice.transport.mls_kinds import mls_kinds
from voice.transport.opus import SILENCE_FRAME
from voice.transport.rtp import Rejection, frame_of, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from voice.transport.decrypt import LiveKeys
    from voice.transport.rtp import AudioPacket

# Kinds of a packet, as in the file.
ENCRYPTED, SILENCE, CLEAR, TINY, PADDING, UNOPENED = "e", "s", "c", "t", "p", "?"
# Twenty people for half a minute. Packets beyond that are counted and not listed.
MAX_LISTED = 30_000
# RFC 8285, section 4.2: the profile of one-byte headers.
_ONE_BYTE_HEADERS = 0xBEDE
_LAST_ELEMENT = 15
_IDLE_S = 1.0
# A packet after so long begins a talkspurt.
_PAUSE_S = 0.2
# Names and layouts that a hostile server could make without end.
_MAX_NAMES = 200
# The JSON messages of the voice gateway that this version knows, although it does not need all of them.
_KNOWN_OPS = frozenset((2, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 18, 20, 21, 22, 24))
# A binary message is a sequence number of two bytes, the opcode and its body (DAVE's protocol.md).
_BINARY_HEADER_BYTES = 3
# Another number, or none, is no opcode.
_LARGEST_OP = 2**31
_NO_OP = "none"


@dataclass(slots=True)
class MessageSizes:
    """How many messages of one kind came, and how large they were."""

    count: int = 0
    total_bytes: int = 0
    largest_bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """Count one message."""
        self.count += 1
        self.total_bytes += size_bytes
        self.largest_bytes = max(self.largest_bytes, size_bytes)

    def as_dict(self) -> dict[str, int]:
        """Return the figures of this kind for the file."""
        return {"count": self.count, "total_bytes": self.total_bytes, "largest_bytes": self.largest_bytes}


@dataclass(slots=True)
class RecordedStream:
    """One SSRC. `number`: its place in the file, in the order in which they were first heard."""

    number: int
    packets: int = 0
    padded: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    extensions: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    behind: int = 0
    # How much later than the first packet of a talkspurt op 5 came, in ms; negative: before it.
    announced_after_ms: list[float] = field(default_factory=list)
    highest: int | None = None
    timestamp: int = 0
    last_at: float = float("-inf")
    spurt_at: float = float("-inf")
    announced_at: float = float("-inf")

    def as_dict(self) -> dict[str, Any]:
        """Return the figures of this stream for the file."""
        return {
            "stream": self.number,
            "packets": self.packets,
            "kinds": dict(self.kinds),
            "padding_bytes": dict(self.padded),
            "extensions": dict(self.extensions),
            "missing": self.missing,
            "behind": self.behind,
            "speaking_after_first_packet_ms": self.announced_after_ms[:_MAX_NAMES],
        }


class HeaderRecorder:
    """Takes the place of `Receiver` in a voice connection. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._started_at = clock()
        self._lock = threading.Lock()
        self._opener = PacketOpener()
        self._counters = PacketCounters()
        self._members: set[int] = set()
        self._streams: dict[int, RecordedStream] = {}
        self._listed: list[list[Any]] = []
        self._ops: Counter[str] = Counter()
        self._unknown: dict[str, MessageSizes] = {}
        self._binary: dict[str, MessageSizes] = {}
        self._mls: dict[str, MessageSizes] = {}
        self._modes: list[str] = []
        self._chosen: dict[str, Any] = {}
        self._transitions: list[dict[str, Any]] = []
        self._other: Counter[str] = Counter()

    def message(self, message: Any) -> None:
        """Note a message of the voice gateway, parsed JSON or bytes. Whatever comes, nothing is raised."""
        with self._lock:
            if isinstance(message, bytes):
                self._note_binary(message)
            else:
                self._note_json(message)

    def record(self) -> dict[str, Any]:
        """Return everything that was noted, as JSON."""
        with self._lock:
            return {
                "seconds": round(self._clock() - self._started_at, 1),
                "modes_offered": self._modes,
                "session": self._chosen,
                "gateway_messages": dict(self._ops),
                "unknown_messages": _as_dicts(self._unknown),
                "binary_messages": _as_dicts(self._binary),
                "mls_messages": _as_dicts(self._mls),
                "transitions": self._transitions,
                "people": len(self._members),
                "streams": [stream.as_dict() for stream in self._streams.values()],
                "other_packets": dict(self._other),
                "counters": {name: count for name, count in self._counters.as_dict().items() if count},
                "packets": self._listed,
            }

    # What the connection calls.

    @property
    def members(self) -> frozenset[int]:
        with self._lock:
            return frozenset(self._members)

    def datagram(self, datagram: bytes, keys: LiveKeys) -> None:
        """Note one datagram."""
        with self._lock:
            self._counters.received += 1
            packet = parse(datagram)
            if isinstance(packet, Rejection):
                self._counters.count(packet)
                second = datagram[1] if len(datagram) > 1 else 0
                kind = {Rejection.RTCP: f"rtcp {second}", Rejection.VIDEO: f"payload type {second & 0x7F}"}
                _count(self._other, kind.get(packet, f"{packet}, {len(datagram)} bytes"))
                return
            self._note(datagram, packet, keys)

    def set_time(self, at: float | None) -> None:
        """A packet's time is that of its reading."""

    def flush(self) -> float:
        return _IDLE_S

    def overflowed(self, datagrams: int) -> None:
        with self._lock:
            self._counters.overflowed += datagrams

    def joined(self, user_ids: Iterable[int]) -> None:
        with self._lock:
            self._members.update(user_ids)

    def rekeyed(self) -> None:
        """Nothing is kept of the keys."""

    def speaks(self, ssrc: int, user_id: int, *, announced: bool = True) -> None:
        """Note how long after the first packet of a talkspurt it was announced."""
        with self._lock:
            self._members.add(user_id)
            stream = self._streams.get(ssrc)
            if stream is None or not announced:
                # Before the first packet: `_note` measures it.
                self._stream(ssrc).announced_at = self._clock() if announced else float("-inf")
                return
            now = self._clock()
            if now - stream.last_at < _PAUSE_S:
                stream.announced_after_ms.append(round(1000 * (now - stream.spurt_at), 1))
            else:
                stream.announced_at = now

    def left(self, user_id: int) -> None:
        with self._lock:
            self._members.discard(user_id)

    def pause(self) -> None:
        """A lost connection is seen in the messages."""

    def reset(self) -> None:
        """A new connection has new people and SSRCs; what was noted stays."""
        with self._lock:
            self._members.clear()

    def counters(self) -> PacketCounters:
        with self._lock:
            return self._counters.copy()

    # Called with the lock held.

    def _note_json(self, message: Any) -> None:
        """Note its opcode, and what it says about modes and encryption; if it is unknown, its size."""
        op, data = (message.get("op"), message.get("d")) if isinstance(message, dict) else (None, None)
        if type(op) is not int or abs(op) > _LARGEST_OP:
            op = None
        body = data if isinstance(data, dict) else {}
        name = _NO_OP if op is None else str(op)
        _count(self._ops, name)
        match op:
            case 2:
                modes = body.get("modes")
                self._modes = [str(mode)[:64] for mode in modes[:20]] if isinstance(modes, list) else []
            case 4:
                known = ("mode", "dave_protocol_version", "audio_codec", "video_codec")
                self._chosen = {name: str(body[name])[:64] for name in known if name in body}
            case 21 | 22 | 24 if len(self._transitions) < _MAX_NAMES:
                named = ("transition_id", "protocol_version", "epoch")
                numbers = {name: body[name] for name in named if isinstance(body.get(name), int)}
                self._transitions.append({"at_ms": self._ms(self._clock()), "op": op, **numbers})
        if op not in _KNOWN_OPS:
            _sizes(self._unknown, name).add(_json_bytes(message))

    def _note_binary(self, message: bytes) -> None:
        """Note its opcode and size, and the kinds of the MLS messages in it."""
        if len(message) < _BINARY_HEADER_BYTES:
            _sizes(self._binary, _NO_OP).add(len(message))
            return
        op = message[_BINARY_HEADER_BYTES - 1]
        _sizes(self._binary, str(op)).add(len(message))
        for kind in mls_kinds(op, message[_BINARY_HEADER_BYTES:]):
            _sizes(self._mls, kind.name).add(kind.size_bytes)

    def _stream(self, ssrc: int) -> RecordedStream:
        stream = self._streams.get(ssrc)
        if stream is None:
            stream = RecordedStream(len(self._streams))
            if len(self._streams) < _MAX_NAMES:
                self._streams[ssrc] = stream
        return stream

    def _note(self, datagram: bytes, packet: AudioPacket, keys: LiveKeys) -> None:
        now = self._clock()
        stream = self._stream(packet.ssrc)
        payload = open_transport(datagram, packet, keys.secret_key, self._opener)
        if payload is None:
            self._counters.transport_failures += 1
            kind, padding, layout = UNOPENED, 0, ""
        else:
            padding = payload[-1] if packet.padded and payload else 0
            layout = _layout(datagram, packet, payload)
            kind = self._kind(frame_of(packet, payload), packet)
        if now - stream.last_at >= _PAUSE_S:
            if now - stream.announced_at < 1.0:
                stream.announced_after_ms.append(round(1000 * (stream.announced_at - now), 1))
            stream.spurt_at = now
        step = 1 if stream.highest is None else ((packet.sequence - stream.highest + 0x8000) & 0xFFFF) - 0x8000
        ticks = 0 if stream.highest is None else ((packet.timestamp - stream.timestamp + 2**31) & 0xFFFF_FFFF) - 2**31
        if len(self._listed) < MAX_LISTED:
            self._listed.append([self._ms(now), stream.number, step, ticks, kind, padding, layout])
        stream.packets += 1
        stream.kinds[kind] += 1
        if padding:
            _count(stream.padded, str(padding))
        _count(stream.extensions, layout)
        if 0 < step < 3000:
            stream.missing += step - 1
        elif step < 0 and stream.missing:
            # It was counted as missing when the one behind it came.
            stream.missing -= 1
        stream.behind += step <= 0
        if step > 0:
            stream.highest, stream.timestamp = packet.sequence, packet.timestamp
        stream.last_at = now

    def _kind(self, frame: bytes | None, packet: AudioPacket) -> str:
        """Return the kind of a frame, by how it ends."""
        if frame is None:
            self._counters.malformed += 1
            return UNOPENED
        if not frame:
            self._counters.padding += 1
            return PADDING
        self._counters.padded += packet.padded
        if frame == SILENCE_FRAME:
            self._counters.silence += 1
            return SILENCE
        if looks_encrypted(frame):
            return ENCRYPTED
        self._counters.clear += 1
        return TINY if len(frame) <= len(SILENCE_FRAME) else CLEAR

    def _ms(self, at: float) -> float:
        return round(1000 * (at - self._started_at), 1)


def _layout(datagram: bytes, packet: AudioPacket, payload: bytes) -> str:
    """Return the layout of a header extension without its values: `bede:1.1,2.3` has element 1 with 1 byte and element
    2 with 3; another profile is `1000#2` with its number of 32-bit words. Empty without an extension.
    """
    if not datagram[0] & 0x10:
        return ""
    profile = int.from_bytes(datagram[packet.header_bytes - 4 : packet.header_bytes - 2], "big")
    if profile != _ONE_BYTE_HEADERS:
        return f"{profile:04x}#{packet.extension_bytes // 4}"
    elements, at, body = [], 0, payload[: packet.extension_bytes]
    while at < len(body):
        if body[at] == 0:
            at += 1
            continue
        size = (body[at] & 0x0F) + 1
        # RFC 8285, section 4.2: nothing is read from element 15 on. Nor is an element read that ends behind the body.
        if body[at] >> 4 == _LAST_ELEMENT or at + 1 + size > len(body):
            break
        elements.append(f"{body[at] >> 4}.{size}")
        at += 1 + size
    return "bede:" + ",".join(elements)


def _json_bytes(message: Any) -> int:
    """Return the size of a message in JSON; 0 if it is nested too deeply to write it."""
    try:
        return len(json.dumps(message, separators=(",", ":")))
    except RecursionError:
        return 0


def _count(counter: Counter[str], name: str) -> None:
    counter[_bounded(counter, name)] += 1


def _sizes(found: dict[str, MessageSizes], name: str) -> MessageSizes:
    return found.setdefault(_bounded(found, name), MessageSizes())


def _bounded(known: Mapping[str, object], name: str) -> str:
    return name if name in known or len(known) < _MAX_NAMES else "more"


def _as_dicts(found: Mapping[str, MessageSizes]) -> dict[str, dict[str, int]]:
    return {name: sizes.as_dict() for name, sizes in found.items()}
