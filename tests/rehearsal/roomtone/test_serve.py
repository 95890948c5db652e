"""What `roomtone rehearse --serve` prints for other clients."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.cli.app import run_command_line
from config.load import load
from rehearsal.discord.server import LocalDiscord
from rehearsal.roomtone import serve
from rehearsal.roomtone.serve import own_bot
from rehearsal.runner.local_environment import TOKEN
from rehearsal.runner.ports import BotSetup
from rehearsal.runner.record import BotCrashed, ObservationCallback


async def test_a_bot_of_ones_own_gets_its_settings(local: LocalDiscord, tmp_path: Path) -> None:
    """Without a bot, the command is printed that starts one here, whose variables are settings and a standard."""
    *variables, python, _, program, command = shlex.split(own_bot(local)[1])
    assert (python, program, command) == (sys.executable, "bot", "run")
    environ = dict(variable.split("=", 1) for variable in variables)
    settings = load(directory=tmp_path, environ=environ).discord
    assert settings.token is not None
    assert settings.token.get_secret_value() == TOKEN
    assert settings.api_base == local.api_base
    trusted = await asyncio.to_thread(Path(environ["SSL_CERT_FILE"]).read_bytes)
    assert local.certificate_path.read_bytes() in trusted


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


@pytest.mark.parametrize("named", [True, False])
def test_a_bot_that_ends_by_itself_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, *, named: bool
) -> None:
    """The command fails then. Until then the chosen network shares were in effect, and the bot had a data folder of its
    own that is deleted at the end, unless one is named.
    """
    networks: list[dict[str, float]] = []
    used: list[str] = []

    class Seen(LocalDiscord):
        async def __aexit__(self, *told: object) -> None:
            networks.append(dict(self.network.as_dict()))
            await super().__aexit__(*told)

    class Noting(_Crashing):
        def __init__(self, overrides: Mapping[str, object], **_options: object) -> None:
            super().__init__(overrides)
            used.append(str(overrides["storage.data_dir"]))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "operators"))
    monkeypatch.setattr(serve, "InProcessBot", Noting)
    monkeypatch.setattr(serve, "LocalDiscord", Seen)
    folder = ["--set", f"storage.data_dir={tmp_path / 'named'}"] if named else []
    assert run_command_line(["rehearse", "--serve", "--loss", "0.25", *folder]) == 1
    assert networks[0]["loss"] == 0.25
    assert used[0].startswith(str(tmp_path / ("named" if named else "roomtone-serve-")))
    assert [path.name for path in tmp_path.iterdir()] == (["named"] if named else [])
    shown = capsys.readouterr()
    assert "A local Discord is up" in shown.out
    assert used[0] in shown.out
    assert "The bot ended: the disk is full" in shown.err
