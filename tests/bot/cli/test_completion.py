"""The shell completes commands, options, and the names of scenarios and models."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.scenarios.program import REPOSITORY, environment


def completed(line: str) -> list[str]:
    """Return what bash offers for the last word of a line."""
    words = line.split(" ")
    ended = subprocess.run(
        [sys.executable, "-m", "bot"],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env=environment(
            REPOSITORY / "data",
            _ROOMTONE_COMPLETE="complete_bash",
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1),
        ),
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("roomtone re", ["rehearse", "replay", "restore"]),
        ("roomtone --config somewhere models pu", ["pull"]),
        ("roomtone rehearse three", ["three-hours"]),
        ("roomtone models pull voice-j", ["voice-joe"]),
    ],
)
def test_a_word_is_completed(line: str, offered: list[str]) -> None:
    """Names of commands, options, scenarios and models."""
    assert completed(line) == offered
