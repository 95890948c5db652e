"""`roomtone bench` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.cli.app import run_command_line


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, so that no other settings apply."""
    monkeypatch.chdir(tmp_path)


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`roomtone bench` without a name lists the benchmarks with their parts."""
    assert run_command_line(["bench"]) == 0
    assert "extractive" in capsys.readouterr().out


def test_a_benchmark_measures_the_parts_that_were_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints its targets, of which the others are marked as not measured, writes its results as JSON, and ends with
    exit status 0 whatever was measured. An unknown part is refused.
    """
    file = tmp_path / "out" / "memory.json"
    words = ["--evenings", "1", "--search-turns", "100", "--no-embeddings", "--json", str(file)]
    assert run_command_line(["bench", "memory", *words, "--only", "extractive", "--only", "search"]) == 0
    told = json.loads(file.read_text("utf-8"))
    assert (told["bench"], set(told["ours"])) == ("memory", {"extractive", "search"})
    assert {target["met"] for target in told["targets"]} >= {True, None}
    shown = " ".join(capsys.readouterr().out.split())
    assert "answers among the quotes" in shown
    assert "not measured" in shown
    assert run_command_line(["bench", "memory", "--only", "everything"]) == 2
    assert "everything is none of recorded" in " ".join(capsys.readouterr().err.split())


def test_questions_and_own_recordings_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run has one set of recordings."""
    assert run_command_line(["bench", "reply", "--questions", "--speech", str(tmp_path)]) == 2
    assert "exclude" in capsys.readouterr().err
