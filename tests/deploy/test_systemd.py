"""systemd accepts the units, finds the bot's well closed, and keeps a machine out of the cluster that was taken out."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from bot.cli.failures import INTERRUPTED
from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER_PAGE = REPOSITORY / "docs" / "cluster.md"
UNIT = REPOSITORY / "deploy" / "roomtone.service"
# Of ten; systemd calls what is below two OK. What is left is what a bot needs: the network above all.
EXPOSURE = 2.0
# Discord's reference, "Session Start Limit Object".
CONNECTIONS_A_DAY = 1000


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


def test_it_is_started_again_for_hours_and_uses_up_no_token() -> None:
    """A machine that starts before its router, or while Discord is away, has a bot in the end. One that breaks after it
    has connected stays below the 1,000 connections a day after which Discord takes its token away.
    """
    settings = settings_of(UNIT.read_text("utf-8"))
    assert (settings["Restart"], settings["RestartSec"]) == (["on-failure"], ["10s"])
    assert settings["StartLimitIntervalSec"] == ["1d"]
    [most] = map(int, settings["StartLimitBurst"])
    assert 10 * most > 3600
    assert most < CONNECTIONS_A_DAY


def test_a_database_of_the_same_machine_is_there_before_and_after_the_bot() -> None:
    """systemd stops in the other order, so the bot can store its sessions when the machine is shut down."""
    [after] = settings_of(UNIT.read_text("utf-8"))["After"]
    assert "postgresql.service" in after.split()


def test_nothing_is_deleted_by_a_clock_that_is_not_set_yet() -> None:
    """The bot begins with deleting what is too old. Where the machine waits for the right time, it does too."""
    [after] = settings_of(UNIT.read_text("utf-8"))["After"]
    assert "time-sync.target" in after.split()


def settings_of(unit: str) -> dict[str, list[str]]:
    """Return the settings of a unit; one that is there twice has both values."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def own_variables(unit: str) -> set[str]:
    """Return the variables of Roomtone's that a unit sets."""
    words = " ".join(settings_of(unit)["Environment"]).split()
    return {word for word in words if word.startswith("ROOMTONE_")}


def test_the_cluster_has_the_folder_of_the_bot() -> None:
    """The bot finds the token of the cluster that runs beside it, and both have one copy of the models."""
    bot, cluster = settings_of(UNIT.read_text("utf-8")), settings_of(cluster_unit())
    for name in ("User", "WorkingDirectory", "StateDirectory", "StateDirectoryMode"):
        assert cluster[name] == bot[name]
    assert own_variables(cluster_unit()) == own_variables(UNIT.read_text("utf-8"))
    assert cluster["EnvironmentFile"] == [f"-{bot['EnvironmentFile'][0]}"]


def cluster_unit() -> str:
    """Return the unit of `roomtone cluster up` in docs/cluster.md."""
    [unit] = re.findall(r"^```ini\n(\[Unit\]\n.*?)^```", CLUSTER_PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(unit)


def cluster_settings() -> dict[str, str]:
    """Return the settings of that unit."""
    return dict(re.findall(r"^(\w+)=(.*)$", cluster_unit(), re.MULTILINE))


def test_the_clusters_unit_is_valid(tmp_path: Path) -> None:
    """systemd knows every setting and value."""
    place = tmp_path / "roomtone-cluster.service"
    place.write_text(re.sub(r"=/opt/roomtone/\S+", "=/bin/true", cluster_unit()), "utf-8")
    verified = analyzed("verify", "--man=no", str(place))
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_machine_that_was_taken_out_stays_out() -> None:
    """`cluster down` ends the command with 0, or told twice with `INTERRUPTED`: systemd takes neither for a failure."""
    settings = cluster_settings()
    assert settings["Restart"] == "on-failure"
    assert settings["SuccessExitStatus"] == str(INTERRUPTED)
    assert settings["KillMode"] == "process"


@pytest.mark.parametrize("unit", [UNIT.read_text("utf-8"), cluster_unit()], ids=["bot", "cluster"])
def test_one_process_that_has_no_memory_left_ends_no_other(unit: str) -> None:
    """By itself systemd stops a service when the system has ended any of its processes for that (`OOMPolicy`): the bot
    with all its rooms because of one, or all that a machine has of the cluster.
    """
    assert settings_of(unit)["OOMPolicy"] == ["continue"]
