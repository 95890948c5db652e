"""`roomtone doctor` reports all findings at once, for people and programs, and its exit status says whether the bot can
run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bot.cli.doctor.command import command
from bot.cli.doctor.finding import Finding, Status

app = typer.Typer()
app.command()(command)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory and an environment without settings, and without the voice, which takes a second."""
    monkeypatch.setitem(sys.modules, "hibari", None)
    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def findings_now() -> dict[str, dict[str, str]]:
    """Return the findings by name."""
    return {each["name"]: each for each in json.loads(CliRunner().invoke(app, ["--json"]).stdout)["findings"]}


def test_missing_models_are_told_with_the_command_that_brings_them() -> None:
    """On an empty machine the models are missing: the exit status is 1, and each remedy is there once."""
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "missing  recogniser" in result.stdout
    assert result.stdout.count("-> Run `roomtone models pull`.") == 1
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []
    assert "note     discord" in result.stdout
    assert result.stdout.rstrip().endswith("to fix.")
    assert "\x1b" not in result.stdout


def test_what_can_run_exits_with_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """With warnings only, the exit status is 0 and the verdict counts them."""
    findings = [Finding("python", Status.OK, "fine"), Finding("discord", Status.WARNING, "no token", "Take one.")]
    monkeypatch.setattr("bot.cli.doctor.command.run_checks", lambda: findings)
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("Roomtone can run here; 1 to note.")
    monkeypatch.setattr("bot.cli.doctor.command.run_checks", lambda: findings[:1])
    assert CliRunner().invoke(app, []).stdout.rstrip().endswith("Roomtone can run here.")


def test_json_holds_every_finding() -> None:
    """The JSON output has the verdict and every finding with four fields."""
    result = CliRunner().invoke(app, ["--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["can_run"] is False
    assert {each["name"] for each in told["findings"]} == {
        "settings",
        "libopus",
        "recogniser",
        "listening",
        "cuda",
        "voice",
        "memory search",
        "memory mode",
        "limits",
        "discord",
        "language model",
        "screens",
        "keys",
        "data",
        "database",
        "web port",
    }
    assert all(set(each) == {"name", "status", "detail", "remedy"} for each in told["findings"])
    assert all(each["remedy"] for each in told["findings"] if each["status"] != "ok")


def test_mistaken_settings_are_the_findings(tmp_path: Path) -> None:
    """All mistakes in the settings are reported. What the defaults would answer wrongly is not checked."""
    (tmp_path / ".env").write_text("DISCORD_TOKEN=MTIz.local.rehearsal\n")
    (tmp_path / "roomtone.toml").write_text("[web]\nport = -1\n[lmm]\n")
    found = json.loads(CliRunner().invoke(app, ["--json"]).stdout)
    assert [(each["name"], each["status"]) for each in found["findings"]] == [("settings", "missing")] * 2
    assert found["findings"][0]["detail"].startswith("lmm in roomtone.toml is not a setting")


def test_a_file_that_may_not_be_read_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other checks go on."""

    def refuse(*_: object) -> Finding:
        raise PermissionError(13, "Permission denied", "data/models")

    monkeypatch.setattr("bot.cli.doctor.command.check_recogniser", refuse)
    found = findings_now()
    assert found["recogniser"]["detail"] == "data/models cannot be read: Permission denied"
    assert found["database"]["status"] == "ok"


def test_all_services_are_asked_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that hang keep nobody waiting one after the other. The findings stay in the order of the checks."""
    fallbacks = "".join(f"[[llm.fallback_models]]\nmodel = '{name}'\n" for name in "ab")
    servers = "".join(f"[[mcp.servers]]\nname = '{name}'\ncommand = '{name}'\n" for name in ("one", "two"))
    (tmp_path / "roomtone.toml").write_text(
        f"discord.guilds = [1]\n[llm]\nbase_url = 'http://127.0.0.1:9/v1'\n{fallbacks}{servers}"
    )
    asked: list[str] = []

    def check(name: str) -> Callable[..., Awaitable[Finding]]:
        async def asks(service: object, *_: object, **__: object) -> Finding:
            asked.append(name)
            for _turn in range(100):
                await asyncio.sleep(0)
            return Finding(f"{name} {getattr(service, 'name', '')}".rstrip(), Status.OK, f"{len(asked)} asked")

        return asks

    for name in ("discord", "language_model", "mcp_server"):
        monkeypatch.setattr(f"bot.cli.doctor.command.check_{name}", check(name))
    findings = {name: each["detail"] for name, each in findings_now().items() if each["detail"].endswith("asked")}
    assert list(findings) == [
        "discord",
        "language_model",
        "fallback model",
        "mcp_server one",
        "mcp_server two",
    ]
    assert set(findings.values()) == {"6 asked"}
