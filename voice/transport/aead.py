"""XChaCha20-Poly1305 decryption through PyNaCl's libsodium, into a buffer that is used again.

`nacl.bindings` makes two new buffers and six checks for each call, which together take three times as long as the
decryption of a voice packet. The functions are libsodium's own; the buffer belongs to the thread that calls.
"""

from __future__ import annotations

from typing import Any

from nacl import _sodium, bindings

TAG_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES
KEY_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_KEYBYTES
NONCE_BYTES: int = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

# A UDP datagram is never longer.
_LONGEST_BYTES = 65_536

_decrypt: Any = _sodium.lib.crypto_aead_xchacha20poly1305_ietf_decrypt
_NULL: Any = _sodium.ffi.NULL


class PacketOpener:
    """Decrypts packets. Not thread-safe."""

    __slots__ = ("_out", "_view")

    def __init__(self) -> None:
        self._out: Any = _sodium.ffi.new("unsigned char[]", _LONGEST_BYTES)
        self._view: Any = _sodium.ffi.buffer(self._out)

    def open(self, sealed: bytes, authenticated: bytes, nonce: bytes, key: bytes) -> bytes | None:
        """Return the plain text of `sealed` (ciphertext and tag), or None if it was not made with this key and these
        authenticated bytes.
        """
        size = len(sealed) - TAG_BYTES
        # libsodium reads and writes whatever it is told, so the lengths are checked here.
        if not 0 <= size <= _LONGEST_BYTES or len(nonce) != NONCE_BYTES or len(key) != KEY_BYTES:
            return None
        failed = _decrypt(self._out, _NULL, _NULL, sealed, len(sealed), authenticated, len(authenticated), nonce, key)
        return None if failed else bytes(self._view[:size])
