"""systemd accepts the units, and finds the bot's well closed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.cli.run import STOP_WITHIN_S
from config.load import CREDENTIALS_FILE
from tests.scenarios.program import REPOSITORY

UNIT = REPOSITORY / "deploy" / "roomtone.service"
RAY_UNIT = REPOSITORY / "deploy" / "roomtone-ray.service"
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


@pytest.mark.parametrize("name", ["roomtone-backup.service", "roomtone-backup.timer"])
def test_the_daily_backup_is_valid(tmp_path: Path, name: str) -> None:
    """systemd knows every setting and value of the timer and of what it starts, and the command has these options."""
    for unit in (UNIT.with_name("roomtone-backup.service"), UNIT.with_name("roomtone-backup.timer")):
        text = re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", unit.read_text("utf-8"), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text, "utf-8")
    verified = analyzed("verify", "--man=no", str(tmp_path / name))
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "backup backups --keep 7\n" in UNIT.with_name("roomtone-backup.service").read_text("utf-8")


def test_the_unit_is_closed(installed: Path) -> None:
    """systemd's own measure of what the service could reach stays low."""
    told = analyzed("security", "--offline=true", str(installed)).stdout
    [exposure] = re.findall(r"exposure level for \S+: ([\d.]+)", told)
    assert float(exposure) < EXPOSURE, told


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


def test_ray_has_the_folder_of_the_bot() -> None:
    """The bots that Ray keeps find the token, the models and the settings that a bot of the machine has."""
    bot, ray = (settings_of(unit.read_text("utf-8")) for unit in (UNIT, RAY_UNIT))
    for name in ("User", "WorkingDirectory", "StateDirectory", "StateDirectoryMode"):
        assert ray[name] == bot[name]
    assert own_variables(RAY_UNIT.read_text("utf-8")) == own_variables(UNIT.read_text("utf-8"))
    assert bot["LoadCredential"][0].removeprefix("env:") in ray["EnvironmentFile"]


def test_secrets_are_in_no_environment() -> None:
    """A program that the bot starts would get it."""
    settings = settings_of(UNIT.read_text("utf-8"))
    assert "EnvironmentFile" not in settings
    assert settings["LoadCredential"] == [f"{CREDENTIALS_FILE}:/etc/roomtone/env"]


def test_rays_unit_is_valid_and_lets_bots_leave(tmp_path: Path) -> None:
    """systemd knows every setting and value, and waits longer than a bot takes to leave its rooms."""
    place = tmp_path / RAY_UNIT.name
    text = RAY_UNIT.read_text("utf-8")
    place.write_text(re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", text, flags=re.MULTILINE), "utf-8")
    verified = analyzed("verify", "--man=no", str(place))
    assert (verified.returncode, verified.stderr) == (0, "")
    assert float(settings_of(text)["TimeoutStopSec"][0].removesuffix("s")) > STOP_WITHIN_S


@pytest.mark.parametrize(
    ("unit", "setting", "value"),
    [
        # SIGTERM goes to the bot alone: the process that sends its voice has to outlive the last sentence.
        (UNIT, "KillSignal", "SIGTERM"),
        (UNIT, "KillMode", "mixed"),
        # systemd stops in the other order, so the bot can store its sessions when the machine is shut down.
        (UNIT, "After", "postgresql.service"),
        # The bot begins with deleting what is too old, so it waits for the right time.
        (UNIT, "After", "time-sync.target"),
        # By itself systemd stops a service when the system has ended any of its processes for its memory.
        (UNIT, "OOMPolicy", "continue"),
        (RAY_UNIT, "OOMPolicy", "continue"),
        (UNIT, "MemoryMax", "4G"),
    ],
)
def test_a_unit_has_what_was_found_to_be_needed(unit: Path, setting: str, value: str) -> None:
    """Each for the reason beside it."""
    [given] = settings_of(unit.read_text("utf-8"))[setting]
    assert value in given.split()
