"""MLS messages are named by kind: all that a voice gateway sends is known, the rest is told by its numbers."""

from __future__ import annotations

import struct

import davey
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.discord.dave.effects import DaveOpcode
from rehearsal.discord.dave.mls import ExternalSender, append_proposals, revoke_proposals, split_commit_welcome, vector
from voice.transport.mls_kinds import BINARY_OPS, BROKEN_OFF, KNOWN_KINDS, mls_kinds

ANA, BEN, CHANNEL = 7, 8, 42
GATEWAY = ExternalSender(CHANNEL)
TRANSITION = b"\0\5"


def committed() -> tuple[bytes, bytes, bytes]:
    """Return a proposal that adds Ben, and Ana's commit and welcome for it."""
    ana, ben = davey.DaveSession(1, ANA, CHANNEL), davey.DaveSession(1, BEN, CHANNEL)
    ana.set_external_sender(GATEWAY.package)
    proposal = GATEWAY.add(0, bytes(ben.get_serialized_key_package())).message
    result = ana.process_proposals(davey.ProposalsOperationType.append, append_proposals([proposal])[1:])
    assert isinstance(result, davey.CommitWelcome)
    parts = split_commit_welcome(result.commit + (result.welcome or b""))
    return proposal, parts.commit, parts.welcome


ADD, COMMIT, WELCOME = committed()
REMOVE = GATEWAY.remove(3, 1).message


def names(op: int, body: bytes) -> list[str]:
    return [kind.name for kind in mls_kinds(op, body)]


def test_what_a_voice_gateway_sends_is_known() -> None:
    """Each proposal of a batch is named and measured for itself."""
    assert names(DaveOpcode.EXTERNAL_SENDER, GATEWAY.package) == ["external sender, credential 1"]
    assert names(DaveOpcode.ANNOUNCE_COMMIT, TRANSITION + COMMIT) == ["commit by member"]
    assert names(DaveOpcode.WELCOME, TRANSITION + WELCOME) == ["welcome, cipher suite 2"]
    assert names(DaveOpcode.PROPOSALS, revoke_proposals([bytes(32), bytes(32)])) == ["revoked proposal"] * 2
    batch = mls_kinds(DaveOpcode.PROPOSALS, append_proposals([ADD, REMOVE, ADD]))
    assert [kind.name for kind in batch] == [
        "add by external sender", "remove by external sender", "add by external sender",
    ]  # fmt: skip
    assert [kind.size_bytes for kind in batch] == [len(ADD), len(REMOVE), len(ADD)]


def changed(message: bytes, at: int, to: bytes) -> bytes:
    return message[:at] + to + message[at + len(to) :]


# Where the numbers of an MLSMessage stand behind a group id of eight bytes: version, wire format, sender, content and
# type of the proposal.
VERSION, WIRE_FORMAT, SENDER, CONTENT, ACTION = 0, 2, 21, 27, 28


@pytest.mark.parametrize(
    ("at", "to", "name"),
    [
        (VERSION, b"\0\2", "version 2"),
        (WIRE_FORMAT, b"\0\2", "wire format 2"),
        (SENDER, b"\7", "message by sender 7"),
        (SENDER, b"\1", "add by member"),
        (CONTENT, b"\x09", "content 9 by external sender"),
        (CONTENT, b"\3", "commit by external sender"),
        (ACTION, b"\0\4", "proposal 4 by external sender"),
    ],
)
def test_an_unknown_kind_is_told_by_its_numbers(at: int, to: bytes, name: str) -> None:
    """The rest of the batch counts to it, because nobody knows where it ends."""
    unknown = changed(ADD, at, to)
    first, second = mls_kinds(DaveOpcode.PROPOSALS, append_proposals([REMOVE, unknown, ADD]))
    assert (first.name, second.name) == ("remove by external sender", name)
    assert second.size_bytes == len(unknown) + len(ADD)
    assert name not in KNOWN_KINDS


def test_other_operations_credentials_and_cipher_suites_are_told() -> None:
    assert names(DaveOpcode.PROPOSALS, b"\x05" + append_proposals([ADD])[1:]) == ["proposals, operation 5"]
    key = vector(bytes(65))
    assert names(DaveOpcode.EXTERNAL_SENDER, key + b"\0\2") == ["external sender, credential 2"]
    assert names(DaveOpcode.WELCOME, TRANSITION + b"\0\3" + WELCOME[2:]) == ["welcome, cipher suite 3"]
    assert names(DaveOpcode.KEY_PACKAGE, ADD) == names(77, ADD) == []


@given(st.sampled_from(sorted(BINARY_OPS)), st.binary(max_size=300))
def test_no_bytes_raise_anything(op: int, body: bytes) -> None:
    assert all(kind.size_bytes <= len(body) for kind in mls_kinds(op, body))


@given(st.integers(1, len(ADD) - 1))
def test_what_ends_too_early_is_broken_off(size: int) -> None:
    assert names(DaveOpcode.PROPOSALS, append_proposals([ADD[:size]])) == [BROKEN_OFF]
    assert names(DaveOpcode.ANNOUNCE_COMMIT, TRANSITION + COMMIT[: size % CONTENT]) == [BROKEN_OFF]


def test_a_batch_without_end_is_cut() -> None:
    """The smallest messages, which a hostile server could send by the million."""
    empty = struct.pack(">I", 0x8000_0000 | 100_000) + bytes(100_000)
    assert len(mls_kinds(DaveOpcode.PROPOSALS, b"\1" + empty)) == 200
