"""systemd accepts the unit and finds it well closed."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

UNIT = REPOSITORY / "deploy" / "roomtone.service"
# Of ten; systemd calls what is below two OK. What is left is what a bot needs: the network above all.
EXPOSURE = 2.0


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program that exists here."""
    place = tmp_path / UNIT.name
    place.write_text(re.sub(r"=/opt/roomtone/\S+.*", "=/bin/true", UNIT.read_text("utf-8")), "utf-8")
    return place


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze, which needs no running systemd."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze is installed")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_the_unit_is_valid(installed: Path) -> None:
    """systemd knows every setting and value."""
    verified = analyzed("verify", "--man=no", str(installed))
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_unit_is_closed(installed: Path) -> None:
    """systemd's own measure of what the service could reach stays low."""
    told = analyzed("security", "--offline=true", str(installed)).stdout
    [exposure] = re.findall(r"exposure level for \S+: ([\d.]+)", told)
    assert float(exposure) < EXPOSURE, told


def test_only_the_bot_hears_of_its_end() -> None:
    """SIGTERM goes to the bot alone, because the process that sends its voice has to outlive the last sentence."""
    settings = UNIT.read_text("utf-8").splitlines()
    assert {"KillSignal=SIGTERM", "KillMode=mixed", "TimeoutStopSec=60s"} <= set(settings)
