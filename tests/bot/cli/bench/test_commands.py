"""`roomtone bench` as a person uses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bot.cli.app import run_command_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, so that no other settings apply."""
    monkeypatch.chdir(tmp_path)


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`roomtone bench` without a name lists the benchmarks with their parts."""
    assert run_command_line(["bench"]) == 0
    assert "extractive" in capsys.readouterr().out


def test_small_run_writes_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A benchmark prints its targets, writes its results as JSON, and ends with exit status 0 whatever was measured."""
    file = tmp_path / "out" / "memory.json"
    words = ["bench", "memory", "--evenings", "1", "--search-turns", "100", "--no-embeddings", "--json", str(file)]
    assert run_command_line(words) == 0
    told = json.loads(file.read_text("utf-8"))
    assert (told["bench"], set(told["ours"])) == ("memory", {"recorded", "extractive", "search", "languages", "speed"})
    judged = {target["name"]: target["met"] for target in told["targets"]}
    assert [name for name, met in judged.items() if met is None] == ["evidence among ten hits, people's questions"]
    assert "answers among the quotes" in " ".join(capsys.readouterr().out.split())


def test_only_the_parts_that_were_named_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, whisper_model_dir: Path
) -> None:
    """The others are marked as not measured, and an unknown part is refused."""
    monkeypatch.setenv("ROOMTONE_ASR__MODEL", str(whisper_model_dir.absolute()))
    file = tmp_path / "listen.json"
    words = ["bench", "listen", "--recordings", "2", "--only", "deciding", "--only", "endpointing"]
    assert run_command_line([*words, "--json", str(file)]) == 0
    told = json.loads(file.read_text("utf-8"))
    assert set(told["ours"]) == {"deciding", "endpointing"}
    assert told["ours"]["endpointing"]["recordings"] == 2
    assert "not measured" in capsys.readouterr().out
    assert run_command_line(["bench", "listen", "--only", "everything"]) == 2
    assert "everything is none of deciding" in " ".join(capsys.readouterr().err.split())
