"""`roomtone run` without a token, and what it says to whoever has just started it."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.cli.app import run_command_line
from bot.cli.rehearse import RehearsalOptions
from bot.cli.run import WITHOUT_DISCORD, kept_settings, wanted_shards
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.shards import ONLY_SHARD, Shards
from bot.store.database import open_database
from bot.wiring.process import open_stores
from bot.wiring.settings import BotSettings
from compaction.errors import StoreError
from config.load import load
from tests.fakes.clock import FakeClock
from tests.patience import patiently

WELL_FORMED = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.mark.usefixtures("in_tmp_path")
def test_without_a_token_it_plays_and_keeps_the_rehearsal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trial is apart from what the bot will remember of real evenings, and a missing memory names it."""
    monkeypatch.setenv("DISCORD_TOKEN", "")
    played: list[RehearsalOptions] = []

    def play(options: RehearsalOptions) -> bool:
        played.append(options)
        assert options.keep is not None
        options.keep.mkdir(parents=True)
        return True

    monkeypatch.setattr("bot.cli.rehearse.rehearse", play)
    assert run_command_line(["run"]) == 0
    assert WITHOUT_DISCORD in capsys.readouterr().out
    assert [str(each.keep) for each in played] == ["data/trial"]
    assert run_command_line(["memory", "list"]) == 1
    assert "The trial in data/trial has one: `roomtone --config data/trial`" in capsys.readouterr().err


@pytest.mark.usefixtures("in_tmp_path")
@pytest.mark.slow
@pytest.mark.parametrize("root", [False, True])
def test_a_start_as_root_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, root: bool
) -> None:
    """A bot that runs as root says so in the log and on the terminal, with the remedy."""

    def no_bot(*_: object, **__: object) -> None:
        raise SetupError("This test starts no bot.")

    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DISCORD_TOKEN", WELL_FORMED)
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr("bot.app.running_bot", no_bot)
    assert run_command_line(["run"]) == 1
    captured = capsys.readouterr()
    assert "This test starts no bot." in captured.err
    for told in (captured.out + captured.err, log_path(tmp_path / "data").read_text("utf-8")):
        assert ("started_as_root" in told) is root
        assert ("Run it as a user of its own" in " ".join(told.split())) is root


@pytest.fixture
def with_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A token and a data folder for `roomtone run`. Returns where its log is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DISCORD_TOKEN", WELL_FORMED)
    return log_path(tmp_path / "data")


@pytest.mark.slow
def test_a_stop_during_the_start_ends_it(
    with_a_token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the bot waits for then is given up, and what it has opened is closed in order."""
    closed: list[bool] = []

    @asynccontextmanager
    async def slow_bot(*_: object, **__: object) -> AsyncIterator[None]:
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        try:
            await patiently(asyncio.Future())
            yield
        finally:
            closed.append(True)

    monkeypatch.setattr("bot.app.running_bot", slow_bot)
    assert run_command_line(["run"]) == 0
    assert closed == [True]
    assert capsys.readouterr().out.endswith("Stopped before everything was loaded.\n")
    assert "stop_timed_out" not in with_a_token.read_text("utf-8")


@pytest.mark.slow
def test_a_defect_that_ends_the_bot_is_in_the_log(
    with_a_token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has where it happened, without the message of the error, which may quote somebody."""
    # A traceback has the lines of the code.
    said = "what Ada said"

    def broken_bot(*_: object, **__: object) -> None:
        raise KeyError(said)

    monkeypatch.setattr("bot.app.running_bot", broken_bot)
    assert run_command_line(["run"]) == 1
    assert "Something in Roomtone broke (KeyError)" in " ".join(capsys.readouterr().err.split())
    log = with_a_token.read_text("utf-8")
    assert '"event": "process_failed"' in log
    assert "broken_bot" in log
    assert said not in log


def test_what_cannot_connect_is_refused_before_anything_is_loaded(
    with_a_token: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loading the speech models takes a while, and a token of a wrong form would be refused only after it."""
    monkeypatch.setenv("DISCORD_TOKEN", "198622483471925248")
    assert run_command_line(["run"]) == 1
    captured = capsys.readouterr()
    assert "the application's id" in " ".join(captured.err.split())
    assert "Starting" not in captured.out
    assert not with_a_token.exists()


@pytest.mark.usefixtures("in_tmp_path")
def test_the_shards_are_an_option_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option wins over the environment, and that over `.env`. Without any, the process serves every server; `auto`
    leaves the number to Discord. A mistake is a sentence.
    """
    monkeypatch.delenv("ROOMTONE_SHARDS", raising=False)
    (tmp_path / "roomtone.toml").touch()
    assert wanted_shards(None) == ONLY_SHARD
    (tmp_path / ".env").write_text("ROOMTONE_SHARDS=2/4\n", "utf-8")
    assert wanted_shards(None) == Shards((2,), 4)
    assert load(directory=tmp_path, environ={}), "it is no unknown setting"
    monkeypatch.setenv("ROOMTONE_SHARDS", "1/4")
    assert wanted_shards(None) == Shards((1,), 4)
    assert wanted_shards("0-7/16") == Shards(tuple(range(8)), 16)
    assert wanted_shards("auto") is None
    with pytest.raises(SetupError, match="no shards"):
        wanted_shards("many")


async def test_the_embedded_database_serves_all_shards_or_none(tmp_path: Path) -> None:
    """A file cannot be shared with another machine; all shards in one process are fine."""
    async with open_database(tmp_path / "roomtone.db") as database:
        with pytest.raises(StoreError, match="PostgreSQL"):
            async with database.held_by_bot(Shards((0,), 4)):
                pass
        async with database.held_by_bot(Shards((0, 1), 2)):
            pass


@pytest.mark.postgres
async def test_bots_that_ray_keeps_on_one_machine_have_one_key(tmp_path: Path, postgres_place: SecretStr) -> None:
    """Each has a data folder of its own, but who was forgotten is named by the key of the machine."""
    settings = load(directory=tmp_path, environ={"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()})
    kept = [BotSettings.from_schema(kept_settings(settings, Shards((shard,), 2), shard)) for shard in (0, 1)]
    assert kept[0].storage.data_dir != kept[1].storage.data_dir
    for each in kept:
        async with AsyncExitStack() as stack:
            await open_stores(stack, each, FakeClock())
