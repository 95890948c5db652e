"""The report for people."""

from __future__ import annotations

from rich.console import Console

from benchmarks.report import Report, Target
from benchmarks.showing import report_view
from tests.benchmarks.test_report import MACHINE


def test_view_tells_figures_targets_and_remarks() -> None:
    """Everything but long examples can be read without the file."""
    report = Report(
        "memory",
        MACHINE,
        {"ledger": {"held_out": {"kept": 0.75, "names": ["Max"], "example": "x" * 300}}},
        {"other": {"failed": "It would not install."}},
        (Target("names", "0", 1, met=False), Target("speed", "<= 1 ms", "not measured", None)),
        ("Nothing else was running.",),
    )
    console = Console(width=200, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(report_view(report))
    told = captured.get()
    assert "kept 0.75" in told
    assert "[Max]" in told
    assert "It would not install." in told
    assert "not met" in told
    assert "not measured" in told
    assert "Nothing else was running." in told
    assert "xxx" not in told
