"""The report's figures, and the JSON that other programs read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from compaction.model import Seq
from compaction.payload import PartKind, PayloadPart
from rehearsal.report.report import (
    BotTurnReport,
    CompactionReport,
    ExpectationResult,
    LatencyPercentiles,
    LatencyReport,
    RehearsalReport,
    UtteranceReport,
    percentile,
)

if TYPE_CHECKING:
    from pathlib import Path


def example() -> RehearsalReport:
    """Return a report with one entry of each kind."""
    return RehearsalReport(
        passed=False,
        scenario="A test",
        started="2026-11-01T20:00:00+00:00",
        duration_s=12.5,
        expectations=(ExpectationResult("max_wer", passed=False, detail="20.0%"),),
        wer=0.2,
        utterances=(UtteranceReport("Mira", "hello", "yellow", 1.0, 512.3),),
        packets={"received": 9, "lost": 1, "concealed": 1, "dave_failures": 0},
        compactions=(CompactionReport(0, 10, 9, 420, 12.5),),
        summary="Mira wants to go to Ithaca.",
        bot_turns=(
            BotTurnReport(
                "Ithaca.", "ithaca", payload=(PayloadPart("system", PartKind.SUMMARY, Seq(0), Seq(9), 3, "Ithaca"),)
            ),
        ),
        latency=LatencyReport(LatencyPercentiles(512.3, 512.3, 1), LatencyPercentiles(None, None)),
    )


def test_the_keys_are_a_contract(tmp_path: Path) -> None:
    """The JSON has at least these keys, which other programs rely on."""
    example().write(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text())
    assert read.keys() >= {
        "passed", "expectations", "wer", "utterances", "packets", "compactions", "summary", "bot_turns", "latency",
    }  # fmt: skip
    assert read["expectations"][0].keys() >= {"name", "passed", "detail"}
    assert read["utterances"][0].keys() >= {"speaker", "reference", "transcript", "wer", "end_to_text_ms"}
    assert read["packets"].keys() >= {"received", "lost", "concealed", "dave_failures"}
    assert read["compactions"][0].keys() >= {
        "old_cursor", "new_cursor", "covered_through_turn", "summary_chars", "latency_ms",
    }  # fmt: skip
    assert read["bot_turns"][0].keys() >= {"text", "heard_by_others"}
    assert read["latency"]["end_to_text_ms"].keys() >= {"p50", "p95"}
    assert read["latency"]["end_to_first_audio_ms"] == {"p50": None, "p95": None, "count": 0}


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_was_measured_and_covers_its_share(values: list[float], share: float) -> None:
    """A percentile is one of the values, and at least that share of the values is not above it."""
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert percentile(values, 1.0) == max(values)
