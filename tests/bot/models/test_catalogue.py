"""The rules that each model of the catalogue follows."""

from __future__ import annotations

import re

import pytest

from bot.errors import ModelError
from bot.models.catalogue import ALIASES, CATALOGUE, RECOMMENDED, REQUIRED, find_model
from bot.models.entry import ModelKind


def test_every_file_has_a_hash() -> None:
    """Each file of each model has its own name and a SHA-256, so what is downloaded is always checked. One that comes
    in bundles of a fixed version has members.
    """
    for entry in CATALOGUE:
        assert all("==" in package for package in entry.bundle_packages)
        for file in entry.files:
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256), (entry.name, file.name)
            assert "*" not in file.name + file.hub_path
            assert file.members or not entry.bundle_packages, (entry.name, file.name)


def test_every_whisper_model_has_a_revision() -> None:
    """Each Whisper model comes from one revision of its hub repository, and its weights are its own."""
    whisper = [entry for entry in CATALOGUE if entry.kind is ModelKind.RECOGNISER]
    assert len(whisper) == 5
    for entry in whisper:
        assert re.fullmatch(r"[0-9a-f]{40}", entry.hub_revision or ""), entry.name
        assert {file.name for file in entry.files} >= {"model.bin", "config.json", "tokenizer.json"}
    assert len({entry.main_file.sha256 for entry in whisper}) == 5


def test_names_and_aliases_lead_to_one_model() -> None:
    """Every name is unique, and every alias names a model."""
    names = [entry.name for entry in CATALOGUE]
    assert len(set(names)) == len(names)
    assert {find_model(alias).name for alias in ALIASES} <= set(names)


def test_a_mistyped_name_is_answered_with_the_likely_one() -> None:
    """The error for a mistyped name suggests the right one."""
    with pytest.raises(ModelError, match="whisper-base"):
        find_model("whisper-bsae")


def test_what_setup_brings_can_come_without_the_hub() -> None:
    """Every required or recommended model is also available as packages, for machines that only reach the package
    index.
    """
    assert all(entry.bundle_packages for entry in (*REQUIRED, *RECOMMENDED))
