"""`roomtone setup`: each answer is tried, nothing is written before all of them work, and other lines stay."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner, Result

from bot.cli import setup
from bot.discord.connection import KnownBot
from bot.errors import SetupError
from bot.llm.port import ChatModelError
from bot.llm.settings import LlmSettings
from bot.settings import DiscordSettings
from config.load import load
from config.schema import Settings
from tests.fakes.voices import SilentVoice
from voice.errors import SynthesisError
from voice.speaking.port import Synthesizer

TOKEN = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
OTHER_TOKEN = TOKEN.replace("Cl2FMQ", "Cl2FMX")
KEY = "sk-3141592653"
ADDRESS = "http://127.0.0.1:9/v1"

app = typer.Typer()
app.command()(setup.command)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with empty settings. Discord, the model and the voice answer; the tokens with an X do not work."""

    async def known_bot(settings: DiscordSettings) -> KnownBot:
        assert settings.token is not None
        if "X." in settings.token.get_secret_value():
            raise SetupError("Discord refused the bot's token. Copy it again.")
        return KnownBot("Roomtone#1001", 77)

    async def served(settings: LlmSettings) -> tuple[str, ...]:
        if settings.api_key is not None and "X" in settings.api_key.get_secret_value():
            raise ChatModelError("The language model refused the key. Check llm.api_key.", retryable=False)
        return ("gpt-4.1-mini", "llama3.2:latest", "claude-haiku-4-5-20251001", "new", "x", "mute")

    async def tried(settings: LlmSettings) -> None:
        if settings.model == "mute":
            raise ChatModelError(
                "The language model mute gave an empty answer. Choose another llm.model.", retryable=True
            )

    @asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[Synthesizer]:
        yield SilentVoice()

    def broken(*_: object) -> NoReturn:
        raise SynthesisError("The service that speaks does not answer. Check speaking.base_url.")

    for name in [each for each in os.environ if each.startswith(("ROOMTONE_", "DISCORD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("bot.discord.connection.known_bot", known_bot)
    monkeypatch.setattr("bot.llm.factory.list_served_models", served)
    monkeypatch.setattr("bot.llm.factory.try_model", tried)
    monkeypatch.setattr("bot.cli.setup.open_voice", opened)
    monkeypatch.setattr("bot.wiring.speech_models.endpoint_voice", broken)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    return tmp_path


def answered(monkeypatch: pytest.MonkeyPatch, *lines: str, flags: tuple[str, ...] = ()) -> Result:
    """Run the command at a terminal where somebody types these lines."""
    monkeypatch.setattr("bot.cli.setup.can_ask", lambda: True)
    return CliRunner().invoke(app, list(flags), input="".join(f"{line}\n" for line in lines))


def written(place: Path) -> Settings:
    """Return the settings of the files alone."""
    return load(directory=place, environ={})


def token_in(place: Path) -> str:
    found = written(place).discord.token
    return "" if found is None else found.get_secret_value()


def test_each_answer_is_tried_and_asked_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are not shown. Both files are for their owner alone, and the link has the bot's own application."""
    answers = ("abc", OTHER_TOKEN, f" '{TOKEN}' ", "gpt", "x", "", "openai", "keyX", "openai", KEY, ADDRESS, "", "", "")
    done = answered(monkeypatch, *answers, "own", "watch.example.org", "https://watch.example.org")
    assert done.exit_code == 0, done.output
    assert "three parts joined by dots" in done.output
    assert "Discord refused the bot's token" in done.output
    assert "begins with http" in done.output
    assert "refused the key" in done.output
    assert "Check the address of the voice." in done.output
    assert "The address of the pages must be" in done.output
    assert not [name for name in ("llm.", "speaking.", "DISCORD_", "OPENAI_") if name in done.output]
    assert done.output.splitlines()[-1].endswith("run")
    assert "client_id=77" in done.output
    for secret in (TOKEN, OTHER_TOKEN, KEY):
        assert secret not in done.output
    now = written(place)
    assert token_in(place) == TOKEN
    assert now.llm.api_key is not None
    assert now.web.public_url == "https://watch.example.org"
    assert (now.llm.api_key.get_secret_value(), now.llm.base_url, now.speaking.by_endpoint) == (KEY, "", False)
    assert (place / ".env").stat().st_mode & 0o777 == 0o600


def test_enter_keeps_what_is_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried all the same, and nothing is written."""
    env = f"# Mine.\nDISCORD_TOKEN={TOKEN}\nROOMTONE_LLM__BASE_URL={ADDRESS}\n"
    (place / ".env").write_text(env, "utf-8")
    done = answered(monkeypatch, "", "", "", "")
    assert done.exit_code == 0, done.output
    assert "Roomtone#1001" in done.output
    assert (place / ".env").read_text("utf-8") == env
    assert (place / "roomtone.toml").read_text("utf-8") == ""


@pytest.mark.parametrize("says", ["n", "y", "--yes"])
def test_no_line_changes_unasked(place: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    """The lines that would change are named. All others stay, and so does a setting's own place."""
    env = f"# Mine.\nDISCORD_TOKEN={OTHER_TOKEN}\nROOMTONE_LLM__MODEL=old\nPUBLIC_URL=https://a.example\n"
    (place / ".env").write_text(env, "utf-8")
    flags = ("--token", TOKEN, "--model", ADDRESS, "--model-name", "new", "--voice", "own")
    done = answered(monkeypatch, "", "", says, flags=(*flags, *([says] if says == "--yes" else [])))
    after = env if says == "n" else env.replace(OTHER_TOKEN, TOKEN).replace("=old", "=new")
    assert (place / ".env").read_text("utf-8") == after
    assert (done.exit_code == 0) is (says != "n"), done.output
    assert ("ROOMTONE_LLM__MODEL" in done.output) is (says != "--yes")
    assert (written(place).llm.base_url == ADDRESS) is (says != "n")
    assert OTHER_TOKEN not in done.output


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "--token, --model"),
        (("--token", TOKEN), "--model"),
        (("--token", TOKEN, "--model", "anthropic"), "--key"),
        (("--token", "abc", "--model", "none"), "three parts"),
        (("--token", OTHER_TOKEN, "--model", "none"), "refused the bot's token"),
        (("--token", TOKEN, "--model", "gpt"), "The address of the model is not usable"),
        (("--token", TOKEN, "--model", ADDRESS), "--model-name"),
        (("--token", TOKEN, "--model", "openai", "--key", "keyX"), "refused the key"),
        (("--token", TOKEN, "--model", "none", "--voice", ADDRESS), "the address of the voice"),
        (("--token", TOKEN, "--model", ADDRESS, "--model-name", "gpt"), "Set the name of the model to one of: gpt-4.1"),
        (("--token", TOKEN, "--model", ADDRESS, "--model-name", "mute"), "Choose another model"),
    ],
)
def test_without_a_terminal_nothing_is_asked(place: Path, flags: tuple[str, ...], told: str) -> None:
    """What is missing or does not work is told in a sentence, and nothing is written."""
    done = CliRunner().invoke(app, list(flags))
    assert isinstance(done.exception, SetupError)
    assert told in str(done.exception)
    assert not (place / ".env").exists()
    assert (place / "roomtone.toml").read_text("utf-8") == ""


def test_what_the_shell_sets_too_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes before the files, so what was written would have no effect."""
    monkeypatch.setenv("ROOMTONE_LLM__MODEL", "another")
    done = CliRunner().invoke(app, ["--token", TOKEN, "--model", "ollama"])
    assert isinstance(done.exception, SetupError)
    assert "ROOMTONE_LLM__MODEL" in str(done.exception)
    now = written(place)
    assert (now.llm.model, now.budget.max_context_tokens) == ("llama3.2", 4_096)


@pytest.mark.parametrize(("model", "goes"), [("openai", True), (ADDRESS, False)])
def test_a_shells_key_goes_to_openai_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch, model: str, goes: bool
) -> None:
    """Many shells have it for other programs. Another address gets it with `--key`."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    flags = ("--token", TOKEN, "--model", model, "--model-name", "new", "--voice", "own")
    done = CliRunner().invoke(app, list(flags))
    assert done.exit_code == 0, done.output
    assert (KEY in (place / ".env").read_text("utf-8")) is goes


@pytest.mark.parametrize("env", ["", f"OPENAI_API_KEY={KEY}\n", f"OPENAI_API_KEY={KEY}\nROOMTONE_LLM__API_KEY={KEY}\n"])
@pytest.mark.parametrize("key", ["", f'api_key = "{KEY}"\n'])
def test_none_clears_the_old_model(place: Path, monkeypatch: pytest.MonkeyPatch, env: str, key: str) -> None:
    """Its address, key, name and stand-ins, so that nothing of it comes back with another one."""
    (place / ".env").write_text(f"DISCORD_TOKEN={TOKEN}\n{env}", "utf-8")
    toml = f'[llm]\nbase_url = "{ADDRESS}"\nmodel = "old"\nfallback_models = [{{ model = "other" }}]\n{key}'
    (place / "roomtone.toml").write_text(toml, "utf-8")
    done = answered(monkeypatch, "", flags=("--model", "none", "--voice", "own", "--token", TOKEN, "--yes"))
    assert done.exit_code == 0, done.output
    assert "OPENAI_" not in done.output
    llm = written(place).llm
    assert (llm.configured, llm.model, llm.fallback_models) == (False, "gpt-4.1-mini", ())
    assert "old" not in (place / "roomtone.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("called", "typed"),
    [(".venv/bin/roomtone", ".venv/bin/roomtone run"), ("/a/bot/__main__.py", f"{sys.executable} -m bot run")],
)
def test_the_last_line_can_be_typed(called: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the program that runs, with the same settings."""
    monkeypatch.setattr("sys.argv", [called])
    monkeypatch.delenv("ROOMTONE_CONFIG", raising=False)
    assert setup.as_typed("run") == typed
    monkeypatch.setenv("ROOMTONE_CONFIG", "/my bot")
    assert setup.as_typed("run") == typed.removesuffix("run") + "--config '/my bot' run"
