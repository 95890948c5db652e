"""The embedding model of the memory search: absent, damaged, elsewhere or not wanted."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.memory_search import check_embedder, check_memory_mode
from bot.cli.doctor.speech_models import PULL_ALL
from bot.models.catalogue import EMBED_MINILM
from bot.models.entry import ModelFile
from bot.settings import RecallSettings
from compaction.model import Mode
from tests.bot.cli.doctor.findings import is_missing

if TYPE_CHECKING:
    from pathlib import Path


def test_an_absent_embedder_is_missing_where_the_settings_ask_for_it(tmp_path: Path) -> None:
    """Otherwise the bot runs and finds the same words alone, which is a warning."""
    finding = check_embedder(tmp_path, RecallSettings())
    assert (finding.status, finding.remedy) == (Status.WARNING, PULL_ALL)
    assert finding.detail == "embed-minilm is not here: only the same words are found, not what was said in others"
    wanted = check_embedder(tmp_path, RecallSettings(embedder="minilm"))
    assert is_missing(wanted, detail="embed-minilm is not here", remedy=PULL_ALL)


def test_a_damaged_embedder_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bot does not start with one."""
    file = ModelFile("model.onnx", hashlib.sha256(b"weights").hexdigest())
    monkeypatch.setattr("bot.cli.doctor.memory_search.EMBED_MINILM", replace(EMBED_MINILM, files=(file,)))
    folder = tmp_path / EMBED_MINILM.name
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"weights")
    assert check_embedder(tmp_path, RecallSettings()).status is Status.OK
    (folder / "model.onnx").write_bytes(b"weighed")
    assert is_missing(check_embedder(tmp_path, RecallSettings()), detail="SHA-256 differs", remedy=PULL_ALL)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (RecallSettings(embedder="off"), "recall.embedder is off"),
        (RecallSettings(embedder="endpoint"), "text-embedding-3-small at OpenAI"),
        (RecallSettings(base_url="http://127.0.0.1:9/v1"), "text-embedding-3-small at http://127.0.0.1:9/v1"),
    ],
    ids=["off", "OpenAI", "an endpoint"],
)
def test_where_no_model_is_needed_here_none_is_missed(tmp_path: Path, settings: RecallSettings, told: str) -> None:
    """Whatever is in the folder of models."""
    finding = check_embedder(tmp_path, settings)
    assert (finding.status, told in finding.detail) == (Status.OK, True)


@pytest.mark.parametrize(
    ("mode", "searchable", "status", "named"),
    [
        (Mode.SUMMARY, False, Status.OK, "summary"),
        (Mode.OFF, True, Status.OK, "off"),
        (Mode.ROLLING, True, Status.OK, "rolling"),
        (Mode.ROLLING, False, Status.WARNING, "summary is in force"),
    ],
)
def test_the_mode_in_force_is_told(mode: Mode, searchable: bool, status: Status, named: str) -> None:
    """Rolling without memory search is summary, with a warning."""
    finding = check_memory_mode(mode, RecallSettings(enabled=searchable))
    assert (finding.status, finding.detail.startswith(named)) == (status, True)


def test_memory_search_that_is_off_needs_no_model(tmp_path: Path) -> None:
    """Nothing is missing where nobody searches."""
    assert check_embedder(tmp_path, RecallSettings(enabled=False)).status is Status.OK
