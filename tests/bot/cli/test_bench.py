"""`roomtone bench` as a person uses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bot.cli.app import run_command_line

if TYPE_CHECKING:
    from pathlib import Path

SMALL = ["--evenings", "1", "--folds", "5", "--turns", "100", "--search-turns", "100"]
ALONE = ["--no-model", "--no-peers", "--no-embeddings"]


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever settings lie about stay out."""
    monkeypatch.chdir(tmp_path)


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what it measures."""
    assert run_command_line(["bench"]) == 0
    assert "memory" in capsys.readouterr().out


def test_small_run_writes_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 0 whatever was found, the tables on stdout, the object in the file."""
    file = tmp_path / "out" / "memory.json"
    assert run_command_line(["bench", "memory", *SMALL, *ALONE, "--json", str(file)]) == 0
    told = json.loads(file.read_text("utf-8"))
    assert {"bench", "machine", "ours", "peers", "targets"} <= told.keys()
    assert told["bench"] == "memory"
    assert set(told["ours"]) >= {"extractive", "reply_path", "barge_in", "search_speed"}
    assert "last 50 turns" in told["peers"]
    assert told["ours"]["barge_in"]["asked"] == told["ours"]["barge_in"]["applied"]
    assert all({"name", "goal", "value", "met"} <= target.keys() for target in told["targets"])
    out = capsys.readouterr().out
    assert "Targets" in out
    assert "Other libraries were left out." in out


def test_dead_endpoint_is_a_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is measured with a model that isn't there."""
    assert run_command_line(["bench", "memory", *SMALL, "--no-peers", "--base-url", "http://127.0.0.1:9/v1"]) == 1
    assert "No language model answers at http://127.0.0.1:9/v1" in capsys.readouterr().err


def test_unreadable_conversations_are_a_plain_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the file's name, before anything is measured."""
    (tmp_path / "bad.json").write_text("{}", "utf-8")
    assert run_command_line(["bench", "memory", *SMALL, *ALONE, "--transcripts", str(tmp_path)]) == 1
    assert "bad.json is JSON of a form that is not known here" in capsys.readouterr().err
