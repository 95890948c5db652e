"""A scenario is an immutable value, and its methods return changed copies."""

from __future__ import annotations

from rehearsal.script.scenario import MAX_WAIT_S
from tests.rehearsal.simulated import scenario


def test_patience_makes_every_wait_longer() -> None:
    """`with_patience` multiplies every timeout, up to the longest wait allowed, and changes nothing else."""
    first = scenario()
    longer, longest = first.with_patience(4), first.with_patience(1000)
    assert [step.timeout_s for step in longer.steps] == [4 * step.timeout_s for step in first.steps]
    assert {step.timeout_s for step in longest.steps} == {MAX_WAIT_S}
    assert longer.settle_s == 4 * first.settle_s
    assert longer.with_patience(0.25) == first
