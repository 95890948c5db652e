"""The first rounds of every attack, as CI runs them."""

from __future__ import annotations

import pytest

from tests.fuzz.attacks import ATTACKS, attack_once


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_hostile_input_breaks_nothing(name: str, number: int) -> None:
    """A round of the attack raises nothing, and its own checks hold."""
    attack_once(name, number)
