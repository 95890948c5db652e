"""The DAVE delivery service with real MLS clients: the members share keys, in whatever order the events happen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.discord.dave.group import DaveOpcode, SendBinary, SendJson
from tests.rehearsal.discord.dave_simulation import DaveChannel

_USERS = st.integers(1, 5)
_COMINGS_AND_GOINGS = st.lists(st.tuples(_USERS, st.integers(0, 12)), min_size=1, max_size=14)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), events=_COMINGS_AND_GOINGS, several=st.booleans())
def test_whoever_comes_and_goes_those_who_stay_agree(seed: int, events: list[tuple[int, int]], several: bool) -> None:
    """After any order of joins, leaves and messages, all members share one secret, and no client got a bad proposal.

    `several`: batches are proposed in one epoch, for which davey 0.1.7 may make a commit without its Welcome.
    """
    channel = DaveChannel(seed)
    channel.service.several_batches = several
    for user_id, moves in events:
        if user_id in channel.clients:
            channel.leave(user_id)
        else:
            channel.join(user_id)
        for _ in range(moves):
            channel.move()
    channel.settle()
    assert len(channel.clients) < 2 or channel.agreed()
    assert len(channel.clients) >= 2 or channel.service.epoch == 0
    assert channel.service.pending_transitions == ()
    assert all(client.refused_proposals == 0 for client in channel.clients.values())


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32), events=st.lists(st.tuples(st.integers(0, 9), _USERS, st.integers(0, 8)), max_size=16)
)
def test_reports_and_resets_at_any_moment_end_in_agreement(seed: int, events: list[tuple[int, int, int]]) -> None:
    """The group recovers when clients report unusable messages and when it is recreated in the middle of a commit."""
    channel = DaveChannel(seed)
    for user_id in range(1, 4):
        channel.join(user_id)
    for kind, user_id, moves in events:
        present = user_id in channel.clients
        if kind < 3 and present:
            channel.clients[user_id].report(0)
        elif kind < 5:
            channel.apply(channel.service.recreate())
        elif kind < 6 and channel.timers:
            channel.fire()
        elif present and kind < 8:
            channel.leave(user_id)
        elif not present:
            channel.join(user_id)
        for _ in range(moves):
            channel.move()
    channel.settle()
    assert len(channel.clients) < 2 or channel.agreed()


@pytest.fixture
def channel() -> DaveChannel:
    """A channel without members."""
    return DaveChannel()


def test_the_first_commit_wins_and_the_others_are_dropped(channel: DaveChannel) -> None:
    """At epoch 0 every client commits. One commit is announced, to its author only. The other clients get a welcome."""
    for user_id in (1, 2, 3):
        channel.join(user_id)
    channel.settle()
    announced = [each for each in channel.sent if each.opcode == DaveOpcode.ANNOUNCE_COMMIT]
    welcomed = [each for each in channel.sent if each.opcode == DaveOpcode.WELCOME]
    assert (len(announced), len(welcomed)) == (1, 2)
    assert all(isinstance(each, SendBinary) and each.body[:2] == b"\0\0" for each in announced + welcomed)
    assert channel.agreed()


def test_removals_and_additions_share_a_batch(channel: DaveChannel) -> None:
    """An addition and a removal that are pending together are sent in one batch.

    If an Add is in one batch and a Remove in the next, davey 0.1.7 answers with a commit that lacks its Welcome.
    """
    for user_id in (1, 2, 3):
        channel.join(user_id)
    channel.settle()
    # While the removal of 3 is pending, 4 and 5 join and 4 leaves again.
    channel.leave(3)
    channel.join(4)
    channel.join(5)
    for client in list(channel.clients.values()):
        while client.outbox:
            channel.serve(client)
    channel.leave(4)
    channel.settle()
    assert channel.agreed()
    assert set(channel.service.leaves) == {1, 2, 5}


def test_a_batch_nobody_commits_is_proposed_again_and_then_the_group_is_made_anew(channel: DaveChannel) -> None:
    """Members whose client has stopped working on a live connection do not keep new members out."""
    for user_id in (1, 2):
        channel.join(user_id)
    channel.settle()
    del channel.clients[1], channel.clients[2]
    channel.join(3)
    channel.join(4)
    channel.settle()
    assert channel.agreed()
    assert set(channel.service.leaves) == {3, 4}
    assert any(isinstance(each, SendJson) and each.opcode == DaveOpcode.PREPARE_EPOCH for each in channel.sent)


def test_a_downgrade_is_announced_executed_and_undone(channel: DaveChannel) -> None:
    """A downgrade sends ops 21, 23 and 22 with version 0 and ignores key packages. Op 24 then begins a new group."""
    for user_id in (1, 2):
        channel.join(user_id)
    channel.settle()
    channel.apply(channel.service.downgrade())
    assert channel.service.downgrade() == []
    channel.settle()
    assert (channel.service.version, channel.service.epoch) == (0, 0)
    channel.join(3)
    channel.settle()
    assert channel.service.epoch == 0
    assert channel.service.invalid_commit(1) == channel.service.recreate() == []
    channel.apply(channel.service.upgrade())
    assert channel.service.upgrade() == []
    channel.settle()
    assert channel.service.version == 1
    assert channel.agreed()
    # The last transition has an id other than 0, so clients leave the downgraded state.
    welcomes = [each for each in channel.sent if each.opcode == DaveOpcode.WELCOME]
    assert isinstance(welcomes[-1], SendBinary)
    assert welcomes[-1].body[:2] != b"\0\0"
