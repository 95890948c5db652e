"""The shares of lost, padded and reordered packets are set one by one or together. A bad request changes none."""

from __future__ import annotations

import pytest

from rehearsal.discord.media.network import ForwarderCounters, NetworkConditions
from rehearsal.errors import LocalDiscordError


def test_shares_are_set_by_name_and_at_once() -> None:
    """Attributes and `update` set the same shares."""
    network = NetworkConditions(loss=0.1)
    network.padding, network.reorder = 0, 1
    network.update({"loss": 0.5})
    assert network.as_dict() == {"loss": 0.5, "padding": 0.0, "reorder": 1.0}
    assert (network.loss, network.padding, network.reorder) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), True, "much", None, [1]])
def test_a_share_is_a_number_from_0_to_1(share: object) -> None:
    """A share is a number from 0 to 1. A request with any other value changes no share."""
    network = NetworkConditions()
    before = network.as_dict()
    with pytest.raises(LocalDiscordError, match=r"reorder is a share from 0 to 1, for example 0\.05"):
        network.update({"loss": 0.9, "reorder": share})
    assert network.as_dict() == before


def test_an_unknown_share_is_refused() -> None:
    """The error for an unknown setting lists the known ones."""
    with pytest.raises(LocalDiscordError, match=r"has no setting 'delay'\. Its settings are loss, padding, reorder"):
        NetworkConditions().update({"delay": 0.1})
    with pytest.raises(LocalDiscordError):
        NetworkConditions(loss=2)


def test_counters_have_the_names_of_the_control_api() -> None:
    """The counters are named in, out, dropped, bad, injected, unannounced and forgotten."""
    counters = ForwarderCounters(received=1, forwarded=2, dropped=3, bad=4, injected=5, unannounced=6, forgotten=7)
    names = ("in", "out", "dropped", "bad", "injected", "unannounced", "forgotten")
    assert counters.as_dict() == dict(zip(names, range(1, 8), strict=True))
