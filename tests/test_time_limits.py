"""The time limits of the product that tests lengthen are where the tests look for them."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.bot.conftest import BOT_LIMITS
from tests.conftest import DISCORD_LIMITS


@pytest.mark.parametrize(("module", "limit"), [*DISCORD_LIMITS, *BOT_LIMITS])
def test_a_limit_that_tests_lengthen_is_there(module: str, limit: str) -> None:
    """Otherwise tests would race against it again, and nobody would know."""
    assert getattr(import_module(module), limit) > 0
