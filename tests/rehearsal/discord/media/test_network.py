"""The shares of lost, padded and reordered packets are set one by one or together. A bad request changes none."""

from __future__ import annotations

import pytest

from rehearsal.discord.media.network import NetworkConditions
from rehearsal.errors import LocalDiscordError


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), True, "much", None, [1]])
def test_a_share_is_a_number_from_0_to_1(share: object) -> None:
    """A share is a number from 0 to 1. A request with any other value changes no share."""
    network = NetworkConditions()
    before = network.as_dict()
    with pytest.raises(LocalDiscordError, match="each from 0 to 1; not reorder"):
        network.update({"loss": 0.9, "reorder": share})
    assert network.as_dict() == before
