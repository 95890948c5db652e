"""The checks of `roomtone doctor`. Each returns what was found and what to do about it.

Checks change nothing and never raise.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.cli.failures import INSTALL_PARTS
from bot.cli.output import count
from bot.errors import BotError
from bot.llm.port import ChatModelError
from bot.models.catalogue import CATALOGUE, TURN_SMART, VAD_SILERO, VOICE_JOE, WHISPER_BASE
from bot.models.directory import ModelDirectory
from bot.store.dialects.open import describe_database
from bot.store.dialects.sqlite import verify_database_file
from compaction.errors import StoreError
from voice.errors import OpusMissingError, RecogniserError
from voice.transport.receive_buffer import DATAGRAM_BYTES, SMALL_BYTES, WANTED_BYTES, enlarge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic import SecretStr

    from bot.llm.settings import LlmSettings
    from bot.mcp.settings import McpServerSettings
    from bot.models.catalogue import ModelEntry
    from bot.settings import DiscordSettings, StorageSettings, WebSettings
    from voice.asr.settings import AsrSettings
    from voice.listening.settings import ListeningSettings
    from voice.screen.settings import ScreenSettings

# `requires-python` of pyproject.toml.
PYTHON_FROM, PYTHON_BELOW = (3, 11), (3, 14)
# voice/transport uses private parts of these two; with other versions the bot cannot hear or speak.
PINNED = {"discord.py": "2.7.1", "davey": "0.1.7"}
REHEARSAL_PARTS = ("cryptography", "jiwer", "whisper-normalizer")
# Below this the database cannot even grow its journal.
HOPELESS_BYTES = 20_000_000
# Below this much free disk the check warns: an evening of talk takes a few MB, the rotated logs 120.
SCARCE_BYTES = 500_000_000
MCP_TOOLS_SHOWN = 12
# Without names it brings all that a bot needs by default, so that several findings have the same remedy.
PULL_ALL = "Run `roomtone models pull`."
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Status(StrEnum):
    """The result of a check. Only `MISSING` keeps Roomtone from running."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `remedy`: what to do, empty if nothing."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    found = "Python " + ".".join(map(str, version))
    if PYTHON_FROM <= version < PYTHON_BELOW:
        return Finding("python", Status.OK, found)
    return Finding(
        "python",
        Status.MISSING,
        f"{found}; Roomtone runs on 3.11 to 3.13",
        "Install Python 3.11, or let uv do it: `uv python install 3.11`.",
    )


def check_packages(version_of: Callable[[str], str] = metadata.version) -> Finding:
    """Check the packages whose exact version matters."""
    wrong = [
        f"{name} {found or 'is absent'}, {wanted} is needed"
        for name, wanted in PINNED.items()
        if (found := _version(name, version_of)) != wanted
    ]
    if not wrong:
        return Finding("packages", Status.OK, ", ".join(f"{name} {wanted}" for name, wanted in PINNED.items()))
    again = "Install Roomtone again: `make clean setup`, or `uv tool install --force .`."
    return Finding("packages", Status.MISSING, "; ".join(wrong), again)


def check_opus(load: Callable[[], object]) -> Finding:
    """Check whether libopus can be loaded."""
    try:
        load()
    except OpusMissingError as error:
        detail, _, remedy = str(error).partition(" Install ")
        return Finding("libopus", Status.MISSING, detail, f"Install {remedy}" if remedy else "Install libopus.")
    return Finding("libopus", Status.OK, "can be loaded")


def check_recogniser(settings: AsrSettings) -> Finding:
    """Check that the Whisper model is installed and readable, and compare the hashes of a known model.

    With an endpoint, the model is only the fallback, so a missing one is a warning.
    """
    finding = _check_local_recogniser(settings)
    if settings.engine == "local":
        return finding
    where = settings.base_url or "OpenAI"
    if finding.status is Status.OK:
        return replace(finding, detail=f"{settings.endpoint_model} at {where}; behind it {finding.detail}")
    detail = f"{settings.endpoint_model} at {where}, with nothing behind it: {finding.detail}"
    return replace(finding, status=Status.WARNING, detail=detail)


def _check_local_recogniser(settings: AsrSettings) -> Finding:
    folder = settings.model_dir
    entry = next((each for each in CATALOGUE if each.name == folder.name), None)
    pull = f"Run `roomtone models pull{f' {entry.name}' if entry and entry.name != WHISPER_BASE.name else ''}`" + (
        "." if entry else ", or set asr.model to the folder of a CTranslate2 Whisper model."
    )
    if entry is not None:
        return _check_model("recogniser", entry, folder, pull)
    wanted = folder / WHISPER_BASE.main_file.name
    if (trouble := _unreadable(folder)) is not None:
        return Finding("recogniser", Status.MISSING, trouble, _RIGHTS)
    if not wanted.is_file():
        return Finding("recogniser", Status.MISSING, f"There is no Whisper model in {folder}.", pull)
    return Finding("recogniser", Status.OK, f"a model of your own in {folder}")


def check_voice(models_dir: Path, *, installed: bool) -> Finding:
    """Check the embedded voice: its engine and its model. Without one the bot answers in writing."""
    if not installed:
        detail = "Piper, the engine of the embedded voice, is absent: the bot answers in writing"
        return Finding("voice", Status.WARNING, detail, INSTALL_PARTS)
    finding = _check_model("voice", VOICE_JOE, models_dir / VOICE_JOE.name, PULL_ALL)
    if finding.status is Status.OK:
        return finding
    return replace(finding, status=Status.WARNING, detail=f"{finding.detail.rstrip('.')}: the bot answers in writing")


def check_turns(models_dir: Path, listening: ListeningSettings) -> Finding:
    """Check the two small models for listening. Without them the bot works, but detects the end of turns less well."""
    wanted = (TURN_SMART, VAD_SILERO) if listening.turn_model == "auto" else (VAD_SILERO,)
    found = [_check_model("listening", entry, models_dir / entry.name, "") for entry in wanted]
    wrong = [finding.detail.rstrip(".") for finding in found if finding.status is not Status.OK]
    if not wrong:
        return Finding("listening", Status.OK, "; ".join(entry.title for entry in wanted))
    detail = f"{'; '.join(wrong)}: turns end later, and more sentences are cut"
    return Finding("listening", Status.WARNING, detail, PULL_ALL)


def check_device(settings: AsrSettings, *, cuda_devices: int, place: Callable[[], object]) -> Finding:
    """Check on which device the recogniser will run. `place` raises `RecogniserError` if that device cannot be used."""
    try:
        place()
    except RecogniserError as error:
        remedy = "Set asr.device to cpu or auto, or install the NVIDIA driver and the CUDA libraries."
        return Finding("cuda", Status.MISSING, str(error), remedy)
    if cuda_devices:
        on = "not used, for asr.device is cpu" if settings.device == "cpu" else "the recogniser runs there"
        return Finding("cuda", Status.OK, f"{cuda_devices} device{'' if cuda_devices == 1 else 's'}; {on}")
    return Finding("cuda", Status.OK, "none; the recogniser runs on the CPU, which is enough")


def check_engine(error: ImportError) -> Finding:
    """Report a recogniser whose own libraries cannot be loaded."""
    return Finding(
        "recogniser",
        Status.MISSING,
        f"its libraries cannot be loaded: {error}",
        "Install them anew: `make clean setup`.",
    )


def check_discord(settings: DiscordSettings) -> Finding:
    """Check the bot's token by its form alone; only Discord knows whether it is valid."""
    token = settings.token.get_secret_value() if settings.token is not None else ""
    where = (
        "Discord's developer portal (https://discord.com/developers/applications, your application, Bot, Reset Token)"
    )
    if not token:
        return Finding(
            "discord",
            Status.WARNING,
            "no token: `roomtone run` plays the rehearsal instead of joining Discord",
            f"Take a token from {where} and put DISCORD_TOKEN=… into .env.",
        )
    if not settings.api_base and not _is_token(token):
        return Finding(
            "discord",
            Status.MISSING,
            "DISCORD_TOKEN is set, but has not the form of a bot's token (three parts joined by dots)",
            f"Copy it again from {where}; the application's id, its secret and its public key are other things.",
        )
    return Finding("discord", Status.OK, "a token is set, and has the right form")


async def check_language_model(
    settings: LlmSettings, served: Callable[[LlmSettings], Awaitable[tuple[str, ...]]]
) -> Finding:
    """Check whether the chat model's endpoint answers, takes the key and knows the model."""
    if not settings.configured:
        return Finding(
            "language model",
            Status.WARNING,
            "none is configured: the embedded responder answers out of memory, and says so",
            "Put OPENAI_API_KEY=… into .env, or set llm.base_url and llm.model to any OpenAI-compatible server.",
        )
    try:
        names = await served(settings)
    except ChatModelError as error:
        detail, _, remedy = str(error).partition(". ")
        return Finding(
            "language model", Status.MISSING, detail.rstrip("."), remedy or "Check llm.base_url and the key."
        )
    if names and settings.model not in names:
        shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        return Finding(
            "language model",
            Status.WARNING,
            f"{settings.base_url or 'OpenAI'} answers, but does not list {settings.model}",
            f"Set llm.model to one of: {shown}.",
        )
    return Finding("language model", Status.OK, f"{settings.model} at {settings.base_url or 'OpenAI'}")


async def check_mcp_server(
    settings: McpServerSettings, offered: Callable[[McpServerSettings], Awaitable[tuple[str, ...]]]
) -> Finding:
    """Check whether an MCP server answers and offers the allowed tools. The bot runs without it."""
    name = f"mcp {settings.name}"
    try:
        tools = await offered(settings)
    except BotError as error:
        remedy = f"Check the {'url' if settings.url else 'command'} of the server in [[mcp.servers]]."
        return Finding(name, Status.WARNING, f"it does not answer: {error}", remedy)
    allowed = [tool for tool in tools if settings.allows(tool)]
    missing = [tool for tool in settings.tools if tool != "*" and tool not in tools]
    shown = ", ".join(tools[:MCP_TOOLS_SHOWN]) + (" …" if len(tools) > MCP_TOOLS_SHOWN else "")
    if missing:
        return Finding(name, Status.WARNING, f"it has no {', '.join(missing)}", f"It offers: {shown}.")
    if not allowed:
        return Finding(name, Status.WARNING, "none of its tools may be called", f"Name them in `tools`: {shown}.")
    changing = [tool for tool in allowed if settings.has_side_effects(tool)]
    effects = f"{len(changing)} of them only on request" if changing else "none of them changes anything"
    return Finding(name, Status.OK, f"{count(len(allowed), 'tool')} may be called, {effects}")


def check_screens(screen: ScreenSettings, web: WebSettings, *, installed: bool) -> Finding:
    """Check whether people can share screens. The rest of the bot works without this.

    `installed`: whether the text-reading extra is installed.
    """
    if not screen.enabled:
        return Finding("screens", Status.OK, "switched off (screen.enabled)")
    if not installed:
        without = "the vision model alone reads them" if screen.model else "nothing reads them"
        return Finding(
            "screens",
            Status.WARNING,
            f"the part 'screen' is not installed: {without}",
            INSTALL_PARTS,
        )
    reader = f"the vision model {screen.model} and embedded reading" if screen.model else "embedded reading"
    address = urlsplit(web.public_url)
    if not web.public_url:
        return Finding("screens", Status.OK, f"{reader}; links work on this machine alone (PUBLIC_URL is not set)")
    if address.scheme != "https" and address.hostname not in _LOCAL_HOSTS:
        return Finding(
            "screens",
            Status.WARNING,
            f"{web.public_url} is not https: no browser shares a screen with it",
            "Put a reverse proxy with a certificate in front and set PUBLIC_URL to its https address "
            "(docs/reverse-proxy.md).",
        )
    return Finding("screens", Status.OK, f"{reader}; pages at {web.public_url}")


def check_data_dir(settings: StorageSettings, free_bytes: Callable[[Path], int] | None = None) -> Finding:
    """Check that the data directory, or its nearest existing parent, is writable and has enough free space."""
    place = settings.data_dir.absolute()
    existing = place
    elsewhere = "or set storage.data_dir to another directory."
    try:
        existing = next(each for each in (place, *place.parents) if _is_there(each))
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"\0" * 4096)
            os.fsync(probe.fileno())
        free = free_bytes(existing) if free_bytes is not None else shutil.disk_usage(existing).free
    except OSError as error:
        reason = error.strerror or type(error).__name__
        remedy = f"Make it writable for the user that runs the bot, {elsewhere}"
        return Finding("data", Status.MISSING, f"{existing} cannot be written: {reason}", remedy)
    detail = f"{place}, {free // 1_000_000:,} MB free"
    if free < HOPELESS_BYTES:
        return Finding("data", Status.MISSING, detail, f"Free some space, {elsewhere}")
    if free < SCARCE_BYTES:
        wanted = f"{SCARCE_BYTES // 1_000_000} are enough"
        return Finding("data", Status.WARNING, f"{detail}; {wanted}", f"Free some space, {elsewhere}")
    return Finding("data", Status.OK, detail)


def check_user(*, root: bool) -> Finding:
    """Check that the bot will not run with all rights."""
    if not root:
        return Finding("user", Status.OK, "not root")
    return Finding(
        "user",
        Status.WARNING,
        "root: a mistake in a library or tool could reach everything on this machine",
        "Run the bot as a user of its own that owns the data folder; the Docker image does.",
    )


def check_database(place: Path | SecretStr) -> Finding:
    """Check the database, if there is one already."""
    try:
        if not isinstance(place, Path):
            return Finding("database", Status.OK, describe_database(place))
        if not _is_there(place):
            return Finding("database", Status.OK, "none yet; the first session makes it")
        verify_database_file(place)
    except OSError as error:
        assert isinstance(place, Path), "only files raise it"
        return Finding("database", Status.MISSING, _unreadable_path(error, place), _RIGHTS)
    except StoreError as error:
        detail, _, remedy = str(error).partition(". ")
        return Finding("database", Status.MISSING, detail, remedy)
    return Finding("database", Status.OK, f"{place} is whole")


def check_ports(bind: Callable[[socket.SocketKind], None] | None = None) -> Finding:
    """Check whether sockets can be opened: UDP for voice, TCP on this machine for the rehearsal."""
    try:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            (bind or _bind)(kind)
    except OSError as error:
        return Finding(
            "network",
            Status.MISSING,
            f"no port could be opened on 127.0.0.1: {error.strerror or type(error).__name__}",
            "Allow the process to open sockets: look at the container's network, the firewall and `ulimit -n`.",
        )
    return Finding("network", Status.OK, "UDP and TCP ports can be opened")


def check_receive_buffer(granted_bytes: Callable[[], int] | None = None) -> Finding:
    """Check how much received voice the system keeps while the bot is busy."""
    try:
        granted = (granted_bytes or _receive_buffer)()
    except OSError as error:
        # `check_ports` names the cause and the remedy.
        return Finding("receive buffer", Status.WARNING, f"not known: {error.strerror or type(error).__name__}")
    detail = f"the system keeps {granted // 1024:,} KB of received voice"
    if granted >= SMALL_BYTES:
        return Finding("receive buffer", Status.OK, detail)
    return Finding(
        "receive buffer",
        Status.WARNING,
        f"{detail}, and {WANTED_BYTES // 1024:,} KB were asked for: of more than {_speakers(granted)} people who speak "
        "at once, sound is lost whenever the machine is busy for a tenth of a second",
        f"On the machine itself (not in a container): `sudo sysctl -w net.core.rmem_max={WANTED_BYTES}`, and the same "
        "line in /etc/sysctl.d to keep it.",
    )


def check_rehearsal(version_of: Callable[[str], str] = metadata.version) -> Finding:
    """Check whether the parts of the local Discord are installed."""
    absent = [name for name in REHEARSAL_PARTS if _version(name, version_of) is None]
    if not absent:
        return Finding("rehearsal", Status.OK, "its parts are installed")
    return Finding("rehearsal", Status.WARNING, f"cannot be played: {', '.join(absent)} absent", INSTALL_PARTS)


def _receive_buffer() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return enlarge(probe)


def _speakers(granted_bytes: int) -> int:
    """Return how many people's voice fits into the buffer for a tenth of a second: five datagrams each."""
    return granted_bytes // (5 * DATAGRAM_BYTES)


_RIGHTS = "Give the user that runs the bot the right to read it."


def _check_model(name: str, entry: ModelEntry, folder: Path, pull: str) -> Finding:
    model_directory = ModelDirectory(folder.parent)
    if (trouble := _unreadable(folder)) is not None:
        return Finding(name, Status.MISSING, trouble, _RIGHTS)
    wrong = model_directory.verify(entry)
    if wrong is None:
        return Finding(name, Status.OK, f"{entry.title}, in {folder}")
    return Finding(name, Status.MISSING, wrong.partition(" Run `")[0], pull)


def _unreadable(folder: Path) -> str | None:
    """Return why the folder or a file in it cannot be read. None if all can be read or there is no folder."""
    try:
        for path in folder.iterdir() if _is_there(folder) else ():
            if path.is_file():
                with path.open("rb") as file:
                    file.read(1)
    except NotADirectoryError:
        return None
    except OSError as error:
        return _unreadable_path(error, folder)
    return None


def _is_there(path: Path) -> bool:
    """Return whether a path exists. Raises OSError if access is denied."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _unreadable_path(error: OSError, path: Path) -> str:
    return f"{error.filename or path} cannot be read: {error.strerror or type(error).__name__}."


def _version(name: str, version_of: Callable[[str], str]) -> str | None:
    try:
        return version_of(name)
    except metadata.PackageNotFoundError:
        return None


def _is_token(token: str) -> bool:
    """Return whether a text has a bot token's form: the bot's id in base64, a time, a signature."""
    match = re.fullmatch(r"([\w-]{20,})\.([\w-]{5,})\.([\w-]{20,})", token, re.ASCII)
    if match is None:
        return False
    first = match[1]
    try:
        return base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).isdigit()
    except binascii.Error:
        return False


def _bind(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
