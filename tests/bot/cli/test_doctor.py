"""`roomtone doctor` tells everything at once, for people and programs, and its exit status is the verdict."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from bot.cli.checks import Finding, Status
from bot.cli.doctor import command

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command()(command)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory and an environment in which nothing is configured."""
    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_missing_models_are_told_with_the_command_that_brings_them() -> None:
    """On a bare machine the models are what is missing: exit status 1, each with its remedy below it."""
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "missing  recogniser" in result.stdout
    assert "-> Run `roomtone models pull whisper-base`." in result.stdout
    assert "note     discord" in result.stdout
    assert result.stdout.rstrip().endswith("to fix.")
    assert "\x1b" not in result.stdout


def test_what_can_run_exits_with_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes are allowed, and counted in the verdict."""
    findings = [Finding("python", Status.OK, "fine"), Finding("discord", Status.WARNING, "no token", "Take one.")]
    monkeypatch.setattr("bot.cli.doctor.run_checks", lambda: findings)
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("Roomtone can run here; 1 to note.")
    monkeypatch.setattr("bot.cli.doctor.run_checks", lambda: findings[:1])
    assert CliRunner().invoke(app, []).stdout.rstrip().endswith("Roomtone can run here.")


def test_json_holds_every_finding() -> None:
    """One object with the verdict and the findings' four fields."""
    result = CliRunner().invoke(app, ["--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["can_run"] is False
    assert {each["name"] for each in told["findings"]} == {
        "python",
        "packages",
        "settings",
        "libopus",
        "recogniser",
        "listening",
        "cuda",
        "voice",
        "discord",
        "language model",
        "screens",
        "data",
        "database",
        "network",
        "rehearsal",
    }
    assert all(set(each) == {"name", "status", "detail", "remedy"} for each in told["findings"])
    assert all(each["remedy"] for each in told["findings"] if each["status"] != "ok")


def test_mistaken_settings_are_findings_too(tmp_path: Path) -> None:
    """Every mistake in the settings is told, and the other checks are still made."""
    (tmp_path / "roomtone.toml").write_text("[asr]\ncpu_threads = -1\n[lmm]\n")
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "missing  settings        asr.cpu_threads in roomtone.toml line 2 must be at least 0" in result.stdout
    assert "Did you mean [llm]?" in result.stdout
    assert "python" in result.stdout


def test_an_unreachable_language_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is not there is found by asking it."""
    monkeypatch.setenv("ROOMTONE_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    result = CliRunner().invoke(app, ["--json"])
    (finding,) = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "language model"]
    assert finding["status"] == "missing"
    assert "http://127.0.0.1:9/v1" in finding["detail"]
    assert finding["remedy"]
