"""Python, packages and libopus: what is absent is named with its remedy."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.installation import check_opus, check_packages, check_python, check_rehearsal
from tests.bot.cli.doctor.findings import is_missing
from voice.errors import OpusMissingError


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


def test_opus() -> None:
    """The transport's message about a missing libopus is split into detail and remedy."""

    def load() -> str:
        raise OpusMissingError("libopus was not found, so nobody can be heard. Install it (Debian: `apt …`).")

    assert is_missing(check_opus(load), detail="nobody can be heard.", remedy="Install it (Debian")
    found = check_opus(lambda: "libopus 1.6.1")
    assert (found.status, found.detail) == (Status.OK, "1.6.1")


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
