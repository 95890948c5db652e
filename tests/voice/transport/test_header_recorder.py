"""The recorder notes how packets look, and nothing of what is said or who says it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.discord.dave.mls import append_proposals
from tests.fakes.dave_room import DaveRoom, Keys, Sender
from voice.transport.header_recorder import MAX_LISTED, HeaderRecorder
from voice.transport.opus import SILENCE_FRAME

ANA, BEN = 2001, 2002
SSRC = 31_337
OPUS = b"\x78" + bytes(range(60))
PROPOSALS = 27
# MLS 1.0 in a wire format that RFC 9420 does not have.
UNKNOWN_MLS = bytes.fromhex("0001 0009 abcdef")
JSON = st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
# One-byte headers: element 9 with one byte, element 5 with three.
EXTENSION = bytes.fromhex("9042" + "52abcdef" + "0000")


class Recording:
    """A recorder with a clock, and Ana's microphone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.recorder = HeaderRecorder(lambda: self.now)
        room = DaveRoom(ANA, BEN)
        self.keys = Keys(dave_session=room.bot)
        self.ana = Sender(ANA, SSRC, room.sessions[ANA], self.keys)

    def hear(self, frame: bytes = OPUS, *, after_s: float = 0.02, **how: Any) -> None:
        self.recorder.datagram(self.ana.datagram(frame, **how), self.keys)
        self.now += after_s

    def stream(self) -> dict[str, Any]:
        (stream,) = self.recorder.record()["streams"]
        assert isinstance(stream, dict)
        return stream


def test_kinds_padding_and_extensions_are_noted() -> None:
    recording = Recording()
    recording.recorder.speaks(SSRC, ANA)
    recording.hear()
    recording.hear(extension=EXTENSION, padding=7)
    recording.hear(SILENCE_FRAME)
    recording.hear(clear=True)
    recording.hear(OPUS[:2], clear=True)
    recording.hear(b"", clear=True, padding=200)
    recording.hear(secret_key=[1] * 32)
    stream = recording.stream()
    assert stream["kinds"] == {"e": 2, "s": 1, "c": 1, "t": 1, "p": 1, "?": 1}
    assert stream["padding_bytes"] == {"7": 1, "200": 1}
    assert stream["extensions"] == {"": 6, "bede:9.1,5.3": 1}
    packets = recording.recorder.record()["packets"]
    assert [packet[4] for packet in packets] == ["e", "e", "s", "c", "t", "p", "?"]
    assert packets[1] == [20.0, 0, 1, 960, "e", 7, "bede:9.1,5.3"]


def test_an_extension_ends_where_nobody_reads_on() -> None:
    """At element 15 (RFC 8285, section 4.2), and at an element that is longer than what is left."""
    recording = Recording()
    recording.hear(extension=bytes.fromhex("51000090 10ff0000"))
    recording.hear(extension=bytes.fromhex("9010a3ff"))
    assert recording.stream()["extensions"] == {"bede:5.2,9.1": 1, "bede:9.1": 1}


def test_gaps_order_and_announcements_are_measured() -> None:
    recording = Recording()
    recording.hear()
    recording.hear(after_s=0.01)
    recording.recorder.speaks(SSRC, ANA)
    recording.ana.skip(3)
    recording.hear(after_s=1.0)
    recording.ana.sequence -= 2
    recording.recorder.speaks(SSRC, ANA)
    recording.now += 0.04
    recording.hear()
    stream = recording.stream()
    # Of the three that were missing one came behind the others.
    assert (stream["missing"], stream["behind"], stream["packets"]) == (2, 1, 4)
    assert stream["speaking_after_first_packet_ms"] == [30.0, -40.0]


def test_other_packets_and_messages_are_counted_by_kind() -> None:
    recording = Recording()
    for datagram in (b"\x80\xc8" + bytes(30), b"\x80\x65" + bytes(30), b"\x00\x02" + bytes(72), b"\x01" * 8):
        recording.recorder.datagram(datagram, recording.keys)
    recording.recorder.message({"op": 2, "d": {"modes": ["a", "b"], "ip": "192.0.2.1", "ssrc": 5}})
    recording.recorder.message({"op": 4, "d": {"mode": "a", "secret_key": [1, 2], "dave_protocol_version": 1}})
    recording.recorder.message({"op": 22, "d": {"transition_id": 7}})
    recording.recorder.message({"op": 99, "d": {"who": "Ana"}})
    recording.recorder.message({"op": 99})
    record = recording.recorder.record()
    assert record["other_packets"] == {
        "rtcp 200": 1, "payload type 101": 1, "foreign, 74 bytes": 1, "foreign, 8 bytes": 1,
    }  # fmt: skip
    assert record["modes_offered"] == ["a", "b"]
    assert record["session"] == {"mode": "a", "dave_protocol_version": "1"}
    assert record["transitions"] == [{"at_ms": 0.0, "op": 22, "transition_id": 7}]
    assert record["gateway_messages"] == {"2": 1, "4": 1, "22": 1, "99": 2}
    assert record["unknown_messages"] == {"99": {"count": 2, "total_bytes": 36, "largest_bytes": 27}}


def test_binary_messages_are_counted_by_opcode_and_kind() -> None:
    """The kinds of MLS messages say what this version does not know, also behind an opcode that it knows."""
    recording = Recording()
    for op, body in ((PROPOSALS, append_proposals([UNKNOWN_MLS])), (29, b"\0\7" + UNKNOWN_MLS), (77, b"Ana" * 10)):
        recording.recorder.message(b"\0\1" + bytes([op]) + body)
    recording.recorder.message(b"\0\1")
    record = recording.recorder.record()
    assert record["binary_messages"] == {
        "27": {"count": 1, "total_bytes": 12, "largest_bytes": 12},
        "29": {"count": 1, "total_bytes": 12, "largest_bytes": 12},
        "77": {"count": 1, "total_bytes": 33, "largest_bytes": 33},
        "none": {"count": 1, "total_bytes": 2, "largest_bytes": 2},
    }
    assert record["mls_messages"] == {"wire format 9": {"count": 2, "total_bytes": 16, "largest_bytes": 9}}


def test_nothing_of_the_content_is_in_the_record() -> None:
    """Neither frames, values of extensions, sizes, ids, keys nor addresses can be found in it."""
    recording = Recording()
    recording.recorder.message({"op": 2, "d": {"modes": [], "ip": "192.0.2.1", "port": 4242, "ssrc": 5}})
    recording.recorder.message({"op": 5, "d": {"user_id": str(ANA), "ssrc": SSRC}})
    recording.recorder.message({"op": "Ana said", "d": {"said": "abcdef"}})
    recording.recorder.message(b"\0\1\x4d" + bytes.fromhex("abcdef"))
    recording.recorder.joined({ANA, BEN})
    recording.recorder.speaks(SSRC, ANA)
    for size in (10, 60):
        recording.hear(OPUS[:size], extension=EXTENSION)
    text = json.dumps(recording.recorder.record())
    for secret in (
        str(ANA),
        str(BEN),
        str(SSRC),
        "192.0.2.1",
        "4242",
        "abcdef",
        "Ana said",
        OPUS[:10].hex(),
        "[0, 1, 2",
    ):
        assert secret not in text
    first, second = recording.recorder.record()["packets"]
    assert first[3:] == [0, *second[4:]]
    assert recording.recorder.record()["people"] == 2


def test_no_frame_is_decrypted() -> None:
    """Who opted out may be among the people, so nobody's end-to-end keys are used."""

    class Closed:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"{name} was asked for")

    recording = Recording()
    recording.recorder.speaks(SSRC, ANA)
    recording.recorder.datagram(recording.ana.datagram(OPUS), Keys(dave_session=Closed()))
    assert recording.stream()["kinds"] == {"e": 1}


def test_a_hostile_server_fills_no_memory() -> None:
    recording = Recording()
    for number in range(1000):
        recording.recorder.message({"op": number, "d": None})
        recording.recorder.message({"op": 21, "d": {"transition_id": number}})
        recording.recorder.message(b"\0\1\x1d\0\0" + number.to_bytes(2, "big"))
        recording.ana.ssrc = number
        recording.hear(extension=bytes([0x10 | number % 16, *range(15), 0, 0, 0, 0]), after_s=0.0)
    record = recording.recorder.record()
    assert len(record["gateway_messages"]) <= 201
    assert len(record["unknown_messages"]) <= 201
    assert len(record["mls_messages"]) <= 201
    assert len(record["transitions"]) == len(record["streams"]) == 200
    assert len(record["packets"]) <= MAX_LISTED


@given(
    message=st.binary(max_size=80)
    | st.dictionaries(st.sampled_from(["op", "d", "seq"]), st.integers() | st.text() | st.lists(st.none()), max_size=3)
    | st.fixed_dictionaries(
        {"op": st.sampled_from([2, 4, 21]), "d": st.dictionaries(st.sampled_from(["modes", "mode", "epoch"]), JSON)}
    )
    | JSON
)
def test_no_message_raises_anything(message: Any) -> None:
    recorder = HeaderRecorder(lambda: 0.0)
    recorder.message(message)
    json.dumps(recorder.record())


@pytest.mark.parametrize("datagram", [b"", b"\x80", b"\xbf\x78" + bytes(40), b"\x90\x78" + bytes(40)])
def test_broken_datagrams_raise_nothing(datagram: bytes) -> None:
    recording = Recording()
    recording.recorder.datagram(datagram, recording.keys)
    assert recording.recorder.counters().received == 1
