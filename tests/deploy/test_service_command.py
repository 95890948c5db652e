"""`deploy/service-command` runs a command as the unit runs the bot. systemd itself is played by two scripts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.scenarios.program import REPOSITORY

UNIT = REPOSITORY / "deploy" / "roomtone.service"
# What `systemctl edit` adds, as `systemctl cat` shows it.
EDITED = """
# /etc/systemd/system/roomtone.service.d/override.conf
[Service]
MemoryMax=2G
Environment=ROOMTONE_TIERS__RETENTION_DAYS=365 "ROOMTONE_BRAIN__NAMES=Otto the bot"
"""


def as_service(folder: Path, *words: str) -> list[str]:
    """Run the script and return what it gives systemd-run."""
    programs = folder / "bin"
    programs.mkdir()
    shown = folder / "unit"
    shown.write_text(f"# /etc/systemd/system/roomtone.service\n{UNIT.read_text('utf-8')}{EDITED}", "utf-8")
    for name, body in {
        "systemctl": f'[ "$*" = "cat roomtone.service" ] && cat {shown}',
        "systemd-run": r'printf "%s\0" "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        (programs / name).chmod(0o755)
    ended = subprocess.run(
        [REPOSITORY / "deploy" / "service-command", *words],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    return ended.stdout.split("\0")[:-1]


def test_a_command_gets_what_the_service_has(tmp_path: Path) -> None:
    """Every line of the unit and of its changes that decides which settings are read, in order, then the command."""
    given = as_service(tmp_path, "memory", "search", "two words", "")
    at = given.index("--")
    assert given[at:] == ["--", "/opt/roomtone/.venv/bin/roomtone", "memory", "search", "two words", ""]
    decides = ("User=", "StateDirectory", "WorkingDirectory=", "Environment=", "LoadCredential=", "UMask=")
    lines = [line for line in (UNIT.read_text("utf-8") + EDITED).splitlines() if line.startswith(decides)]
    assert [word.removeprefix("--property=") for word in given[:at] if word.startswith("--property=")] == lines
    # The folder is there before the service has run for the first time.
    assert {"StateDirectory=roomtone", "StateDirectoryMode=0700", "LoadCredential=env:/etc/roomtone/env"} <= set(lines)
    assert lines[-1].startswith("Environment=ROOMTONE_TIERS__RETENTION_DAYS=365")


def test_its_status_and_its_answer_are_the_commands(tmp_path: Path) -> None:
    """It waits for the command, and a question can be answered."""
    given = as_service(tmp_path, "memory", "prune")
    assert {"--wait", "--pty", "--pipe"} <= set(given[: given.index("--")])


def test_without_a_unit_nothing_is_run(tmp_path: Path) -> None:
    """Where the service is not installed, systemd's own sentence is the answer."""
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho No files found for roomtone.service. >&2\nexit 1\n", "utf-8")
    (tmp_path / "systemctl").chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError) as failed:
        subprocess.run(
            [REPOSITORY / "deploy" / "service-command", "tail"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        )
    assert "No files found" in failed.value.stderr
