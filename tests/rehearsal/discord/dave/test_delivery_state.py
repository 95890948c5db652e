"""The group's leaves and transitions are correct after any sequence of commits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rehearsal.discord.dave.delivery_state import Addition, GroupChange, MlsGroup, Removal, Transitions

_COMMITS = st.lists(st.tuples(st.sets(st.integers(0, 9), max_size=4), st.integers(0, 4)), max_size=8)


@given(_COMMITS)
def test_leaves_stay_dense_from_the_left(commits: list[tuple[set[int], int]]) -> None:
    """No two members share a leaf, and a new member takes the leftmost free leaf."""
    group = MlsGroup(leaves={0: 1})
    next_user = 2
    for removed, count in commits:
        changes: list[GroupChange] = [Removal(leaf) for leaf in removed]
        changes += [Addition(next_user + index, b"") for index in range(count)]
        stayed, added = group.apply(changes)
        next_user += count
        assert sorted(stayed + added) == sorted(group.members())
        assert not added or set(range(max(group.members()[user] for user in added))) <= set(group.leaves)


def test_a_stale_leaf_is_no_member_and_goes_with_its_removal() -> None:
    """A stale leaf stays taken until a commit removes it, although its owner is not a member and cannot commit."""
    group = MlsGroup(epoch=3, leaves={0: 1, 1: 2}, stale={1})
    assert group.members() == {1: 0}
    assert group.apply([Addition(3, b""), Removal(1)]) == ([1], [3])
    assert (group.leaves, group.stale) == ({0: 1, 1: 3}, set())


def test_what_was_proposed_is_known_by_recipient() -> None:
    """`proposed_additions` returns the additions proposed to one recipient, without removals."""
    group = MlsGroup(outstanding={5: {b"a": Addition(6, b""), b"b": Removal(0)}})
    assert group.proposed_additions(5) == {6}
    assert group.proposed_additions(6) == set()


def test_a_transition_is_ready_when_all_are() -> None:
    """A transition is ready when every member is ready, gone or overdue. A ready transition is taken once."""
    transitions = Transitions()
    first, second, third = (transitions.announce([1, 2]) for _ in range(3))
    assert transitions.ids == (first, second, third) == (1, 2, 3)
    transitions.ready(1, first)
    transitions.ready(1, 77)
    assert transitions.take_ready() == []
    transitions.ready(2, first)
    assert transitions.take_ready() == [(first, (1, 2))]
    transitions.gone(1)
    transitions.ready(2, second)
    transitions.overdue(third)
    transitions.overdue(77)
    assert transitions.take_ready() == [(second, (1, 2)), (third, (1, 2))]
    assert transitions.take_ready() == []


def test_a_transition_called_off_is_never_executed() -> None:
    """Transitions that were called off or cleared are never executed."""
    transitions = Transitions()
    transitions.call_off(transitions.announce([1]))
    transitions.announce([])
    transitions.clear()
    assert transitions.take_ready() == []


def test_ids_go_round_without_zero() -> None:
    """Transition ids have 16 bits and skip 0, because 0 means "at once"."""
    transitions = Transitions()
    ids = {transitions.announce([]) for _ in range(70_000)}
    assert (min(ids), max(ids)) == (1, 0xFFFE)
