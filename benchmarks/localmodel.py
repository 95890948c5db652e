"""A language model for a benchmark: an endpoint that is there already, or a local one started for the run.

The local one is llama.cpp's OpenAI-compatible server with the chat model of `roomtone models pull chat`, on
127.0.0.1 alone. It is somebody else's program in a process of its own; what goes wrong with it is told in one
sentence.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from benchmarks.errors import EndpointError
from bot.models.catalogue import CHAT_QWEN
from bot.models.shelf import ModelShelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.progress import Progress

# A prompt of eleven turns with everything around it has some 2,000 tokens.
CONTEXT_TOKENS = 8_192
# Reading a gigabyte from a slow disk.
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
_POLL_S = 0.5
# Beside nothing else at all: a model's threads on a shared machine slow everybody, itself most.
_NICENESS = 5


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers, in OpenAI's way. `local`: it runs on this machine, for this run."""

    base_url: str
    model: str
    api_key: str = ""
    local: bool = False


def find_model_file(chosen: Path | None, models_dir: Path) -> Path:
    """Return the GGUF file to serve. Raises EndpointError when there is none."""
    if chosen is not None:
        if not chosen.is_file():
            raise EndpointError(f"There is no model file {chosen}. Give the path of a GGUF file.")
        return chosen
    shelf = ModelShelf(models_dir)
    if not shelf.holds(CHAT_QWEN):
        raise EndpointError(f"{CHAT_QWEN.name} is not here. Run `roomtone models pull chat`, or give --base-url.")
    return shelf.path(CHAT_QWEN) / CHAT_QWEN.main_file.name


async def find_python(chosen: str) -> str:
    """Return an interpreter that can serve a GGUF file. Raises EndpointError when there is none."""
    if not chosen:
        if importlib.util.find_spec("llama_cpp") is None:
            raise EndpointError(
                "llama-cpp-python is not installed here. Run `pip install 'llama-cpp-python[server]'`, name another "
                "Python that has it with --llama-python, or give --base-url."
            )
        return sys.executable
    try:
        probe = await asyncio.create_subprocess_exec(
            chosen,
            "-c",
            "import llama_cpp.server",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        status = await asyncio.wait_for(probe.wait(), START_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        raise EndpointError(f"{chosen} cannot be run. Give the path of a Python with llama-cpp-python.") from error
    if status != 0:
        raise EndpointError(
            f"{chosen} has no llama-cpp-python with its server: `pip install 'llama-cpp-python[server]'`."
        )
    return chosen


@asynccontextmanager
async def local_endpoint(python: str, model_file: Path, progress: Progress) -> AsyncIterator[Endpoint]:
    """Serve a GGUF file until the block is left. Raises EndpointError when it doesn't start."""
    port = _free_port()
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            python,
            *("-m", "llama_cpp.server", "--model", str(model_file), "--model_alias", model_file.stem),
            *("--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(CONTEXT_TOKENS)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=lambda: os.nice(_NICENESS),
        )
        try:
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", model_file.stem, local=True)
            progress.say(f"serving {model_file.name} at {endpoint.base_url}")
            await _until_ready(endpoint, process, output)
            yield endpoint
        finally:
            await _stop(process)


async def check_endpoint(endpoint: Endpoint) -> None:
    """Ask the endpoint for its models. Raises EndpointError when nothing answers."""
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    try:
        async with httpx.AsyncClient(timeout=10.0, headers=headers) as client:
            answer = await client.get(f"{endpoint.base_url.rstrip('/')}/models")
            answer.raise_for_status()
    except httpx.HTTPError as error:
        raise EndpointError(
            f"No language model answers at {endpoint.base_url} ({type(error).__name__}). Check the address and the key."
        ) from error


async def _until_ready(endpoint: Endpoint, process: asyncio.subprocess.Process, output: object) -> None:
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while process.returncode is None:
                try:
                    await check_endpoint(endpoint)
                except EndpointError:
                    await asyncio.sleep(_POLL_S)
                else:
                    return
    except TimeoutError as error:
        raise EndpointError(f"The local language model did not start within {START_TIMEOUT_S:g} seconds.") from error
    raise EndpointError(f"The local language model did not start: {_last_line(output)}")


def _last_line(output: object) -> str:
    assert hasattr(output, "seek")
    assert hasattr(output, "read")
    output.seek(0)
    lines = [line for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_port() -> int:
    """Return a port that is free now; llama.cpp's server can't tell which one it got itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
