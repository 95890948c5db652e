"""A rehearsal that is kept: what its folder has, and that the other commands can look at it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import typer

from bot.cli.rehearse import RehearsalOptions, rehearse
from bot.errors import SetupError
from bot.folder_lock import folder_lock
from config import ConfigError
from config.load import load
from config.schema import Settings
from rehearsal.errors import RehearsalError
from rehearsal.roomtone.trial import trial_in, trial_lines

EVENING = """
title = "A short evening"
written = true
steps = "steps.jsonl"
[people.ada]
"""
STEP = {"who": "ada", "say": "The parcel is in the shed."}


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and the folder for a trial in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_CONFIG", "")
    # A blank, as in the names of many people's folders.
    return tmp_path / "my trial"


def written_scenario(folder: Path) -> Path:
    """Write the scenario and return its file."""
    (folder / "steps.jsonl").write_text(json.dumps(STEP), "utf-8")
    (folder / "short.toml").write_text(EVENING, "utf-8")
    return folder / "short.toml"


def test_its_commands_can_be_typed(trial: Path) -> None:
    """They name the folder as a shell reads it."""
    named = [shlex.split(line) for line in trial_lines(trial, "parcel")[1:]]
    assert [words[1:3] for words in named[:-1]] == [["--config", "my trial"]] * 4
    assert named[-1][-1] == "my trial/transcript.jsonl"


def test_its_settings_are_there_while_it_is_played(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other commands find the memory and the log of a trial that still runs, or that was killed."""
    written = written_scenario(trial.parent)
    seen: list[Settings] = []

    async def play(*_: object, **__: object) -> None:
        seen.append(load(environ={"ROOMTONE_CONFIG": str(trial)}))
        raise SetupError("The player was killed.")

    monkeypatch.setattr("rehearsal.roomtone.playing.play_written", play)
    with pytest.raises(SetupError, match="was killed"):
        rehearse(RehearsalOptions(str(written), keep=trial))
    assert seen[0].storage.data_dir.resolve() == trial.resolve()
    assert seen[0].brain.name == "Roomtone"


def test_the_next_trial_replaces_an_earlier_one(trial: Path) -> None:
    """`make run` can be repeated."""
    with trial_in(trial):
        pass
    (trial / "roomtone.db").write_text("old", "utf-8")
    (trial / "logs").mkdir()
    (trial / "mine.txt").touch()
    with trial_in(trial):
        pass
    assert sorted(path.name for path in trial.iterdir()) == ["mine.txt", "roomtone.toml"]


def test_a_trial_that_is_broken_off_leaves_the_last_one(trial: Path) -> None:
    """It is as it was, with somebody's own files."""
    with trial_in(trial):
        (trial / "roomtone.db").write_text("last", "utf-8")
        (trial / "mine.txt").touch()

    def play_half() -> None:
        with trial_in(trial):
            assert not (trial / "roomtone.db").exists()
            (trial / "roomtone.db").write_text("half", "utf-8")
            (trial / "logs").mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play_half()
    assert (trial / "roomtone.db").read_text("utf-8") == "last"
    assert sorted(path.name for path in trial.iterdir()) == ["mine.txt", "roomtone.db", "roomtone.toml"]


class ProcessKilledError(BaseException):
    """The process has ended. Nothing that it still had to do is done."""


def play(trial: Path, word: str, *others: str, killed_at: int = 99) -> bool:
    """Play a trial with a word in each of its files. Returns whether all were written.

    `others`: files that not every trial has. `killed_at`: at which change of a folder the process is killed.
    """
    steps, written = count(), False

    def until_killed(change: Callable[..., None]) -> Callable[..., None]:
        def changed(*given: Any, **named: Any) -> None:
            if next(steps) >= killed_at:
                raise ProcessKilledError
            change(*given, **named)

        return changed

    with pytest.MonkeyPatch.context() as patch, suppress(ProcessKilledError):
        for name in ("mkdir", "rename", "unlink", "rmdir"):
            patch.setattr(os, name, until_killed(getattr(os, name)))
        with trial_in(trial):
            (trial / "logs").mkdir()
            for name in ("roomtone.toml", "roomtone.db", "logs/roomtone.jsonl", *others):
                with (trial / name).open("a", encoding="utf-8") as file:
                    file.write(word)
            written = True
    return written


def texts_in(trial: Path) -> dict[str, str]:
    """Return the texts of all files below the folder, by their paths."""
    return {str(path.relative_to(trial)): path.read_text("utf-8") for path in trial.rglob("*") if path.is_file()}


# The last trial is aside after five changes, and the next one is written after six.
@pytest.mark.parametrize("killed_before", [None, 3, 6])
def test_a_trial_that_is_killed_leaves_the_last_one(trial: Path, killed_before: int | None) -> None:
    """Whenever the process ends, the last finished trial is there after the next start, whole and alone."""
    play(trial / "other", "next", "roomtone.db-shm", "transcript.jsonl")
    following = texts_in(trial / "other")
    kept: dict[str, str] = {}
    for step in range(40):
        folder = trial / str(step)
        play(folder, "last", "roomtone.db-wal")
        last = texts_in(folder)
        if killed_before is not None:
            play(folder, "half", "roomtone.db-shm", killed_at=killed_before)
            assert texts_in(folder) != last
        written = play(folder, "next", "roomtone.db-shm", "transcript.jsonl", killed_at=step)
        with pytest.raises(KeyboardInterrupt), trial_in(folder):
            raise KeyboardInterrupt
        kept = texts_in(folder)
        assert kept == last or (written and kept == following), step
    assert kept == following


@pytest.mark.parametrize(
    ("is_trial", "is_locked", "told"),
    [
        # A second `make run` beside the first.
        (True, True, "now"),
        # Nobody is sent to stop a bot because they named its data folder.
        (False, True, "belong"),
        # It may be a bot's memory.
        (False, False, "belong"),
    ],
)
def test_a_folder_in_use_or_with_other_files_is_not_touched(
    trial: Path, told: str, *, is_trial: bool, is_locked: bool
) -> None:
    """It is refused before anything is deleted."""
    with trial_in(trial) if is_trial else nullcontext():
        trial.mkdir(exist_ok=True)
    (trial / "roomtone.db").write_text("mine", "utf-8")
    lock = folder_lock(trial) if is_locked else nullcontext()
    with lock, pytest.raises(SetupError, match=told), trial_in(trial):
        pass
    assert (trial / "roomtone.db").read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    "mistake",
    [
        RehearsalOptions("evning"),
        RehearsalOptions("three-hours", realtime=True),
        RehearsalOptions("three-hours", overrides={"brain.nme": "Nova"}),
        RehearsalOptions("hello", overrides={"brain.nme": "Nova"}),
    ],
    ids=["no scenario", "no sound", "no setting", "no setting of a scenario with sound"],
)
def test_a_mistake_deletes_no_earlier_trial(trial: Path, mistake: RehearsalOptions) -> None:
    """Whoever mistypes the next trial still has the last one."""
    with trial_in(trial):
        pass
    (trial / "roomtone.db").write_text("last", "utf-8")
    with pytest.raises((RehearsalError, ConfigError, typer.BadParameter)):
        rehearse(replace(mistake, keep=trial))
    assert (trial / "roomtone.db").read_text("utf-8") == "last"
