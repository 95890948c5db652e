"""`roomtone bench` as a person uses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.asr.options import OTHERS
from benchmarks.asr.transcriber_process import RECOGNISERS
from bot.cli.app import run_command_line
from bot.cli.bench.commands import ASR_PEERS

if TYPE_CHECKING:
    from pathlib import Path

SMALL = ["--evenings", "1", "--turns", "100", "--search-turns", "100"]


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, so that no other settings apply."""
    monkeypatch.chdir(tmp_path)


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """`roomtone bench` without a name lists the benchmarks."""
    assert run_command_line(["bench"]) == 0
    assert "memory" in capsys.readouterr().out


def test_small_run_writes_its_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A benchmark prints its tables, writes its results as JSON, and ends with exit status 0 whatever was measured."""
    file = tmp_path / "out" / "memory.json"
    assert run_command_line(["bench", "memory", *SMALL, "--no-embeddings", "--json", str(file)]) == 0
    told = json.loads(file.read_text("utf-8"))
    assert {"bench", "machine", "ours", "peers", "targets"} <= told.keys()
    assert told["bench"] == "memory"
    assert set(told["ours"]) >= {"extractive", "reply_path", "search_speed"}
    assert all({"name", "goal", "value", "met"} <= target.keys() for target in told["targets"])
    assert "Targets" in capsys.readouterr().out


def test_the_reply_benchmark_measures_the_parts_that_were_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, whisper_model_dir: Path
) -> None:
    """Only the named parts are measured, the others are marked as not measured, and an unknown part is refused."""
    monkeypatch.setenv("ROOMTONE_ASR__MODEL", str(whisper_model_dir.absolute()))
    file = tmp_path / "reply.json"
    words = ["bench", "reply", "--quick", "--only", "deciding", "--only", "pauses", "--json", str(file)]
    assert run_command_line(words) == 0
    told = json.loads(file.read_text("utf-8"))
    assert set(told["ours"]) == {"deciding", "pauses"}
    assert told["ours"]["pauses"]["recordings"] == 3
    met = {target["name"]: target["met"] for target in told["targets"]}
    assert None in met.values()
    assert {True, False} & set(met.values())
    assert "not measured" in capsys.readouterr().out
    assert run_command_line(["bench", "reply", "--only", "everything"]) == 2
    assert run_command_line(["bench", "reply", "--peer", "nobody"]) == 2
    assert "everything is none of pauses" in " ".join(capsys.readouterr().err.split())


def test_another_recogniser_is_named_as_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """`--peer` knows exactly the recognisers that the benchmark can run, and refuses any other."""
    assert ASR_PEERS == OTHERS == tuple(RECOGNISERS)
    assert run_command_line(["bench", "asr", "--peer", "nobody"]) == 2
    assert "nobody is none of faster-whisper," in " ".join(capsys.readouterr().err.split())


def test_talk_among_people_is_played_with_the_names_that_were_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default name and the given ones are in the file, and the target is in the table."""
    lines = ({"speaker": "Ada", "text": "Thanks, Juniper!", "at": 0}, {"speaker": "Bo", "text": "We leave.", "at": 6})
    (tmp_path / "evening.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    file = tmp_path / "out" / "unasked.json"
    words = ["bench", "unasked", "--transcripts", str(tmp_path), "--name", "Juniper", "--json", str(file)]
    assert run_command_line(words) == 0
    told = json.loads(file.read_text("utf-8"))
    assert {name: figures["whole turns"]["spoken_unasked"] for name, figures in told["ours"].items()} == {
        "Roomtone": 0,
        "Juniper": 1,
    }
    assert [target["met"] for target in told["targets"]] == [True, True]
    assert "spoken unasked in real talk among people" in " ".join(capsys.readouterr().out.split())


def test_unreadable_conversations_are_a_plain_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unreadable transcript is reported with its file name before anything is measured."""
    (tmp_path / "bad.json").write_text("{}", "utf-8")
    assert run_command_line(["bench", "memory", *SMALL, "--no-embeddings", "--transcripts", str(tmp_path)]) == 1
    assert "bad.json is JSON of a form that is not known here" in capsys.readouterr().err
