"""Voice packets that are encrypted by the sender can be decrypted, and no other datagram can."""

from __future__ import annotations

import struct

import nacl.bindings
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.people.rtp import DecryptedPacket, PacketEncryptor, decrypt_packet, discovery_reply, discovery_request

KEY = bytes(range(32))
SSRC = 4242


def forwarded(payload: bytes, *, extension_words: int = 0, padding: int = 0, payload_type: int = 0x78) -> bytes:
    """Return a datagram as a voice server forwards it, with a header extension and padding."""
    flags, preamble, plain = 0x80, b"", payload
    if extension_words:
        flags |= 0x10
        preamble = struct.pack(">HH", 0xBEDE, extension_words)
        plain = bytes(4 * extension_words) + plain
    if padding:
        flags |= 0x20
        plain += bytes([padding]) * padding
    header = struct.pack(">BBHII", flags, payload_type, 7, 960, SSRC) + preamble
    nonce = struct.pack("<I", 99)
    sealed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, header, nonce.ljust(24, b"\0"), KEY)
    return header + sealed + nonce


def test_what_is_sealed_opens() -> None:
    """Sequence and timestamp increase by one frame for each packet, and the payload is unchanged."""
    sealer = PacketEncryptor(KEY, SSRC)
    opened = [decrypt_packet(sealer.seal(payload), KEY) for payload in (b"one", b"two")]
    assert opened == [DecryptedPacket(SSRC, 1, 960, b"one"), DecryptedPacket(SSRC, 2, 1920, b"two")]


def test_a_skipped_frame_moves_the_clock_alone() -> None:
    """A skipped frame increases the timestamp and not the sequence number."""
    sealer = PacketEncryptor(KEY, SSRC)
    sealer.skip()
    assert decrypt_packet(sealer.seal(b"one"), KEY) == DecryptedPacket(SSRC, 1, 1920, b"one")


@given(
    payload=st.binary(min_size=1, max_size=200),
    words=st.integers(0, 4),
    padding=st.integers(0, 7),
)
def test_padding_and_extension_are_stripped(payload: bytes, words: int, padding: int) -> None:
    """The server's padding and extension are removed, because DAVE finds its trailer from the end of the frame."""
    opened = decrypt_packet(forwarded(payload, extension_words=words, padding=padding), KEY)
    assert opened is not None
    assert opened.payload == payload


@pytest.mark.parametrize("payload_type", [0x48, 101, 0x79])
def test_what_is_not_opus_is_not_heard(payload_type: int) -> None:
    """Packets that are not Opus, for example RTCP and video, are ignored."""
    assert decrypt_packet(forwarded(b"x", payload_type=payload_type), KEY) is None


def test_a_padding_that_cannot_be_is_refused() -> None:
    """A packet with a padding count of zero, or beyond the payload, is refused."""
    flags = struct.pack(">BBHII", 0xA0, 0x78, 7, 960, SSRC)
    for last in (0, 200):
        nonce = struct.pack("<I", 1)
        sealed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            b"ab" + bytes([last]), flags, nonce.ljust(24, b"\0"), KEY
        )
        assert decrypt_packet(flags + sealed + nonce, KEY) is None


@given(datagram=st.binary(max_size=120))
def test_noise_is_not_heard(datagram: bytes) -> None:
    """Random bytes on the UDP port raise nothing."""
    assert decrypt_packet(datagram, KEY) is None


def test_another_key_does_not_open() -> None:
    """A packet encrypted with another key, for example of the previous session, is refused."""
    assert decrypt_packet(PacketEncryptor(KEY, SSRC).seal(b"one"), bytes(32)) is None


def test_discovery_speaks_discords_74_bytes() -> None:
    """The discovery request has 74 bytes and our SSRC, and the reply has our address."""
    request = discovery_request(SSRC)
    assert (len(request), request[:8]) == (74, struct.pack(">HHI", 1, 70, SSRC))
    reply = struct.pack(">HHI64sH", 2, 70, SSRC, b"127.0.0.1", 5005)
    assert discovery_reply(reply) == ("127.0.0.1", 5005)


@pytest.mark.parametrize("datagram", [b"", bytes(74), discovery_request(1), b"\0\2" * 40])
def test_what_is_no_discovery_reply_is_none(datagram: bytes) -> None:
    """Voice packets, our own request and random bytes are not read as a discovery reply."""
    assert discovery_reply(datagram) is None
