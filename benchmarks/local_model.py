"""The language model for a benchmark: an existing endpoint, or a model file to serve here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from benchmarks.errors import EndpointError
from bot.models.catalogue import CHAT_QWEN
from bot.models.directory import ModelDirectory
from rehearsal.errors import LanguageModelError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """The address of a language model with OpenAI's API. `local`: this run started the model on this machine."""

    base_url: str
    model: str
    api_key: str = ""
    local: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """Return what a request needs to be let in: the key, if there is one."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def find_model_file(chosen: Path | None, models_dir: Path) -> Path:
    """Return the GGUF file to serve: `chosen` if given, or else the downloaded model.

    Raises `LanguageModelError` when there is none.
    """
    if chosen is not None:
        if not chosen.is_file():
            raise LanguageModelError(f"There is no model file {chosen}. Give the path of a GGUF file.")
        return chosen
    model_directory = ModelDirectory(models_dir)
    if not model_directory.holds(CHAT_QWEN):
        raise LanguageModelError(
            f"{CHAT_QWEN.name} is not here. Run `roomtone models pull chat`, or name a GGUF file with --model-file."
        )
    return model_directory.path(CHAT_QWEN) / CHAT_QWEN.main_file.name


async def check_endpoint(endpoint: ChatEndpoint) -> None:
    """Ask the endpoint for its models. Raises EndpointError when nothing answers."""
    try:
        async with httpx2.AsyncClient(timeout=10.0, headers=endpoint.headers) as client:
            answer = await client.get(f"{endpoint.base_url.rstrip('/')}/models")
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise EndpointError(
            f"No language model answers at {endpoint.base_url} ({type(error).__name__}). Check the address and the key."
        ) from error
