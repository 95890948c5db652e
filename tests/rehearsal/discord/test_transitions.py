"""Transitions: executed once, when nobody holds them up."""

from __future__ import annotations

from rehearsal.discord.transitions import Transitions


def test_a_transition_is_ready_when_all_are() -> None:
    """Or gone, or overdue; and it is taken once."""
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
    """Nor are those that were cleared."""
    transitions = Transitions()
    transitions.call_off(transitions.announce([1]))
    transitions.announce([])
    transitions.clear()
    assert transitions.take_ready() == []


def test_ids_go_round_without_zero() -> None:
    """They are 16 bits, and 0 means at once."""
    transitions = Transitions()
    ids = {transitions.announce([]) for _ in range(70_000)}
    assert (min(ids), max(ids)) == (1, 0xFFFE)
