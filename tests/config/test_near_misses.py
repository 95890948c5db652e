"""A variable that is nearly right is pointed out, without its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.load import load

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "never-to-be-seen-123456789"


def notices(folder: Path, written: str, **environ: str) -> list[str]:
    """Load with this `.env` and return what is pointed out."""
    (folder / ".env").write_text(written, "utf-8")
    told: list[str] = []
    load(directory=folder, environ=environ, notify=told.append)
    assert all(SECRET not in each for each in told)
    return told


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DISCORD_TOCKEN", "DISCORD_TOKEN"),
        ("DISCORD_BOT_TOKEN", "DISCORD_TOKEN"),
        ("discord_token", "DISCORD_TOKEN"),
        ("OPENAI_KEY", "OPENAI_API_KEY"),
        ("OPENAI_API_KEYS", "OPENAI_API_KEY"),
        ("PUBLIC_URI", "PUBLIC_URL"),
        ("ROMTONE_ASR__LANGUAGE", "ROOMTONE_ASR__LANGUAGE"),
    ],
)
def test_a_near_miss_names_what_was_meant(tmp_path: Path, name: str, meant: str) -> None:
    """A mistyped name, and some that other programs use."""
    assert notices(tmp_path, f"{name}={SECRET}\n") == [f"{name} in .env is not read. Did you mean {meant}?"]


def test_a_near_miss_in_the_environment_is_told_too(tmp_path: Path) -> None:
    """Docker passes the lines of `.env` on as variables."""
    (told,) = notices(tmp_path, "", DISCORD_BOT_TOKEN=SECRET)
    assert told == "DISCORD_BOT_TOKEN in the environment is not read. Did you mean DISCORD_TOKEN?"


@pytest.mark.parametrize(
    "written",
    [
        f"DISCORD_BOT_TOKEN={SECRET}\nDISCORD_TOKEN={SECRET}\n",
        "DISCORD_TOCKEN=\n",
        f"DATABASE_URL={SECRET}\nTZ=Europe/Berlin\nDISCORD_GUILD=5\n",
    ],
    ids=["the right one is set too", "empty", "other programs' variables"],
)
def test_nothing_is_told_where_nothing_is_missing(tmp_path: Path, written: str) -> None:
    """Other programs' variables may stand in the same file."""
    assert notices(tmp_path, written) == []


@pytest.mark.parametrize("quotes", ["“”", "„“", "‘’", "``"])
def test_quotes_around_a_value_are_left_out(tmp_path: Path, quotes: str) -> None:
    """A text program makes curly quotes out of straight ones, and no token has any."""
    (told,) = notices(tmp_path, f"DISCORD_TOKEN={quotes[0]}{SECRET}{quotes[1]}\n")
    assert told == "DISCORD_TOKEN in .env has quotes around its value, which are left out. Delete them."
    settings = load(directory=tmp_path, environ={}, notify=lambda _: None)
    assert settings.discord.token is not None
    assert settings.discord.token.get_secret_value() == SECRET


def test_quotes_from_docker_are_left_out(tmp_path: Path) -> None:
    """Docker does not read quotes as a shell does. A list keeps the quotes of its entries."""
    environ = {"DISCORD_TOKEN": f'"{SECRET}"', "ROOMTONE_BRAIN__WAKE_NAMES": '["Ann","Bob"]'}
    told: list[str] = []
    settings = load(directory=tmp_path, environ=environ, notify=told.append)
    assert settings.discord.token is not None
    assert settings.discord.token.get_secret_value() == SECRET
    assert settings.brain.wake_names == ("Ann", "Bob")
    assert len(told) == 1
