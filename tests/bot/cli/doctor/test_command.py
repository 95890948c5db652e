"""`roomtone doctor` reports all findings at once, for people and programs, and its exit status says whether the bot can
run.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from bot.cli.doctor.command import command
from bot.cli.doctor.finding import Finding, Status
from bot.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

app = typer.Typer()
app.command()(command)


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory and an environment without settings."""
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
        "python",
        "packages",
        "settings",
        "libopus",
        "recogniser",
        "listening",
        "cuda",
        "voice",
        "memory search",
        "memory mode",
        "discord",
        "language model",
        "screens",
        "data",
        "user",
        "database",
        "network",
        "web port",
        "receive buffer",
        "rehearsal",
    }
    assert all(set(each) == {"name", "status", "detail", "remedy"} for each in told["findings"])
    assert all(each["remedy"] for each in told["findings"] if each["status"] != "ok")


def test_mistaken_settings_are_findings_too(tmp_path: Path) -> None:
    """All mistakes in the settings are reported, and the other checks still run."""
    (tmp_path / "roomtone.toml").write_text("[asr]\ncpu_threads = -1\n[lmm]\n")
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 1
    assert "missing  settings        asr.cpu_threads in roomtone.toml line 2 must be at" in result.stdout
    assert "Did you mean [llm]?" in " ".join(result.stdout.split())
    assert "python" in result.stdout


def test_mistaken_settings_send_nobody_for_a_token_that_is_set(tmp_path: Path) -> None:
    """While the settings cannot be read, the doctor does not claim that there is no token and no language model."""
    (tmp_path / ".env").write_text("DISCORD_TOKEN=MTIz.local.rehearsal\nOPENAI_API_KEY=sk-1\n")
    (tmp_path / "roomtone.toml").write_text("[asr]\nlangage = 'de'\n")
    findings = {each["name"]: each for each in json.loads(CliRunner().invoke(app, ["--json"]).stdout)["findings"]}
    for name in ("discord", "language model"):
        assert findings[name]["status"] == "warning"
        assert findings[name]["detail"].startswith("not checked")
        assert findings[name]["remedy"] == "Correct the settings, and run `roomtone doctor` again."


@pytest.mark.parametrize("damaged", [False, True])
def test_mistaken_settings_send_nobody_for_models_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    """While the settings cannot be read, the doctor looks into the folders that they name, or that are theirs."""
    named = tmp_path / "named"
    (named / "data").mkdir(parents=True)
    (named / "data" / "roomtone.db").write_bytes(b"no database")
    (named / "roomtone.toml").write_text("[asr" if damaged else "[asr]\nlangage = 'de'\n[models]\ndirectory = 'mine'\n")
    monkeypatch.setenv("ROOMTONE_CONFIG", str(named))
    findings = findings_now()
    assert str(named / "data") in findings["data"]["detail"]
    assert "but for folders and database" in findings["settings"]["remedy"]
    assert findings["database"]["detail"] == f"{named / 'data' / 'roomtone.db'} is not a database"
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "other"))
    assert str(tmp_path / "other") in findings_now()["data"]["detail"]
    folder = named / ("data/models" if damaged else "mine")
    whisper = folder / "whisper-base"
    whisper.mkdir(parents=True)
    (whisper / "model.bin").write_bytes(b"weights")
    assert findings_now()["recogniser"]["detail"].startswith("model.bin of whisper-base is not the file")


def test_an_unreachable_language_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language model that does not answer is reported as missing, with its address and a remedy."""
    monkeypatch.setenv("ROOMTONE_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    result = CliRunner().invoke(app, ["--json"])
    (finding,) = [each for each in json.loads(result.stdout)["findings"] if each["name"] == "language model"]
    assert finding["status"] == "missing"
    assert "http://127.0.0.1:9/v1" in finding["detail"]
    assert finding["remedy"]


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


def test_a_near_miss_is_a_finding(tmp_path: Path) -> None:
    """A misspelt name in `.env` is noted, with the name that was meant."""
    (tmp_path / ".env").write_text("DISCORD_TOCKEN=x\n")
    told = " ".join(CliRunner().invoke(app, []).stdout.split())
    assert "note settings DISCORD_TOCKEN in .env is not read -> Did you mean DISCORD_TOKEN?" in told


def test_a_record_that_nobody_could_write_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a folder that does not exist is refused before the bot joins the channel."""
    joined: list[int] = []

    async def probe(_: object, channel_id: int, **__: object) -> None:
        joined.append(channel_id)
        raise SetupError("This test joins no channel.")

    monkeypatch.setattr("bot.discord.live_probe.probe_channel", probe)
    result = CliRunner().invoke(app, ["--live", "600", "--file", "nowhere/record.json"])
    assert result.exit_code == 2
    assert "there is no folder nowhere" in " ".join(result.output.replace("│", " ").split())
    assert joined == []
