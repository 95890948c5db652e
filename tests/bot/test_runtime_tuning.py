"""What is changed of Python itself while the bot runs."""

from __future__ import annotations

import gc
import sys

import pytest

from bot.runtime_tuning import SWITCH_INTERVAL_S, low_latency_interpreter


def test_turns_are_short_and_collections_too_while_it_lasts() -> None:
    """What stands when it begins is no collection's business, and everything is as before at the end."""
    before_s = sys.getswitchinterval()
    with low_latency_interpreter():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert gc.get_freeze_count() > 1000
    assert sys.getswitchinterval() == before_s
    assert gc.get_freeze_count() == 0
