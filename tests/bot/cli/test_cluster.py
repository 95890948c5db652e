"""`roomtone cluster`: what its words mean, and what it says without a cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bot.cli.cluster import _end_at_once, pool_settings
from bot.cluster.pool_settings import PoolSettings
from bot.cluster.running_process import occupied
from bot.cluster.worker_folder import worker_folder
from bot.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "least", "most"), [("1", 1, 1), ("3", 3, 3), ("1-4", 1, 4), (" 2-2 ", 2, 2), ("16-256", 16, 256)]
)
def test_a_number_or_a_range_is_how_many_there_are(words: str, least: int, most: int) -> None:
    """One number is both the least and the most."""
    assert pool_settings(words, cpus=1, gpus=0) == PoolSettings(least=least, most=most, cpus=1, gpus=0)


@pytest.mark.parametrize("words", ["", "many", "1-", "-4", "1-2-3", "1.5", "4-1", "0", "0-4", "1-999"])
def test_anything_else_is_refused_with_an_example(words: str) -> None:
    """Whoever mistyped the number reads how it is written."""
    with pytest.raises(SetupError, match="MIN-MAX, for example 1-4"):
        pool_settings(words, cpus=1, gpus=0)


@pytest.mark.parametrize("has_rooms", [True, False])
def test_a_machine_that_is_told_twice_says_what_becomes_of_its_rooms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_rooms: bool
) -> None:
    """`cluster up` ends at once, without a handover; a machine without workers has nothing to say."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    worker = worker_folder(tmp_path, "worker-1").path
    if has_rooms:
        with occupied(worker):
            _end_at_once(tmp_path, 130)
    else:
        _end_at_once(tmp_path, 130)
    assert ended == [130]
    assert ("The rooms on this machine go on: `roomtone cluster down`" in capsys.readouterr().out) is has_rooms
