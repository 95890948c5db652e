"""`roomtone replay` as a person uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from bot.cli.app import run_command_line


@pytest.fixture
def transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A transcript of 120 turns in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "talk.jsonl"
    lines = [{"speaker": "Ada", "text": f"I put parcel {n} into shed {n % 7}.", "at": 4 * n} for n in range(120)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_a_replay_tells_compactions_payload_and_coverage(transcript: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A replay prints each compaction and then the payload and its coverage, and the report file has the same."""
    report = transcript.with_name("report.json")
    assert run_command_line(["replay", str(transcript), "--report", str(report)]) == 0
    out = capsys.readouterr().out
    assert "cursor     0 -> 10" in out
    assert "120 turns, cursor 60" in out
    assert "word for word: turns 60-119" in out
    told = json.loads(report.read_text("utf-8"))
    assert set(told) >= {"turns", "compactions", "summary", "cursor", "payload", "coverage"}
    assert told["coverage"]["missing"] == []
    assert set(told["compactions"][0]) >= {
        "old_cursor",
        "new_cursor",
        "covered_through_turn",
        "summary_chars",
        "latency_ms",
    }


def test_a_replay_has_the_mode_of_a_room(
    transcript: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory search a room with the mode rolling folds, and so does its replay, which says so."""
    monkeypatch.setenv("ROOMTONE_COMPACTION__MODE", "rolling")
    monkeypatch.setenv("ROOMTONE_RECALL__ENABLED", "false")
    assert run_command_line(["replay", str(transcript)]) == 0
    out = capsys.readouterr().out
    assert "120 turns, cursor 60" in out
    assert "needs memory search" in out


@pytest.mark.covers("2.6")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "variables", "coverage", "note"),
    [
        ("summary", {}, {"summarised": [[0, 59]], "evicted": []}, None),
        # Without room even for the newest turns, the summary is left out before them.
        ("summary", {"MAX_CONTEXT_TOKENS": "2900"}, {"summarised": []}, "searchable via memory_search"),
        ("rolling", {"MAX_CONTEXT_TOKENS": "2900"}, {"summarised": []}, "searchable via memory_search"),
        ("rolling", {"MAX_CONTEXT_TOKENS": "2900", "EVICTION_NOTE": "false"}, {"evicted": []}, None),
        # One eviction, close to the end, after which nine turns are left.
        ("rolling", {"MAX_CONTEXT_TOKENS": "5300", "TARGET_UTILIZATION": "0.1", "MIN_KEEP_MESSAGES": "9"}, {}, "1.. m"),
        ("rolling", {"MAX_CONTEXT_TOKENS": "2900", "ENABLED": "false"}, {"verbatim": [[0, 119]]}, None),
        ("off", {}, {"verbatim": [[70, 119]], "summarised": []}, None),
        ("off", {"MAX_CONTEXT_TOKENS": "1700"}, {"summarised": []}, "searchable via memory_search"),
    ],
)
def test_a_replay_has_the_budget_of_a_room(
    transcript: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    variables: dict[str, str],
    coverage: dict[str, object],
    note: str | None,
) -> None:
    """In each mode the settings of the budget decide what is sent, and whether and how a note tells of the rest."""
    for name, value in variables.items():
        monkeypatch.setenv(f"ROOMTONE_BUDGET__{name}", value)
    report = transcript.with_name("report.json")
    assert run_command_line(["replay", str(transcript), "--mode", mode, "--report", str(report)]) == 0
    told = json.loads(report.read_text("utf-8"))
    assert coverage.items() <= told["coverage"].items()
    notes = [part["content"] for part in told["payload"] if part["kind"] == "eviction_note"]
    assert (note is None) is (notes == [])
    assert all(re.search(note, each) for each in notes if note is not None)


@pytest.mark.covers("4.6", "4.8")
def test_a_replay_condenses_and_counts_as_a_room_does(transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `summarize_on_truncate` sentences of the turns without room stand beside the note, and `token_estimator`
    counts the tokens.
    """
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.save("words.json")
    monkeypatch.setenv("ROOMTONE_BUDGET__MAX_CONTEXT_TOKENS", "2900")
    parts: list[dict[str, object]] = []
    for name, value in (("SUMMARIZE_ON_TRUNCATE", "true"), ("TOKEN_ESTIMATOR", "words.json")):
        monkeypatch.setenv(f"ROOMTONE_BUDGET__{name}", value)
        assert run_command_line(["replay", str(transcript), "--report", "report.json"]) == 0
        parts += json.loads(transcript.with_name("report.json").read_text("utf-8"))["payload"]
    assert any(str(each["content"]).count("Of what is left out below: Ada: ") for each in parts)
    guessed, counted = (each for each in parts if each["kind"] == "current")
    assert counted["content"] == guessed["content"]
    # Time, name, and `I put parcel 119 into shed 0.`; a message costs six more.
    assert (counted["tokens"], guessed["tokens"]) == (9 + 6, 28)


def test_corrupt_lines_are_told_with_their_numbers(transcript: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid line ends with exit status 1 and a sentence with its number, without a traceback."""
    with transcript.open("a", encoding="utf-8") as file:
        file.write('{"speaker": "Ada"\n')
        file.write("[" * 100_000 + "\n")
    assert run_command_line(["replay", str(transcript)]) == 1
    captured = capsys.readouterr()
    assert "talk.jsonl line 121: this is not JSON" in captured.err
    assert "talk.jsonl line 122: this is not JSON" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:1/v1"])
def test_a_model_is_needed_for_its_summaries(
    transcript: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """If a model is to summarise but none is configured, or it does not answer, the error names the setting."""
    monkeypatch.setenv("ROOMTONE_LLM__BASE_URL", address)
    monkeypatch.setenv("ROOMTONE_LLM__MODEL", "none")
    assert run_command_line(["replay", str(transcript), "--summariser", "llm"]) == 1
    assert "llm.base_url" in capsys.readouterr().err
