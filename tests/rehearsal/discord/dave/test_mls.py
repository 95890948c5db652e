"""MLS bytes: davey understands our messages, and hostile bytes raise only `MlsError`."""

from __future__ import annotations

import davey
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.discord.dave import mls
from rehearsal.errors import MlsError

_USER, _OTHER, _CHANNEL = 7, 8, 42
_APPEND = davey.ProposalsOperationType.append


def _committed() -> tuple[bytes, mls.Proposal, bytes]:
    """Return a real commit with its welcome, the proposal that it references, and the key package that it welcomes."""
    sender = mls.ExternalSender(_CHANNEL)
    session, other = davey.DaveSession(1, _USER, _CHANNEL), davey.DaveSession(1, _OTHER, _CHANNEL)
    session.set_external_sender(sender.package)
    package = bytes(other.get_serialized_key_package())
    proposal = sender.add(0, package)
    result = session.process_proposals(_APPEND, mls.append_proposals([proposal.message])[1:])
    assert result is not None
    assert result.welcome is not None
    return result.commit + result.welcome, proposal, package


_COMMIT, _PROPOSAL, _PACKAGE = _committed()


def test_a_real_key_package_is_sound_for_its_owner_alone() -> None:
    """A key package is valid only for the user whose id it holds."""
    mls.check_key_package(_PACKAGE, user_id=_OTHER)
    with pytest.raises(MlsError, match="another user"):
        mls.check_key_package(_PACKAGE, user_id=_USER)


@given(st.integers(0, len(_PACKAGE) - 1), st.integers(1, 255))
def test_a_key_package_with_any_byte_changed_is_refused(index: int, change: int) -> None:
    """A key package is refused when any byte is changed. Each byte is checked or covered by a signature."""
    forged = bytearray(_PACKAGE)
    forged[index] ^= change
    with pytest.raises(MlsError):
        mls.check_key_package(bytes(forged), user_id=_OTHER)


@given(st.integers(0, len(_COMMIT) - 1))
def test_a_truncated_message_is_refused(end: int) -> None:
    """A commit that is cut short raises `MlsError`. Cut exactly at the end of the commit, it has no welcome."""
    commit = mls.split_commit_welcome(_COMMIT).commit
    if end == len(commit):
        assert mls.split_commit_welcome(_COMMIT[:end]).welcome == b""
        return
    with pytest.raises(MlsError):
        mls.split_commit_welcome(_COMMIT[:end])


@given(st.data())
def test_a_damaged_commit_raises_our_error_or_is_read(data: st.DataObject) -> None:
    """A damaged commit raises `MlsError` or is read, but raises no other exception."""
    damaged = bytearray(_COMMIT)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        parts = mls.split_commit_welcome(bytes(damaged))
    except MlsError:
        return
    assert parts.commit + parts.welcome == bytes(damaged)


@given(st.binary(max_size=400))
def test_hostile_bytes_raise_our_error(body: bytes) -> None:
    """Random bytes are neither a commit nor a key package and raise `MlsError`."""
    with pytest.raises(MlsError):
        mls.split_commit_welcome(body)
    with pytest.raises(MlsError):
        mls.check_key_package(body, user_id=1)


@pytest.mark.parametrize(
    ("encoded", "says"),
    [
        (b"\xc0" + bytes(20), "reserved prefix"),
        (b"\x40\x05hello", "shortest form"),
        (b"\x80\x00\x00\x05hello", "shortest form"),
        (b"\x05hell", "1 bytes too early"),
        (b"", "1 bytes too early"),
    ],
)
def test_a_vector_in_bad_form_is_refused(encoded: bytes, says: str) -> None:
    """Length prefix 3 is invalid, and a length must have its shortest form (RFC 9420 section 2.1.2)."""
    with pytest.raises(MlsError, match=says):
        mls._Reader(encoded).vector()


def test_a_commit_must_name_each_proposal_once() -> None:
    """A commit is refused if it has no reference, the same reference twice, or a proposal by value."""
    head = b"\0\1\0\1" + mls.vector(bytes(8)) + bytes(8) + b"\1" + bytes(4) + mls.vector(b"") + b"\3"
    twice = (b"\2" + mls.vector(b"x" * 32)) * 2
    for proposals, says in ((b"", "at least one"), (twice, "once"), (b"\1\0\1", "by value")):
        with pytest.raises(MlsError, match=says):
            mls.split_commit_welcome(head + mls.vector(proposals) + b"\0" + mls.vector(b"") * 3)
    with pytest.raises(MlsError, match="presence byte"):
        mls.split_commit_welcome(head + mls.vector(b"\2" + mls.vector(b"x")) + b"\2")
