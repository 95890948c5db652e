"""Voice packets in both transport modes, encrypted and decrypted by our code and checked against the wire format."""

from __future__ import annotations

from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt

from rehearsal.discord.media import packet_encryption

_KEY = bytes(range(32))


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
