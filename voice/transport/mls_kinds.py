"""Names the MLS messages in the voice gateway's binary messages by their kind, without what is in them.

For `header_recorder`, which tells what of Discord's end-to-end encryption (DAVE) this version does not know. davey
reads the messages for the connection; it refuses an unknown kind as a whole and does not say which it was. Nothing is
verified here. Sources: DAVE's protocol.md, "Voice Gateway Opcodes"; RFC 9420, the sections named below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The kinds that davey can process. Others are named by their numbers in RFC 9420.
KNOWN_KINDS = frozenset(
    {
        "external sender, credential 1",
        "add by external sender",
        "remove by external sender",
        "revoked proposal",
        "commit by member",
        "welcome, cipher suite 2",
    }
)
# What ends before it has told its kind.
BROKEN_OFF = "broken off"

# The binary messages that a voice server sends.
_EXTERNAL_SENDER, _PROPOSALS, _COMMIT, _WELCOME = 25, 27, 29, 30
BINARY_OPS = frozenset({_EXTERNAL_SENDER, _PROPOSALS, _COMMIT, _WELCOME})
_APPEND, _REVOKE = 0, 1
# Section 6: MLS 1.0, a message that is signed and not encrypted, who sent it, and what it is.
_MLS_1_0, _PUBLIC_MESSAGE = 1, 1
_MEMBER, _EXTERNAL = 1, 2
_SENDERS = {_MEMBER: "member", _EXTERNAL: "external sender"}
_PROPOSAL = 2
_CONTENTS = {3: "commit"}
# Section 12.1, the types of proposals.
_ADD, _REMOVE = 1, 3
_ACTIONS = {_ADD: "add", _REMOVE: "remove"}
# Section 7.2: a leaf that comes from a key package; section 5.3: a credential that is a name.
_FROM_KEY_PACKAGE, _BASIC_CREDENTIAL = 1, 1
_EPOCH_BYTES, _INDEX_BYTES, _LIFETIME_BYTES, _TRANSITION_BYTES = 8, 4, 16, 2
# A hostile server could fill one message with millions of the smallest.
_MOST = 200


@dataclass(frozen=True, slots=True)
class MlsKind:
    """One MLS message: its kind, one of `KNOWN_KINDS` if this version knows it, and its size."""

    name: str
    size_bytes: int


class _BrokenOffError(Exception):
    """The message ends too early, or has a length that MLS does not allow."""


class _Reader:
    """Reads untrusted bytes in order. Raises `_BrokenOffError`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.position = 0

    def take(self, size: int) -> bytes:
        taken = self._body[self.position : self.position + size]
        if len(taken) != size:
            raise _BrokenOffError
        self.position += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self) -> bytes:
        """Section 2.1.2: the first two bits of the length say how many bytes it has."""
        first = self.number(1)
        prefix = first >> 6
        if prefix == 3:
            raise _BrokenOffError
        more = (1 << prefix) - 1
        return self.take((first & 0x3F) << 8 * more | self.number(more))

    def skip_vectors(self, count: int) -> None:
        for _ in range(count):
            self.vector()

    def skip_rest(self) -> None:
        self.position = len(self._body)

    @property
    def at_end(self) -> bool:
        return self.position == len(self._body)


def mls_kinds(op: int, body: bytes) -> list[MlsKind]:
    """Return the kinds of the MLS messages in a binary message with this opcode; none for an unknown opcode.

    Raises nothing. After an unknown kind nobody can say where the next one begins, so the rest of `body` counts to it.
    """
    reader = _Reader(body)
    if op == _PROPOSALS:
        return _batch(reader, len(body))
    named = {_EXTERNAL_SENDER: _external_sender, _COMMIT: _announced_commit, _WELCOME: _welcome}.get(op)
    return [] if named is None else [MlsKind(_name(named, reader), len(body))]


def _name(read: Callable[[_Reader], str], reader: _Reader) -> str:
    try:
        return read(reader)
    except _BrokenOffError:
        return BROKEN_OFF


def _batch(reader: _Reader, size_bytes: int) -> list[MlsKind]:
    """Return the kinds of the proposals in op 27."""
    try:
        operation = reader.number(1)
        if operation not in (_APPEND, _REVOKE):
            return [MlsKind(f"proposals, operation {operation}", size_bytes)]
        batch = _Reader(reader.vector())
    except _BrokenOffError:
        return [MlsKind(BROKEN_OFF, size_bytes)]
    found: list[MlsKind] = []
    while not batch.at_end and len(found) < _MOST:
        begun = batch.position
        name = _name(_message if operation == _APPEND else _revoked, batch)
        if name not in KNOWN_KINDS:
            batch.skip_rest()
        found.append(MlsKind(name, batch.position - begun))
    return found


def _external_sender(reader: _Reader) -> str:
    reader.vector()  # signature key
    return f"external sender, credential {reader.number(2)}"


def _revoked(reader: _Reader) -> str:
    reader.vector()
    return "revoked proposal"


def _announced_commit(reader: _Reader) -> str:
    reader.take(_TRANSITION_BYTES)
    return _message(reader)


def _welcome(reader: _Reader) -> str:
    reader.take(_TRANSITION_BYTES)
    return f"welcome, cipher suite {reader.number(2)}"


def _message(reader: _Reader) -> str:
    """Name one MLSMessage. Reads a known proposal to its end."""
    if (version := reader.number(2)) != _MLS_1_0:
        return f"version {version}"
    if (wire_format := reader.number(2)) != _PUBLIC_MESSAGE:
        return f"wire format {wire_format}"
    reader.vector()  # group id
    reader.take(_EPOCH_BYTES)
    sender = reader.number(1)
    if sender not in _SENDERS:
        return f"message by sender {sender}"
    reader.take(_INDEX_BYTES)
    reader.vector()  # authenticated data
    content = reader.number(1)
    if content != _PROPOSAL:
        return f"{_CONTENTS.get(content, f'content {content}')} by {_SENDERS[sender]}"
    action = reader.number(2)
    name = f"{_ACTIONS.get(action, f'proposal {action}')} by {_SENDERS[sender]}"
    if name in KNOWN_KINDS:
        if action == _ADD:
            _skip_key_package(reader)
        else:
            reader.take(_INDEX_BYTES)
        reader.vector()  # signature
    return name


def _skip_key_package(reader: _Reader) -> None:
    """Section 10. What is not as in DAVE cannot be skipped."""
    reader.take(4)  # version, cipher suite
    reader.skip_vectors(3)  # init key, encryption key, signature key
    if reader.number(2) != _BASIC_CREDENTIAL:
        raise _BrokenOffError
    reader.skip_vectors(6)  # identity, capabilities
    if reader.number(1) != _FROM_KEY_PACKAGE:
        raise _BrokenOffError
    reader.take(_LIFETIME_BYTES)
    reader.skip_vectors(4)  # extensions and signature of the leaf, then of the package
