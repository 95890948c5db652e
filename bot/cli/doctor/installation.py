"""Whether Python and the packages fit together."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Finding, Status
from bot.cli.failures import INSTALL_PARTS
from voice.errors import OpusMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

# `requires-python` of pyproject.toml.
PYTHON_FROM, PYTHON_BELOW = (3, 11), (3, 14)
# voice/transport uses private parts of these two; with other versions the bot cannot hear or speak.
PINNED = {"discord.py": "2.7.1", "davey": "0.1.7"}
INSTALL_AGAIN = "Install Roomtone again: `make clean setup`, or `uv tool install --force .`."
REHEARSAL_PARTS = ("jiwer", "whisper-normalizer")


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
    return Finding("packages", Status.MISSING, "; ".join(wrong), INSTALL_AGAIN)


def check_opus(version: Callable[[], str]) -> Finding:
    """Check whether libopus can be loaded, and tell which one. `version` raises `OpusMissingError`."""
    try:
        found = version()
    except OpusMissingError as error:
        detail, _, remedy = str(error).partition(" Install ")
        return Finding("libopus", Status.MISSING, detail, f"Install {remedy}" if remedy else "Install libopus.")
    return Finding("libopus", Status.OK, found.removeprefix("libopus "))


def check_rehearsal(version_of: Callable[[str], str] = metadata.version) -> Finding:
    """Check whether the parts of the local Discord are installed."""
    absent = [name for name in REHEARSAL_PARTS if _version(name, version_of) is None]
    if not absent:
        return Finding("rehearsal", Status.OK, "its parts are installed")
    return Finding("rehearsal", Status.WARNING, f"cannot be played: {', '.join(absent)} absent", INSTALL_PARTS)


def _version(name: str, version_of: Callable[[str], str]) -> str | None:
    try:
        return version_of(name)
    except metadata.PackageNotFoundError:
        return None
