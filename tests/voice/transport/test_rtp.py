"""Datagrams are classified by their first bytes, and padding is removed from payloads."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.transport.counters import PacketCounters
from voice.transport.rtp import AudioPacket, Rejection, frame_of, is_discovery_answer, parse

SEALED = bytes(40)  # some ciphertext, its tag, and the nonce


def header(first: int = 0x80, kind: int = 0x78) -> bytes:
    return struct.pack(">BBHII", first, kind, 0xFFFE, 0xFFFF_FC40, 77)


def test_plain_audio_packet() -> None:
    assert parse(header() + SEALED) == AudioPacket(
        sequence=0xFFFE, timestamp=0xFFFF_FC40, ssrc=77, header_bytes=12, extension_bytes=0, padded=False
    )


def test_extension_preamble_is_in_the_clear() -> None:
    """The 4-byte preamble of an extension belongs to the header, and the extension's 8 bytes belong to the payload."""
    packet = parse(header(0x90) + b"\xbe\xde\x00\x02" + SEALED)
    assert isinstance(packet, AudioPacket)
    assert (packet.header_bytes, packet.extension_bytes) == (16, 8)


def test_an_extension_may_have_more_than_255_words() -> None:
    packet = parse(header(0x90) + b"\xbe\xde\x01\x02" + bytes(4 * 0x102) + SEALED)
    assert isinstance(packet, AudioPacket)
    assert packet.extension_bytes == 4 * 0x102


def test_contributing_sources_lengthen_the_header() -> None:
    packet = parse(header(0xB2) + bytes(8) + b"\xbe\xde\x00\x01" + SEALED)
    assert isinstance(packet, AudioPacket)
    assert (packet.header_bytes, packet.extension_bytes, packet.padded) == (24, 4, True)


def test_marker_bit_is_audio() -> None:
    """A packet with the marker bit, which a talkspurt's first packet may have, is audio."""
    assert isinstance(parse(header(kind=0xF8) + SEALED), AudioPacket)


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", Rejection.FOREIGN),
        (b"\x80", Rejection.FOREIGN),
        (b"\x00\x02\x00\x46" + bytes(70), Rejection.FOREIGN),
        (bytes(8), Rejection.FOREIGN),
        (header(0x40) + SEALED, Rejection.FOREIGN),
        (b"\x80\xc8" + bytes(26), Rejection.RTCP),
        (b"\x81\xc9\x00\x01", Rejection.RTCP),
        (b"\x80\xce" + bytes(26), Rejection.RTCP),
        (header(kind=0x67) + SEALED, Rejection.VIDEO),
        (header(kind=0x69 | 0x80) + SEALED, Rejection.VIDEO),
        (header()[:11], Rejection.MALFORMED),
        (header() + bytes(20), Rejection.MALFORMED),
        (header(0x90), Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde\x00", Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde", Rejection.MALFORMED),
        (header(0x90) + b"\xbe\xde\xff\xff" + SEALED, Rejection.MALFORMED),
        (header(0x8F) + SEALED, Rejection.MALFORMED),
    ],
)
def test_what_is_no_audio_says_why(datagram: bytes, reason: Rejection) -> None:
    assert parse(datagram) is reason


def test_every_reason_is_a_counter() -> None:
    counters = PacketCounters()
    for reason in Rejection:
        counters.count(reason)
        assert counters.as_dict()[reason] == 1


def test_discovery_answer_is_known() -> None:
    assert is_discovery_answer(b"\x00\x02\x00\x46" + bytes(70))
    assert not is_discovery_answer(b"\x00\x01\x00\x46" + bytes(70))
    assert not is_discovery_answer(b"\x00\x02\x00\x46" + bytes(69))


@pytest.mark.parametrize(
    ("first", "extension_words", "payload", "frame"),
    [
        (0x80, 0, b"frame", b"frame"),
        (0xA0, 0, b"frame\x01", b"frame"),
        (0xA0, 0, b"frame\x00\x00\x03", b"frame"),
        (0x90, 1, b"EXT1frame", b"frame"),
        (0xB0, 1, b"EXT1frame\x02\x02", b"frame"),
        (0xA0, 0, b"frame\x00", None),
        (0xA0, 0, b"frame\x07", None),
        (0xA0, 0, b"\x01", b""),
        (0xA0, 0, b"\x00\x02", b""),
        (0xB0, 1, b"EXT1\x00\x02", b""),
        (0xA0, 0, b"", None),
        (0x90, 1, b"EXT1", None),
        (0xB0, 1, b"EXT1fr\x03", b""),
        (0xB0, 1, b"EXT1fr\x04", None),
    ],
)
def test_frame_is_cut_out(first: int, extension_words: int, payload: bytes, frame: bytes | None) -> None:
    """The last byte gives the length of the padding, the header that of the extension. An invalid payload gives no
    frame.
    """
    extension = b"\xbe\xde" + struct.pack(">H", extension_words) if first & 0x10 else b""
    packet = parse(header(first) + extension + bytes(4 * extension_words) + SEALED)
    assert isinstance(packet, AudioPacket)
    assert frame_of(packet, payload) == frame


@given(st.binary(max_size=120), st.binary(max_size=80))
def test_any_bytes_are_parsed_or_rejected(datagram: bytes, payload: bytes) -> None:
    """Any bytes are parsed or rejected without an exception, and an accepted packet has room for a tag, a nonce and a
    frame.
    """
    for candidate in (datagram, b"\x80\x78" + datagram, b"\xb1\xf8" + datagram):
        packet = parse(candidate)
        if isinstance(packet, AudioPacket):
            assert len(candidate) > packet.header_bytes + packet.extension_bytes + 20
            frame = frame_of(packet, payload)
            assert frame is None or (frame != b"" and frame in payload)
