"""The benchmark report as readable tables."""

from __future__ import annotations

from rich.console import Console

from benchmarks.report import BenchmarkReport, Target
from benchmarks.report_tables import render_report
from tests.benchmarks.test_report import MACHINE


def test_view_tells_figures_targets_and_remarks() -> None:
    """The tables show everything in the report except long examples."""
    report = BenchmarkReport(
        "memory",
        MACHINE,
        {
            "reply": {"ms": {"p99": 0.75}, "growth": [{"turns": 10}], "names": ["Max"], "example": "x" * 300},
            "ledger": {
                "held_out": {
                    "after_folds": {"5": {"facts": 3, "kept": 1.0}, "20": {"facts": 9, "kept": 0.5, "stale": None}},
                    "invented_names": ["Max"],
                    "invented_numbers": [],
                    "summaries_over_1200_chars": 2,
                    "cost": {"fold_p50_s": 1.5},
                    "people": {"entities_due": 8, "entities_of_summaries": 0.25, "questions": 0},
                }
            },
        },
        {"other": {"failed": "It would not install."}},
        (Target("names", "0", 1, met=False), Target("speed", "<= 1 ms", "not measured", None)),
        ("Nothing else was running.",),
    )
    console = Console(width=200, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(render_report(report))
    told = captured.get()
    assert "p99 0.75" in told
    assert ["ledger", "8", "25%", "-", "-", "-", "0", "-"] in [line.split() for line in told.splitlines()]
    assert "turns 10" in told
    compared = [line.split() for line in told.splitlines() if "50%" in line]
    assert compared == [["20", "9", "50%", "-", "-", "-", "-", "-", "-", "1", "+", "0", "2", "1.5"]]
    assert "[Max]" in told
    assert "It would not install." in told
    assert "not met" in told
    assert "not measured" in told
    assert "Nothing else was running." in told
    assert "xxx" not in told
