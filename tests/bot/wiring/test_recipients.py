"""Who the notice names as recipients, for each kind of settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.wiring.recipients import recipients, remote_database_hosts
from bot.wiring.settings import BotSettings
from config.load import load

LLM = {"llm.api_key": "k"}
TOOLS = {"guilds": [1], "roles": ["everyone"], "tools": {"read_file": "never ask"}}
WORDS, DATABASE = "the text of what you say", "postgresql://roomtone:secret@"
STORES = "It stores it in my database."


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, []),
        (LLM, [f"api.openai.com gets {WORDS}. It writes my answers (gpt-4.1-mini)."]),
        ({"llm.base_url": "http://127.0.0.1:11434/v1"}, []),
        ({"llm.base_url": "http://localhost:11434/v1"}, []),
        (
            {"llm.base_url": "http://192.168.1.4:11434/v1", "llm.model": "llama"},
            [f"192.168.1.4 gets {WORDS}. It writes my answers (llama)."],
        ),
        (
            {**LLM, "llm.fallback_models": [{"model": "small", "base_url": "https://llm.example.org/v1"}]},
            ["api.openai.com", "writes my answers (small)"],
        ),
        (
            {"asr.base_url": "https://asr.example.org/v1"},
            ["asr.example.org gets the sound of your voices. It turns speech into text (whisper-1)"],
        ),
        ({"asr.base_url": "https://api.openai.com/v1"}, ["api.openai.com gets the sound of your voices."]),
        (
            {"realtime.model": "gpt-realtime", "realtime.api_key": "k"},
            ["api.openai.com gets the sound of your voices. It talks", WORDS],
        ),
        (
            {"speaking.base_url": "https://voice.example.org/v1"},
            ["voice.example.org gets the text of my answers. It says my answers aloud (gpt-4o-mini-tts)"],
        ),
        (
            {**LLM, "speaking.moderation": "endpoint"},
            ["writes my answers", "api.openai.com gets the text of my answers. It checks"],
        ),
        (
            {**LLM, "speaking.moderation": "endpoint", "realtime.model": "gpt-realtime", "realtime.api_key": "k"},
            ["writes my answers", "api.openai.com gets the text of my answers. It checks"],
        ),
        (
            {**LLM, "screen.model": "gpt-4.1", "screen.base_url": "https://eyes.example.org/v1"},
            [
                "writes my answers",
                "eyes.example.org gets pictures of shared screens, and questions about them.",
            ],
        ),
        (
            {"llm.base_url": "https://llm.example.org/v1", "screen.model": "eyes-1"},
            [
                "writes my answers",
                "llm.example.org gets pictures of shared screens, and questions about them.",
            ],
        ),
        ({"screen.model": "gpt-4.1", "screen.base_url": "https://x.org/v1", "screen.enabled": False}, []),
        ({"recall.base_url": "https://find.example.org/v1"}, [f"find.example.org gets {WORDS}."]),
        (
            {"discord.guilds": [1], "mcp.servers": [{"name": "wiki", "url": "https://mcp.example.org/mcp", **TOOLS}]},
            ["mcp.example.org gets the questions that I send to my tools. It answers them (wiki)."],
        ),
        ({"discord.guilds": [1], "mcp.servers": [{"name": "wiki", "url": "https://mcp.example.org/mcp"}]}, []),
        ({"discord.guilds": [1], "mcp.servers": [{"name": "notes", "command": "notes-server", **TOOLS}]}, []),
        ({"storage.database_url": f"{DATABASE}db.example.org:5432/rooms"}, [f"db.example.org gets {WORDS}. {STORES}"]),
        ({"storage.database_url": f"{DATABASE}127.0.0.1/rooms"}, []),
        ({"storage.database_url": f"{DATABASE}/rooms?host=/var/run/postgresql"}, []),
        (
            {"storage.database_url": f"{DATABASE}localhost,db2.example.org/rooms"},
            [f"db2.example.org gets {WORDS}. {STORES}"],
        ),
    ],
)
def test_every_endpoint_on_another_machine_is_named(
    given: dict[str, object], named: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each service on another machine is named with what it gets; services on this machine are not."""
    monkeypatch.delenv("PGHOST", raising=False)
    monkeypatch.delenv("PGHOSTADDR", raising=False)
    settings = load(directory=tmp_path, environ={}, overrides=given)
    parts = BotSettings.from_schema(settings)
    found = [each.text for each in recipients(parts)]
    assert len(found) == len(named)
    assert all(part in text for part, text in zip(named, found, strict=True))


@pytest.mark.parametrize("name", ["PGHOST", "PGHOSTADDR"])
def test_the_database_that_the_environment_names_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL without a host leads where libpq's own variables say."""
    monkeypatch.setenv(name, "10.0.0.7")
    settings = load(directory=tmp_path, environ={}, overrides={"storage.database_url": f"{DATABASE}/rooms"})
    parts = BotSettings.from_schema(settings)
    assert [each.text for each in recipients(parts)] == [f"10.0.0.7 gets {WORDS}. {STORES}"]
    assert remote_database_hosts(parts) == ("10.0.0.7",)
