"""Which mind is behind the local chat server: a language model where one can be served, else the embedded responder.

Whoever names a file or a Python means a language model and is told when there is none; for everybody else what is here
decides, and the screen says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.localmodel import find_model_file
from rehearsal.errors import LanguageModelError
from rehearsal.servers.language_model import find_llama

if TYPE_CHECKING:
    from pathlib import Path

    from bot.cli.rehearse_options import WantedModel


@dataclass(frozen=True, slots=True)
class LanguageModelMind:
    """A model file, and the Python that can serve it. `patience`: how many times longer its answers are waited for."""

    python: str
    model_file: Path
    # On two cores it reads a prompt for half a minute before its first word, where others take a second.
    patience: float = 4.0

    @property
    def sentence(self) -> str:
        """Return what the screen says of it."""
        return f"Behind the chat server is the language model {self.model_file.stem}, which llama.cpp loads now."


@dataclass(frozen=True, slots=True)
class EmbeddedMind:
    """The embedded responder. `missing`: why it is no language model, and how to get one. `patience`: as above."""

    missing: str
    patience: float = 1.0

    @property
    def sentence(self) -> str:
        """Return what the screen says of it."""
        return f"Behind the chat server is the embedded responder, which quotes, and no language model: {self.missing}"


Mind: TypeAlias = LanguageModelMind | EmbeddedMind


async def find_mind(wanted: WantedModel, models_dir: Path) -> Mind:
    """Return what can be behind the chat server. Raises `LanguageModelError` when what was named cannot."""
    missing: list[str] = []
    model_file, python = None, ""
    try:
        model_file = find_model_file(wanted.model_file, models_dir)
    except LanguageModelError as error:
        missing.append(str(error))
    try:
        python = await find_llama(wanted.llama_python)
    except LanguageModelError as error:
        missing.append(str(error))
    if model_file is not None and python:
        return LanguageModelMind(python, model_file)
    if wanted.named:
        raise LanguageModelError(" ".join(missing))
    return EmbeddedMind(" ".join(missing))
