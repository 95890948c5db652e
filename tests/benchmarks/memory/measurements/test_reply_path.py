"""The cost of memory on the reply path, in a small session."""

from __future__ import annotations

import pytest

from benchmarks.memory.measurements import reply_path
from benchmarks.progress import NoProgress
from compaction.settings import CompactionSettings


@pytest.mark.asyncio
async def test_figures_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures list the time for tokenising separately and the growth of the session on the way."""
    monkeypatch.setattr(reply_path, "_REPLIES", 20)
    told = await reply_path.measure_reply_path(100, CompactionSettings(), NoProgress())
    assert told["turns"] == 100
    for name in ("trigger_ms", "payload_ms", "trigger_and_payload_ms", "tokenising_ms", "trigger_and_payload_cpu_ms"):
        spread = told[name]
        assert isinstance(spread, dict)
        assert isinstance(spread["p99"], float)
        assert spread["p99"] > 0.0
    growth = told["growth"]
    assert isinstance(growth, list)
    assert [each["turns"] for each in growth if isinstance(each, dict)] == [10, 50, 100]
