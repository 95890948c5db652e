"""The reply benchmark in its quick form measures something in every part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenarios.program import Program

pytestmark = pytest.mark.rehearsal


def test_every_part_measures_something(tmp_path: Path) -> None:
    """Every figure is measured, however busy the machine is, and the bot logs no warning."""
    file = tmp_path / "reply.json"
    ran = Program(tmp_path, "bench", "reply", "--quick", "--json", str(file)).wait()
    assert ran.status == 0, ran.printed
    told = json.loads(file.read_text("utf-8"))
    # The few sentences of the quick form have no pauses inside, and of its two questions perhaps no answer gave way.
    without = {
        "pauses that are cut in real time, somebody alone with the bot",
        "words heard of an answer that gave way, P95",
    }
    assert {target["name"] for target in told["targets"] if target["met"] is None} <= without, ran.printed
    ours = told["ours"]
    assert ours["answers"]["unanswered"] == 0
    assert ours["four speakers"]["utterances"] >= 4
    assert ours["interruptions"]["not_measured"] == 0
    assert all(ours[part]["warned_of"] == [] for part in ("answers", "four speakers", "interruptions")), ours
