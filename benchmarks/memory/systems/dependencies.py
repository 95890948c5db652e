"""Finds what a run needs: a language model, an embedder, and other libraries in their own environments.

If something is missing, the report gets a remark and the run continues without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.errors import PeerError
from benchmarks.local_model import ChatEndpoint, check_endpoint, find_model_file
from benchmarks.peers.environment import MEMORY_PEERS, peer_python, peers_parent
from bot.embedding.factory import open_embedder
from bot.llm.settings import LlmSettings
from config.load import load
from rehearsal.errors import LanguageModelError
from rehearsal.servers.language_model import find_llama_python, serve_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from benchmarks.memory.options import MemoryBenchOptions
    from benchmarks.peers.environment import PeerLibrary
    from benchmarks.progress import Progress
    from compaction.ports import Embedder


async def find_endpoint(
    options: MemoryBenchOptions, stack: AsyncExitStack, remark: Callable[[str], None], progress: Progress
) -> ChatEndpoint | None:
    """Return the model's endpoint, or None with a remark if there is none. A server that is started here stops with
    `stack`.

    Raises EndpointError when a configured endpoint does not answer.
    """
    if not options.with_model:
        remark("No language model was asked for, so only what needs none was measured.")
        return None
    if options.base_url:
        endpoint = ChatEndpoint(options.base_url, options.model or LlmSettings().model, options.api_key)
        await check_endpoint(endpoint)
    else:
        try:
            model_file = find_model_file(options.model_file, load().models.directory)
            python = await find_llama_python(options.llama_python)
            progress.say(f"loading {model_file.name}")
            served = await stack.enter_async_context(serve_model(python, model_file))
        except LanguageModelError as error:
            remark(f"Without a language model only what needs none was measured. {error} Or give --base-url.")
            return None
        endpoint = ChatEndpoint(served.base_url, served.name, local=True)
    remark(f"The language model was {endpoint.model}, for all who ask one.")
    return endpoint


async def find_pythons(
    options: MemoryBenchOptions, stack: AsyncExitStack, remark: Callable[[str], None], progress: Progress
) -> dict[PeerLibrary, Path]:
    """Return the Python interpreters of the libraries that could be installed, with a remark for each failed
    installation.
    """
    if not options.peers:
        remark("Other libraries were left out.")
        return {}
    parent = peers_parent(options.peers_dir, stack)
    pythons: dict[PeerLibrary, Path] = {}
    for library in MEMORY_PEERS:
        try:
            pythons[library] = await peer_python(library, parent, progress)
        except PeerError as error:
            remark(str(error))
    return pythons


async def find_embedder(
    options: MemoryBenchOptions, stack: AsyncExitStack, remark: Callable[[str], None]
) -> Embedder | None:
    """Return the configured embedder, or None with a remark if there is none. `stack` closes it."""
    settings = load()
    if not options.embeddings:
        remark("Memory search was measured without embeddings.")
        return None
    embedder = await stack.enter_async_context(open_embedder(settings.recall, models=settings.models, llm=settings.llm))
    if embedder is None:
        remark("Memory search was measured without embeddings; `roomtone models pull embed` brings a local model.")
    return embedder
