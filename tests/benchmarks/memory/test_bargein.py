"""Folding while every reply is talked over."""

from __future__ import annotations

import pytest

from benchmarks.memory import bargein
from benchmarks.memory.evenings import TemplateSet, evening
from benchmarks.progress import Silence
from compaction.settings import CompactionSettings


@pytest.mark.asyncio
async def test_every_fold_that_is_asked_for_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's interruption costs a fold, however many there are."""
    monkeypatch.setattr(bargein, "TURN_S", 0.001)
    monkeypatch.setattr(bargein, "SUMMARY_S", 0.005)
    made = evening(1, TemplateSet.TUNING, lines=120)
    found = await bargein.interrupt_ours(made, CompactionSettings(), Silence())
    assert found.asked == found.applied > 0
    assert found.behind == 0
    assert found.turns == 120
