"""How many entry points Ray Serve runs, and what they are."""

from __future__ import annotations

from typing import Any

import pytest

from bot.cluster.entry_points import EntryPoint, OnePerMachine, entry_points
from tests.fakes.clock import FakeClock

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_there_are_as_many_as_machines() -> None:
    """They are counted once a second, however often Ray Serve asks, and there is always one."""
    clock, machines = FakeClock(), [3, 4, 0]
    policy = OnePerMachine(lambda: machines.pop(0), clock.monotonic)
    assert [policy(None) for _ in range(10)] == [(3, {})] * 10
    clock.advance(1.0)
    assert [policy(None) for _ in range(10)] == [(4, {})] * 10
    clock.advance(1.0)
    assert policy(None) == (1, {})


def test_no_machine_has_two_and_none_is_too_full_for_one() -> None:
    """Those that are there stay as they are."""
    made: Any = entry_points()._bound_deployment
    assert made.func_or_class is EntryPoint
    assert made._replica_config.max_replicas_per_node == 1
    assert made.ray_actor_options["num_cpus"] == 0
    assert made._deployment_config.autoscaling_config.policy.get_policy() is OnePerMachine
    assert made.version is not None
    assert made.version == entry_points()._bound_deployment.version
