"""Voice packets in both transport modes, encrypted and decrypted by our code and checked against the wire format."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt

from rehearsal.discord.media import packet_encryption

_KEY = bytes(range(32))
_PACKETS = st.builds(
    packet_encryption.RtpPacket,
    marker_and_type=st.sampled_from((0x78, 0xF8, 0x65)),
    sequence=st.integers(0, 0xFFFF),
    timestamp=st.integers(0, 0xFFFF_FFFF),
    ssrc=st.integers(0, 0xFFFF_FFFF),
    payload=st.binary(max_size=300),
)


@given(
    packet=_PACKETS,
    mode=st.sampled_from(packet_encryption.MODES),
    index=st.integers(0, 400),
    change=st.integers(1, 255),
)
def test_a_changed_packet_is_not_opened(
    packet: packet_encryption.RtpPacket, mode: str, index: int, change: int
) -> None:
    """Header, ciphertext, tag and nonce are all authenticated."""
    key = packet_encryption.packet_cipher(mode, _KEY)
    datagram = bytearray(packet_encryption.encrypt_packet(packet, key, 9, extension=bytes(8), padding_bytes=3))
    datagram[index % len(datagram)] ^= change
    assert packet_encryption.decrypt_packet(bytes(datagram), key) is None


@given(st.binary(max_size=120), st.sampled_from(packet_encryption.MODES))
def test_hostile_datagrams_are_not_opened(datagram: bytes, mode: str) -> None:
    """Random bytes are not decrypted and raise nothing."""
    assert packet_encryption.decrypt_packet(datagram, packet_encryption.packet_cipher(mode, _KEY)) is None


def test_the_bytes_are_those_of_rtpsize() -> None:
    """A packet is the header, the extension's first four bytes, the ciphertext with its tag, and a 32-bit nonce."""
    packet = packet_encryption.RtpPacket(0x78, 1, 960, 7, b"opus")
    extension = bytes.fromhex("5100009010ff0000")
    seal = packet_encryption.packet_cipher(packet_encryption.XCHACHA_MODE, _KEY)
    datagram = packet_encryption.encrypt_packet(packet, seal, 0x01020304, extension=extension, padding_bytes=2)
    header, encrypted, nonce = datagram[:16], datagram[16:-4], datagram[-4:]
    assert header.hex() == "b0780001000003c000000007bede0002"
    assert nonce.hex() == "04030201"
    plain = crypto_aead_xchacha20poly1305_ietf_decrypt(encrypted, header, nonce + bytes(20), _KEY)
    assert plain == extension + b"opus" + b"\x02\x02"


def test_an_extension_longer_than_the_packet_is_refused() -> None:
    """A packet is refused when the extension's length, which the sender chooses, exceeds the packet."""
    seal = packet_encryption.packet_cipher(packet_encryption.XCHACHA_MODE, _KEY)
    header = bytes.fromhex("907800010000000000000007bedeffff")
    nonce = bytes(4)
    assert packet_encryption.decrypt_packet(header + seal.encrypt(b"opus", header, nonce) + nonce, seal) is None
