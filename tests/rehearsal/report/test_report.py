"""The report's figures, and the JSON that other programs read."""

from __future__ import annotations

import json
from pathlib import Path

from rehearsal.report.report import LatencyPercentiles, latency_percentiles
from tests.rehearsal.report.example import example


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


def test_a_percentile_is_one_of_the_values() -> None:
    assert latency_percentiles([None, *range(1, 11)]) == LatencyPercentiles(5, 10, 10)
