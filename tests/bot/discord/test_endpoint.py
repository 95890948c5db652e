"""What time it is by Discord's clock."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from bot.discord.endpoint import application_of, discord_time, require_token
from bot.errors import SetupError
from bot.settings import DiscordSettings
from tests.bot.discord.test_client import settings_for

if TYPE_CHECKING:
    from rehearsal.discord.server import LocalDiscord


async def test_discord_tells_the_time_with_every_answer(local: LocalDiscord) -> None:
    """Nobody need be logged in. If it does not answer, that is an error of the system."""
    assert abs(await discord_time(settings_for(local)) - time.time()) < 60
    with pytest.raises(OSError, match="time"):
        await discord_time(DiscordSettings(api_base="http://127.0.0.1:9"))


TOKEN = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.mark.parametrize(
    ("token", "found"),
    [
        (base64.b64encode(b"123456789012345678").decode().rstrip("=") + ".abc.def", 123456789012345678),
        ("1001.local", None),
        ("", None),
        ("bm90IGEgbnVtYmVy.a.b", None),
    ],
)
def test_the_application_is_read_from_the_token(token: str, found: int | None) -> None:
    """The first part of a token is the application's id in base64."""
    assert application_of(token) == found


def test_the_token_is_returned_without_blanks() -> None:
    """A file may end in a line break. A local Discord takes any token."""
    assert require_token(DiscordSettings(token=SecretStr(f" {TOKEN}\n"))) == TOKEN
    assert require_token(DiscordSettings(token=SecretStr("1.local"), api_base="http://127.0.0.1:1/api")) == "1.local"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("198622483471925248", "application's id"),
        ("0123456789abcdef" * 4, "public key"),
        ("aB3_-cD4" * 4, "client secret"),
        (f"Bot {TOKEN}", "word Bot"),
        ("abc.def.ghi", "three parts"),
        (TOKEN.replace(".", "-"), "three parts"),
        ("aGVsbG8gd29ybGQgaGVsbG8gd29y.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "three parts"),
        ("é" * 24 + "." + "é" * 6 + "." + "é" * 24, "three parts"),
        (" ", "no bot token"),
    ],
)
def test_what_is_no_token_is_refused_with_its_likeness(token: str, told: str) -> None:
    """The sentence says what was probably copied, and never what it is."""
    with pytest.raises(SetupError, match=told) as refused:
        require_token(DiscordSettings(token=SecretStr(token)))
    assert not token.strip() or token not in str(refused.value)
    assert "DISCORD_TOKEN" in str(refused.value)
