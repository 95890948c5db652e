"""The short way to libsodium gives what PyNaCl's own function gives, and refuses everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt

from voice.transport.aead import KEY_BYTES, NONCE_BYTES, TAG_BYTES, PacketOpener

_OPENER = PacketOpener()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@given(
    st.binary(max_size=1500),
    st.binary(max_size=40),
    st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES),
    st.integers(0, 2000),
)
def test_what_was_sealed_opens_and_nothing_else(plain: bytes, header: bytes, nonce: bytes, key: bytes, at: int) -> None:
    sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(plain, header, nonce, key)
    assert _OPENER.open(sealed, header, nonce, key) == plain
    assert _OPENER.open(_flipped(sealed, at % len(sealed)), header, nonce, key) is None
    assert _OPENER.open(sealed, header + b"x", nonce, key) is None
    assert _OPENER.open(sealed, header, _flipped(nonce, 3), key) is None
    assert _OPENER.open(sealed, header, nonce, _flipped(key, 31)) is None
    assert _OPENER.open(sealed, header, nonce, key) == plain


@given(st.binary(max_size=60), st.binary(max_size=40), st.binary(max_size=40))
def test_any_lengths_are_refused_without_an_error(sealed: bytes, nonce: bytes, key: bytes) -> None:
    assert _OPENER.open(sealed, b"", nonce, key) is None


def test_a_text_that_is_too_long_is_refused() -> None:
    assert _OPENER.open(bytes(70_000 + TAG_BYTES), b"", bytes(NONCE_BYTES), bytes(KEY_BYTES)) is None
