"""The checks of `roomtone doctor`: each says what was found and what to do, and none of them raises an error."""

from __future__ import annotations

import base64
import errno
import hashlib
import shutil
import sqlite3
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from bot.cli.checks import (
    PULL_ALL,
    Finding,
    Status,
    check_data_dir,
    check_database,
    check_device,
    check_discord,
    check_engine,
    check_language_model,
    check_mcp_server,
    check_opus,
    check_packages,
    check_ports,
    check_python,
    check_receive_buffer,
    check_recogniser,
    check_rehearsal,
    check_turns,
    check_user,
    check_voice,
)
from bot.errors import BotError
from bot.llm.port import ChatModelError
from bot.llm.settings import LlmSettings
from bot.mcp.settings import McpServerSettings
from bot.models import catalogue
from bot.settings import DiscordSettings, StorageSettings
from bot.store.database import open_database
from voice.asr.placement import choose_placement
from voice.asr.settings import AsrSettings
from voice.errors import OpusMissingError
from voice.listening.settings import ListeningSettings

if TYPE_CHECKING:
    import os
    import socket

TOKEN = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


def is_missing(finding: Finding, *, detail: str, remedy: str) -> bool:
    """Return whether a finding has the status "missing" and contains these words."""
    return finding.status is Status.MISSING and detail in finding.detail and remedy in finding.remedy


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 10, 9), "missing"), ((3, 11, 0), "ok"), ((3, 13, 5), "ok"), ((3, 14, 0), "missing"), ((2, 7), "missing")],
)
def test_python(version: tuple[int, ...], status: str) -> None:
    """Python 3.11 to 3.13 passes."""
    finding = check_python(version)
    assert finding.status == status
    assert (finding.remedy == "") == (status == "ok")


def test_packages() -> None:
    """The two pinned packages must have exactly the versions that the transport was written for."""
    assert check_packages().status is Status.OK

    def version_of(name: str) -> str:
        if name == "davey":
            raise PackageNotFoundError(name)
        return "2.8.0"

    finding = check_packages(version_of)
    assert is_missing(finding, detail="discord.py 2.8.0, 2.7.1 is needed; davey is absent", remedy="make clean setup")


def test_root_is_warned_of() -> None:
    """A bot that runs as root gets a warning with the remedy."""
    assert check_user(root=False).status == "ok"
    warned = check_user(root=True)
    assert warned.status == "warning"
    assert "user of its own" in warned.remedy


def test_opus() -> None:
    """The transport's message about a missing libopus is split into detail and remedy."""

    def load() -> None:
        raise OpusMissingError("libopus was not found, so nobody can be heard. Install it (Debian: `apt …`).")

    assert is_missing(check_opus(load), detail="nobody can be heard.", remedy="Install it (Debian")
    assert check_opus(lambda: None).status is Status.OK


def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsrSettings:
    """Replace the catalogue's Whisper base by a model of a few bytes and install it."""
    file = catalogue.ModelFile("model.bin", hashlib.sha256(b"weights").hexdigest())
    entry = replace(catalogue.WHISPER_BASE, files=(file,))
    monkeypatch.setattr("bot.cli.checks.CATALOGUE", (entry,))
    folder = tmp_path / entry.name
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"weights")
    return AsrSettings.model_validate({"model_dir": folder})


def test_recogniser_of_the_catalogue_is_checked_by_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a changed byte fails the check, and the remedy is to pull it again."""
    settings = model(tmp_path, monkeypatch)
    assert check_recogniser(settings).status is Status.OK
    (settings.model_dir / "model.bin").write_bytes(b"weighed")
    finding = check_recogniser(settings)
    assert is_missing(finding, detail="SHA-256 differs", remedy="Run `roomtone models pull`.")


def test_absent_recogniser_names_the_command(tmp_path: Path) -> None:
    """A missing model is reported with the remedy, for the default directory and for the operator's own."""
    settings = AsrSettings.model_validate({"model_dir": tmp_path / "whisper-base"})
    finding = check_recogniser(settings)
    assert is_missing(finding, detail="whisper-base is not here.", remedy="`roomtone models pull`")
    assert "`" not in finding.detail
    settings = AsrSettings.model_validate({"model_dir": tmp_path / "mine"})
    assert is_missing(check_recogniser(settings), detail="no Whisper model in", remedy="set asr.model to")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.bin").touch()
    assert check_recogniser(settings).status is Status.OK


def test_a_recogniser_elsewhere_does_without_the_model_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a recogniser at an endpoint, the local model is only its fallback: if it is absent, the finding is a
    warning.
    """
    elsewhere = {"engine": "endpoint", "base_url": "http://127.0.0.1:9/v1"}
    finding = check_recogniser(AsrSettings.model_validate({"model_dir": tmp_path / "none", **elsewhere}))
    assert finding.status is Status.WARNING
    assert "whisper-1 at http://127.0.0.1:9/v1, with nothing behind it" in finding.detail
    finding = check_recogniser(model(tmp_path, monkeypatch).model_copy(update=elsewhere))
    assert (finding.status, "; behind it " in finding.detail) == (Status.OK, True)


def test_unreadable_model_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model file that cannot be read is reported as unreadable, not as absent."""
    settings = model(tmp_path, monkeypatch)
    weights = settings.model_dir / "model.bin"
    weights.unlink()
    # Reading this file fails for every user, root included.
    weights.symlink_to("/proc/self/mem")
    assert is_missing(check_recogniser(settings), detail="cannot be read: Input/output error", remedy="right")


def test_listening(tmp_path: Path, turn_model: Path, stacking_vad_model: Path) -> None:
    """The two listening models share one finding. Without them the bot still runs, and an unused end-of-turn model is
    not missed.
    """
    finding = check_turns(tmp_path, ListeningSettings())
    assert finding.status is Status.WARNING
    assert finding.detail.startswith("turn-smart is not here; vad-silero is not here: turns end later")
    assert finding.remedy == PULL_ALL
    (tmp_path / "vad-silero").mkdir()
    shutil.copy(stacking_vad_model, tmp_path / "vad-silero")
    assert check_turns(tmp_path, ListeningSettings(turn_model="off")).status is Status.OK
    (tmp_path / "turn-smart").mkdir()
    shutil.copy(turn_model, tmp_path / "turn-smart")
    assert check_turns(tmp_path, ListeningSettings()).status is Status.OK


def test_voice(tmp_path: Path) -> None:
    """A missing engine and a missing voice model are separate warnings; the bot then answers in writing."""
    finding = check_voice(tmp_path, installed=False)
    assert finding.status is Status.WARNING
    assert "in writing" in finding.detail
    assert "piper" in finding.remedy
    finding = check_voice(tmp_path, installed=True)
    assert finding.status is Status.WARNING
    assert finding.detail == "voice-joe is not here: the bot answers in writing"
    assert finding.remedy == PULL_ALL


@pytest.mark.parametrize(
    ("device", "devices", "status", "said"),
    [
        ("auto", 0, Status.OK, "runs on the CPU"),
        ("auto", 1, Status.OK, "1 device; the recogniser runs there"),
        ("cpu", 2, Status.OK, "not used"),
        ("cuda", 0, Status.MISSING, "no CUDA device was found"),
        ("cuda", 1, Status.OK, "the recogniser runs there"),
    ],
)
def test_device(device: str, devices: int, status: Status, said: str) -> None:
    """A missing CUDA device is an error only if the settings ask for CUDA."""
    settings = AsrSettings.model_validate({"device": device})
    finding = check_device(
        settings, cuda_devices=devices, place=lambda: choose_placement(settings, cuda_devices=devices)
    )
    assert finding.status is status
    assert said in finding.detail


def test_a_recogniser_whose_libraries_do_not_load() -> None:
    """A library that does not load is a finding with a remedy, and the other checks continue."""
    finding = check_engine(ImportError("libopus.so.0: file too short"))
    assert finding.status is Status.MISSING
    assert "file too short" in finding.detail
    assert "make clean setup" in finding.remedy


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("é" * 24 + "." + "é" * 6 + "." + "é" * 24, Status.MISSING),
        (None, Status.WARNING),
        ("", Status.WARNING),
        (TOKEN, Status.OK),
        ("198622483471925248", Status.MISSING),
        ("abc.def.ghi", Status.MISSING),
        (TOKEN.replace(".", "-"), Status.MISSING),
        ("not!base64" + TOKEN, Status.MISSING),
        ("aGVsbG8gd29ybGQgaGVsbG8gd29y.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", Status.MISSING),
    ],
)
def test_discord_token(token: str | None, status: Status) -> None:
    """An absent token is a warning, a malformed one is an error, and the token itself is never shown."""
    finding = check_discord(DiscordSettings(token=None if token is None else SecretStr(token)))
    assert finding.status is status
    assert not token or token not in str(finding)


def test_a_local_discord_takes_any_token() -> None:
    """A local Discord accepts any token, because only Discord's own tokens have a fixed form."""
    settings = DiscordSettings(token=SecretStr("anything"), api_base="http://127.0.0.1:1/api")
    assert check_discord(settings).status is Status.OK


@pytest.mark.asyncio
async def test_language_model() -> None:
    """An absent language model is a warning, one that does not answer is an error, and a wrong name is a warning with
    the right names.
    """

    async def serves(_settings: LlmSettings) -> tuple[str, ...]:
        return ("llama3.2", "qwen3")

    async def refuses(_settings: LlmSettings) -> tuple[str, ...]:
        raise ChatModelError("The language model at X refused the key. Check llm.api_key.", retryable=False)

    assert (await check_language_model(LlmSettings(), serves)).status is Status.WARNING
    settings = LlmSettings(base_url="http://127.0.0.1:11434/v1", model="qwen3")
    assert (await check_language_model(settings, serves)).status is Status.OK
    finding = await check_language_model(settings.model_copy(update={"model": "gpt"}), serves)
    assert finding.status is Status.WARNING
    assert finding.remedy == "Set llm.model to one of: llama3.2, qwen3."
    finding = await check_language_model(settings, refuses)
    assert is_missing(finding, detail="refused the key", remedy="Check llm.api_key.")


@pytest.mark.asyncio
async def test_mcp_servers() -> None:
    """An MCP server that is away, lacks a tool or has no allowed tools is a warning, because the bot runs
    without it.
    """

    async def offers(_settings: McpServerSettings) -> tuple[str, ...]:
        return ("read_file", "write_file")

    async def is_away(_settings: McpServerSettings) -> tuple[str, ...]:
        raise BotError("there is no program 'uvx'")

    server = McpServerSettings(name="files", command="uvx", tools=("read_file",))
    assert (await check_mcp_server(server, offers)).detail == "1 tool may be called, 1 of them only on request"
    harmless = server.model_copy(update={"read_only": ("*",)})
    assert (await check_mcp_server(harmless, offers)).status is Status.OK
    for changed, detail, remedy in (
        ({"tools": ()}, "none of its tools may be called", "Name them in `tools`: read_file, write_file."),
        ({"tools": ("rm",)}, "it has no rm", "It offers: read_file, write_file."),
    ):
        finding = await check_mcp_server(server.model_copy(update=changed), offers)
        assert (finding.status, finding.detail, finding.remedy) == (Status.WARNING, detail, remedy)
    finding = await check_mcp_server(server, is_away)
    assert (finding.status, finding.detail) == (Status.WARNING, "it does not answer: there is no program 'uvx'")


def test_data_directory(tmp_path: Path) -> None:
    """The data directory may be absent if it can be created. Little free space is a warning, and too little is an
    error.
    """
    settings = StorageSettings(data_dir=tmp_path / "a" / "b")
    assert check_data_dir(settings, lambda _: 900_000_000).status is Status.OK
    assert not (tmp_path / "a").exists()
    finding = check_data_dir(settings, lambda _: 400_000_000)
    assert finding.status is Status.WARNING
    assert "400 MB free; 500 are enough" in finding.detail
    assert check_data_dir(settings, lambda _: 1_000_000).status is Status.MISSING
    (tmp_path / "file").touch()
    settings = StorageSettings(data_dir=tmp_path / "file" / "data")
    assert is_missing(check_data_dir(settings), detail="file cannot be written", remedy="set storage.data_dir")


@pytest.mark.asyncio
async def test_database(tmp_path: Path) -> None:
    """An absent or valid database passes. A newer one and a file of another kind are errors with a remedy, and no file
    is changed.
    """
    path = tmp_path / "roomtone.db"
    assert check_database(path).status is Status.OK
    assert not path.exists()
    async with open_database(path):
        assert check_database(path).status is Status.OK
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert is_missing(check_database(path), detail="a newer one wrote it", remedy="Install a later Roomtone")
    path.write_text("Dear diary, " * 100)
    assert is_missing(check_database(path), detail="is not a database", remedy="Move the file away")


def test_what_may_not_even_be_looked_at_is_a_finding_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that the user may not enter is reported by each check that needs it."""
    locked = tmp_path / "locked"

    def enter(self: Path, **_: bool) -> os.stat_result:
        if self.is_relative_to(locked):
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return stat(self)

    stat = Path.stat
    monkeypatch.setattr(Path, "stat", enter)
    data = check_data_dir(StorageSettings(data_dir=locked / "data"))
    assert is_missing(data, detail="cannot be written: Permission denied", remedy="set storage.data_dir")
    database = check_database(locked / "data" / "roomtone.db")
    assert is_missing(database, detail="cannot be read: Permission denied", remedy="the right to read it")
    for name in ("whisper-base", "mine"):
        recogniser = check_recogniser(AsrSettings.model_validate({"model_dir": locked / name}))
        assert is_missing(recogniser, detail="cannot be read: Permission denied", remedy="the right to read it")


def test_ports() -> None:
    """If no socket can be opened on this machine, the reason is reported."""
    assert check_ports().status is Status.OK

    def bind(_kind: socket.SocketKind) -> None:
        raise OSError(24, "Too many open files")

    assert is_missing(check_ports(bind), detail="Too many open files", remedy="ulimit")


def test_receive_buffer() -> None:
    """A small receive buffer is a warning that names the number of people it is enough for, and the remedy."""
    assert check_receive_buffer().detail.startswith("the system keeps ")
    assert check_receive_buffer(lambda: 4 << 20).status is Status.OK
    small = check_receive_buffer(lambda: 212_992)
    assert small.status is Status.WARNING
    assert "208 KB" in small.detail
    assert "more than 66 people" in small.detail
    assert "net.core.rmem_max=4194304" in small.remedy

    def refuse() -> int:
        raise OSError(24, "Too many open files")

    assert check_receive_buffer(refuse).detail == "not known: Too many open files"


def test_rehearsal() -> None:
    """The missing rehearsal extra is a warning, because the bot runs on Discord without it."""
    assert check_rehearsal().status is Status.OK

    def version_of(name: str) -> str:
        if name == "jiwer":
            raise PackageNotFoundError(name)
        return "1"

    finding = check_rehearsal(version_of)
    assert finding.status is Status.WARNING
    assert "jiwer absent" in finding.detail
    assert "rehearsal" in finding.remedy
