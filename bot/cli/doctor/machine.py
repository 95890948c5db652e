"""What doctor looks at on this machine: libopus, the port of the web pages, the data folder and its database."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.errors import why_not_listening
from bot.network_address import NetworkAddress
from bot.shards import Shards, ranges
from bot.store.database import describe_database
from bot.store.dialects.sqlite import verify_database_file
from compaction.errors import StoreError
from voice.errors import OpusMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from bot.settings import StorageSettings, WebSettings
    from bot.store.dialects.port import DatabaseDescription


def check_opus(version: Callable[[], str]) -> Finding:
    """Check whether libopus can be loaded, and tell which one. `version` raises `OpusMissingError`."""
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
    where = str(NetworkAddress(web.host, web.port))
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
# Below this much free disk the check warns: an evening of talk takes a few MB, the rotated logs 120.
SCARCE_BYTES = 500_000_000
# The disk, or the user's share of it, is full.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def check_data_dir(settings: StorageSettings, free_bytes: Callable[[Path], int] | None = None) -> Finding:
    """Check that the data directory, or its nearest existing parent, is writable and has enough free space."""
    place = settings.data_dir.absolute()
    existing = place
    elsewhere = "or set storage.data_dir to another directory."
    try:
        existing = next(each for each in (place, *place.parents) if each.exists())
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"\0" * 4096)
            os.fsync(probe.fileno())
        free = free_bytes(existing) if free_bytes is not None else shutil.disk_usage(existing).free
    except OSError as error:
        reason = error.strerror or type(error).__name__
        what = "Free some space" if error.errno in _NO_ROOM else "Make it writable for the user that runs the bot"
        return Finding("data", Status.MISSING, f"{existing} cannot be written: {reason}", f"{what}, {elsewhere}")
    detail = f"{place}, {free // 1_000_000:,} MB free"
    if free < HOPELESS_BYTES:
        return Finding("data", Status.MISSING, detail, f"Free some space, {elsewhere}")
    if free < SCARCE_BYTES:
        wanted = f"{SCARCE_BYTES // 1_000_000} are enough"
        return Finding("data", Status.WARNING, f"{detail}; {wanted}", f"Free some space, {elsewhere}")
    return Finding("data", Status.OK, detail)


def check_database(place: Path | SecretStr) -> Finding:
    """Check the database, if there is one already."""
    try:
        if not isinstance(place, Path):
            return _described(describe_database(place))
        if not place.exists():
            return Finding("database", Status.OK, "none yet; the first session makes it")
        verify_database_file(place)
    except StoreError as error:
        detail, _, remedy = str(error).partition(". ")
        return Finding("database", Status.MISSING, detail, remedy)
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
