"""What `roomtone rehearse --serve` prints for other clients."""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING

import pytest

from bot.cli.rehearsal import serve
from bot.cli.rehearsal.serve import TOKEN, addresses, own_bot, serve_local_discord
from config.load import load
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import RehearsalError
from rehearsal.runner.observations import BotCrashed
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rehearsal.runner.observations import ObservationCallback
    from rehearsal.runner.ports import BotSetup


@pytest.mark.asyncio
async def test_everything_a_client_needs_is_printed() -> None:
    """The output has addresses, certificate, token, channels, members and the document about the control API."""
    async with LocalDiscord() as discord:
        told = "\n".join(addresses(discord))
        for needed in (
            discord.api_base,
            discord.gateway_url,
            f"wss://{discord.voice_endpoint}",
            str(discord.certificate_path),
            discord.control_base,
            TOKEN,
            "600 Evening",
            "601 chat",
            "2001 Ada",
            "docs/rehearsal.md",
        ):
            assert needed in told


@pytest.mark.asyncio
async def test_a_bot_of_ones_own_gets_its_settings(tmp_path: Path) -> None:
    """Without a bot, the lines for `.env` are printed, and they are settings."""
    async with LocalDiscord() as discord:
        (tmp_path / ".env").write_text("\n".join(line.strip() for line in own_bot(discord)[1:]), "utf-8")
        settings = load(directory=tmp_path, environ={}).discord
        assert settings.token is not None
        assert settings.token.get_secret_value() == TOKEN
        assert (settings.api_base, settings.ca_file) == (discord.api_base, str(discord.certificate_path))


class _Crashing:
    """A companion that ends by itself as soon as it has entered the room."""

    def __init__(self, _settings: object, **_options: object) -> None:
        self._report: ObservationCallback | None = None

    async def __aenter__(self) -> _Crashing:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def start(self, _environment: BotSetup, report: ObservationCallback) -> None:
        """Keep the callback for observations."""
        self._report = report

    async def enter(self, _guild: int, _channel: int) -> None:
        """Report a crash."""
        assert self._report is not None
        self._report(BotCrashed("the disk is full"))

    async def stop(self) -> None:
        """Do nothing."""


@pytest.mark.asyncio
async def test_a_bot_that_ends_by_itself_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the bot ends by itself, the command fails. Until then the chosen network shares were in effect."""
    networks: list[dict[str, float]] = []

    class Seen(LocalDiscord):
        async def __aexit__(self, *told: object) -> None:
            networks.append(dict(self.network.as_dict()))
            await super().__aexit__(*told)

    monkeypatch.setattr(serve, "InProcessCompanion", _Crashing)
    monkeypatch.setattr(serve, "LocalDiscord", Seen)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(RehearsalError, match="The bot ended: the disk is full"):
            await serve_local_discord({}, with_bot=True, port=0, network={"loss": 0.25})
    assert networks[0]["loss"] == 0.25
    assert "A local Discord is up" in capsys.readouterr().out


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.asyncio
async def test_it_has_a_data_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The bot and the logs use a folder that is deleted at the end, and not the operator's, unless one is named."""
    used: list[str] = []

    class Noting(_Crashing):
        def __init__(self, overrides: Mapping[str, object], **_options: object) -> None:
            super().__init__(overrides)
            used.append(str(overrides["storage.data_dir"]))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "operators"))
    monkeypatch.setattr(serve, "InProcessCompanion", Noting)
    for overrides in ({}, {"storage.data_dir": str(tmp_path / "named")}):
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(RehearsalError):
                await serve_local_discord(overrides, with_bot=True, port=0)
    assert names_in(tmp_path) == ["named"]
    assert used[0].startswith(str(tmp_path / "roomtone-serve-"))
    assert used[1] == str(tmp_path / "named")
    assert used[0] in capsys.readouterr().out
