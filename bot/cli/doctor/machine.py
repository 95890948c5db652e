"""What doctor looks at on this machine: libopus, the port of the web pages, the data folder and its database, and the
models for hearing, speaking and memory search.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status, written_address
from bot.cli.output import count
from bot.errors import why_not_listening
from bot.models.catalogue import CATALOGUE, EMBED_SENTENCES, TURN_MODEL, VAD_SILERO, WHISPER_BASE
from bot.models.directory import ModelDirectory, whisper_folder
from bot.models.voices import DEFAULT_VOICE, open_voice
from bot.monitoring.service_checks import LEAST_FREE_BYTES
from bot.participation.costs import HOURLY_LIMITS
from bot.private_files import OTHERS
from bot.shards import Shards, ranges
from bot.store.database import describe_database
from bot.store.dialects.sqlite import verify_database_file
from compaction.errors import StoreError
from compaction.model import Mode
from voice.errors import OpusMissingError, SynthesisError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from bot.models.entry import ModelEntry
    from bot.participation.settings import ParticipationSettings
    from bot.settings import CompactionSection, ModelsSettings, RecallSettings, StorageSettings, WebSettings
    from bot.store.dialects.port import DatabaseDescription
    from voice.asr.settings import AsrSettings
    from voice.speaking.settings import SpeakingSettings

# Without names it brings all that a bot needs by default, so that several findings have the same remedy.
PULL_ALL = "Run `roomtone models pull`."
_NAME_A_MODEL = (
    "Set asr.model to a Whisper model that `roomtone models list` shows and that you have pulled, to the folder of a "
    "CTranslate2 Whisper model, or leave it out."
)
_WORDS_ALONE = "only the same words are found, not what was said in others"


def check_opus() -> Finding:
    """Check whether libopus can be loaded, and tell which one."""
    from voice.transport.opus import version

    try:
        found = version()
    except OpusMissingError as error:
        detail, _, remedy = str(error).partition(" Install ")
        return Finding("libopus", Status.MISSING, detail, f"Install {remedy}" if remedy else "Install libopus.")
    return Finding("libopus", Status.OK, found.removeprefix("libopus "))


def check_web_port(web: WebSettings, *, bot_runs: bool) -> Finding:
    """Check whether the web pages can listen where the settings say. Without them the bot talks all the same.

    `bot_runs`: whether a bot runs with these settings, whose port it is then.
    """
    where = written_address(web.host, web.port)
    try:
        found = socket.getaddrinfo(web.host, web.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            socket.create_server(address, family=family).close()
    except UnicodeError:
        reason = f"{web.host} is no host"
    except OSError as error:
        if error.errno == errno.EADDRINUSE and bot_runs:
            return Finding("web port", Status.OK, f"{where} is in use, and a bot runs with these settings")
        reason = why_not_listening(error)
    else:
        return Finding("web port", Status.OK, f"{where} is free" if web.port else f"any free one on {web.host}")
    return Finding(
        "web port",
        Status.WARNING,
        f"nothing can listen on {where} ({reason}): there are no dashboard, no pages for screens and no metrics",
        "End the program that listens there (`ss -ltnp` names it), or choose another web.host or web.port.",
    )


# Below this the database cannot even grow its journal.
HOPELESS_BYTES = 20_000_000
# The disk, or the user's share of it, is full.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_data_dir(settings: StorageSettings) -> Finding:
    """Check that the data directory, or its nearest existing parent, is writable and has enough free space."""
    place = settings.data_dir.absolute()
    existing = place
    elsewhere = "or set storage.data_dir to another directory."
    try:
        existing = next(each for each in (place, *place.parents) if each.exists())
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"\0" * 4096)
            os.fsync(probe.fileno())
        free = shutil.disk_usage(existing).free
    except OSError as error:
        reason = error.strerror or type(error).__name__
        what = "Free some space" if error.errno in _NO_ROOM else "Make it writable for the user that runs the bot"
        return Finding("data", Status.MISSING, f"{existing} cannot be written: {reason}", f"{what}, {elsewhere}")
    detail = f"{place}, {free // 1_000_000:,} MB free"
    if free < HOPELESS_BYTES:
        return Finding("data", Status.MISSING, detail, f"Free some space, {elsewhere}")
    if free < LEAST_FREE_BYTES:
        wanted = f"{LEAST_FREE_BYTES // 1_000_000} are enough"
        return Finding("data", Status.WARNING, f"{detail}; {wanted}", f"Free some space, {elsewhere}")
    return Finding("data", Status.OK, detail)


def check_env_file(file: Path) -> Finding:
    """Check that nobody but its owner can read the file with the keys, if there is one."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return Finding("keys", Status.OK, f"there is no {file}")
    if mode & OTHERS:
        detail = f"other users of this machine can read or change {file} (mode {stat.S_IMODE(mode):04o})"
        return Finding("keys", Status.WARNING, detail, f"Run `chmod 600 {shlex.quote(str(file))}`.")
    return Finding("keys", Status.OK, f"only their owner can read {file}")


def check_database(place: Path | SecretStr) -> Finding:
    """Check the database, if there is one already."""
    try:
        if not isinstance(place, Path):
            return _described(describe_database(place))
        if not place.exists():
            return Finding("database", Status.OK, "none yet; the first session makes it")
        verify_database_file(place)
    except StoreError as error:
        return Finding.told("database", Status.MISSING, error)
    return Finding("database", Status.OK, f"{place} is whole")


def _described(database: DatabaseDescription) -> Finding:
    """Return what a PostgreSQL database is, and which shards of its bot nobody serves now."""
    detail, orders = database.text, []
    for each in database.running:
        unserved = tuple(shard for shard in range(each.total) if shard not in each.ids)
        if not each.is_divided:
            detail += "; a bot runs with it"
            continue
        detail += f"; of {each.total} shards, {ranges(each.ids)} are served"
        if unserved:
            detail += f", and nobody serves {ranges(unserved)}: their servers do not reach the bot"
            orders.append(f'`roomtone run --shards "{Shards(unserved, each.total)}"`')
    remedies = [f"Start a process for the rest: {' or '.join(orders)}."] if orders else []
    return Finding("database", Status.WARNING if remedies else Status.OK, detail, " ".join(remedies))


def check_recogniser(models: ModelsSettings, settings: AsrSettings) -> Finding:
    """Check that the Whisper model is there, and compare the hashes of a known one.

    With an endpoint, the model is only the fallback, so a missing one is a warning.
    """
    finding = _check_local_recogniser(whisper_folder(models, settings))
    if not settings.by_endpoint:
        return finding
    where = f"{settings.endpoint_model} at {settings.base_url or 'OpenAI'}"
    if finding.status is Status.OK:
        return replace(finding, detail=f"{where}; behind it {finding.detail}")
    return replace(finding, status=Status.WARNING, detail=f"{where}, with nothing behind it: {finding.detail}")


def _check_local_recogniser(folder: Path) -> Finding:
    entry = next((each for each in CATALOGUE if each.name == folder.name), None)
    if entry is not None:
        pull = f"Run `roomtone models pull{f' {entry.name}' if entry.name != WHISPER_BASE.name else ''}`."
        return check_model("recogniser", entry, folder, pull)
    if not (folder / WHISPER_BASE.main_file.name).is_file():
        return Finding("recogniser", Status.MISSING, f"There is no Whisper model in {folder}.", _NAME_A_MODEL)
    return Finding("recogniser", Status.OK, f"a model of your own in {folder}")


async def check_voice(settings: SpeakingSettings, models_dir: Path) -> Finding:
    """Load the bot's own voice, as the bot does. Without one the bot answers in writing.

    An endpoint is not asked; behind one, the embedded voice is only the fallback.
    """
    remedy = ""
    try:
        async with open_voice(DEFAULT_VOICE, models_dir):
            detail = f"{DEFAULT_VOICE.title}, {DEFAULT_VOICE.language}"
    except SynthesisError as error:
        detail, _, remedy = str(error).partition(". ")
    if settings.by_endpoint:
        first = f"{settings.model} at {settings.base_url or 'OpenAI'}"
        detail = f"{first}, with nothing behind it: {detail}" if remedy else f"{first}; behind it {detail}"
    elif remedy:
        detail = f"{detail}: the bot answers in writing"
    return Finding("voice", Status.WARNING if remedy else Status.OK, detail, remedy)


def check_turns(models: ModelsSettings) -> Finding:
    """Check the small models for listening. Without them the bot works, but detects the end of turns less well."""
    wanted = (TURN_MODEL, VAD_SILERO)
    found = [check_model("listening", entry, models.directory / entry.name, "") for entry in wanted]
    wrong = [finding.detail.rstrip(".") for finding in found if finding.status is not Status.OK]
    if not wrong:
        return Finding("listening", Status.OK, "; ".join(entry.title for entry in wanted))
    detail = f"{'; '.join(wrong)}: turns end later, and more sentences are cut"
    return Finding("listening", Status.WARNING, detail, PULL_ALL)


def check_embedder(models_dir: Path, recall: RecallSettings) -> Finding:
    """Check the embedding model of the memory search; an endpoint is not asked. Without one the bot runs."""
    if not recall.enabled:
        return Finding("memory search", Status.OK, f"{_WORDS_ALONE} (switched off)")
    if recall.base_url:
        where = recall.base_url
        return Finding("memory search", Status.OK, f"{recall.model} at {where}, which was not asked")
    finding = check_model("memory search", EMBED_SENTENCES, models_dir / EMBED_SENTENCES.name, PULL_ALL)
    if finding.status is Status.OK or ModelDirectory(models_dir).holds(EMBED_SENTENCES):
        return finding
    return replace(finding, status=Status.WARNING, detail=f"{finding.detail.rstrip('.')}: {_WORDS_ALONE}")


def check_memory_mode(compaction: CompactionSection, recall: RecallSettings) -> Finding:
    """Return which mode of the memory is in force: `rolling` needs memory search."""
    if compaction.mode is Mode.ROLLING and not recall.enabled:
        remedy = 'Set `recall.enabled = true`, or `compaction.mode = "summary"`.'
        return Finding("memory mode", Status.WARNING, "summary: rolling needs memory search, which is off", remedy)
    return Finding("memory mode", Status.OK, f"{compaction.mode.value}, where no server has chosen another")


def check_limits(participation: ParticipationSettings) -> Finding:
    """Return what an hour may cost a server. 0 takes a limit away, which is not what everybody means by it."""
    theirs = ((f"participation.servers of {each.id}", each) for each in participation.servers)
    limits = (("participation", participation), *theirs)
    none = [f"{name} in {where}" for where, each in limits for name in HOURLY_LIMITS if getattr(each, name) == 0]
    if none:
        remedy = "Set 1 or more where there shall be a limit."
        return Finding("limits", Status.WARNING, f"{', '.join(none)}: 0 means no limit", remedy)
    usual = participation
    detail = f"{usual.max_calls_per_hour:,} calls and {usual.max_tokens_per_hour:,} tokens an hour for each server"
    return Finding("limits", Status.OK, detail)


def check_model(name: str, entry: ModelEntry, folder: Path, pull: str) -> Finding:
    """Check that a model of the catalogue is in `folder` and whole. `pull`: the remedy if it is not."""
    wrong = ModelDirectory(folder.parent).verify(entry)
    if wrong is None:
        return Finding(name, Status.OK, f"{entry.title}, in {folder}")
    return Finding(name, Status.MISSING, wrong.partition(" Run `")[0], pull)


def check_device(cuda_devices: int) -> Finding:
    """Return on which device the recogniser will run."""
    if cuda_devices:
        return Finding("cuda", Status.OK, f"{count(cuda_devices, 'device')}; the recogniser runs there")
    return Finding("cuda", Status.OK, "none; the recogniser runs on the CPU, which is enough")
