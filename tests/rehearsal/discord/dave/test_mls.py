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


def test_a_commit_must_name_each_proposal_once() -> None:
    """A commit is refused if it has no reference, the same reference twice, or a proposal by value."""
    head = b"\0\1\0\1" + mls.vector(bytes(8)) + bytes(8) + b"\1" + bytes(4) + mls.vector(b"") + b"\3"
    twice = (b"\2" + mls.vector(b"x" * 32)) * 2
    for proposals, says in ((b"", "at least one"), (twice, "once"), (b"\1\0\1", "by value")):
        with pytest.raises(MlsError, match=says):
            mls.split_commit_welcome(head + mls.vector(proposals) + b"\0" + mls.vector(b"") * 3)
    with pytest.raises(MlsError, match="presence byte"):
        mls.split_commit_welcome(head + mls.vector(b"\2" + mls.vector(b"x")) + b"\2")
