"""The interpreter settings that are changed while the bot runs."""

from __future__ import annotations

import gc
import sys

import pytest

from bot.runtime_tuning import SWITCH_INTERVAL_S, low_latency_interpreter


def test_turns_are_short_and_collections_too_while_it_lasts() -> None:
    """Inside the context, thread switches are short and existing objects are frozen. At its end, all is as before."""
    before_s = sys.getswitchinterval()
    with low_latency_interpreter():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert gc.get_freeze_count() > 1000
    assert sys.getswitchinterval() == before_s
    assert gc.get_freeze_count() == 0
