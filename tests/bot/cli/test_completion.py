"""The shell completes commands, options, and the names of scenarios and models."""

from __future__ import annotations

import shutil
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
        ("roomtone memory un", ["unfreeze"]),
        ("roomtone --config somewhere models pu", ["pull"]),
        ("roomtone rehearse three", ["three-hours"]),
        ("roomtone models pull voice-j", ["voice-joe"]),
        ("roomtone explain --fa", ["--fact"]),
    ],
)
def test_a_word_is_completed(line: str, offered: list[str]) -> None:
    """Names of commands, options, scenarios and models."""
    assert completed(line) == offered


def test_the_script_works_in_bash() -> None:
    """`--show-completion` prints what bash understands."""
    script = subprocess.run(
        [sys.executable, "-m", "bot", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env=environment(REPOSITORY / "data", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"),
    ).stdout
    assert "_ROOMTONE_COMPLETE=complete_bash" in script
    bash = shutil.which("bash")
    assert bash is not None
    read = subprocess.run([bash, "-c", f"{script}\ncomplete -p roomtone"], capture_output=True, text=True, check=True)
    assert "-F _roomtone_completion roomtone" in read.stdout
