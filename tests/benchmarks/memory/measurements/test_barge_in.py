"""Folding turns into memory while every reply is interrupted."""

from __future__ import annotations

import pytest

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.measurements import barge_in
from benchmarks.progress import NoProgress
from compaction.settings import CompactionSettings


@pytest.mark.asyncio
async def test_every_fold_that_is_asked_for_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fold that is requested is applied, although every reply is interrupted."""
    monkeypatch.setattr(barge_in, "TURN_S", 0.001)
    monkeypatch.setattr(barge_in, "SUMMARY_S", 0.005)
    made = generate_evening(1, TemplateSet.TUNING, lines=120)
    found = await barge_in.measure_barge_in(made, CompactionSettings(), NoProgress())
    assert found.asked == found.applied > 0
    assert found.behind == 0
    assert found.turns == 120
