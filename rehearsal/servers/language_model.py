"""Serves a language model on this machine: llama.cpp's OpenAI-compatible server with a GGUF file, on 127.0.0.1.

The server runs in its own process, which this module starts and ends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import aiohttp

from rehearsal.errors import LanguageModelError
from rehearsal.servers.free_port import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

# A prompt of eleven turns with its instructions has about 2,000 tokens.
CONTEXT_TOKENS = 8_192
# Reading a gigabyte from a slow disk takes this long.
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 10.0
_POLL_S = 0.5
_PROBE_TIMEOUT_S = 10.0
# The model's threads must not slow down everything else on a shared machine.
_NICENESS = 5
_INSTALL = "`pip install 'llama-cpp-python[server]'`"
_MAX_LAST_LINE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A language model: its OpenAI-compatible `base_url` and its name at that server."""

    base_url: str
    name: str


async def find_llama_python(python: str = "") -> str:
    """Return the Python interpreter that can serve a GGUF file: `python`, or the running interpreter if `python` is
    empty.

    Raises `LanguageModelError` when the interpreter lacks llama-cpp-python.
    """
    if not python:
        if importlib.util.find_spec("llama_cpp") is None:
            raise LanguageModelError(
                f"llama-cpp-python is not installed here. Run {_INSTALL}, or name another Python that has it with "
                "--llama-python."
            )
        return sys.executable
    if await _status_of(python, "-c", "import llama_cpp.server") != 0:
        raise LanguageModelError(f"{python} has no llama-cpp-python with its server: {_INSTALL} with that Python.")
    return python


async def _status_of(python: str, *arguments: str) -> int:
    """Run the interpreter and return its exit status. Raises `LanguageModelError` if it cannot be run."""
    silent = asyncio.subprocess.DEVNULL
    try:
        probe = await asyncio.create_subprocess_exec(python, *arguments, stdin=silent, stdout=silent, stderr=silent)
    except OSError as error:
        raise LanguageModelError(f"{python} cannot be run. Give the path of a Python with llama-cpp-python.") from error
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            return await probe.wait()
    except TimeoutError as error:
        raise LanguageModelError(
            f"{python} does not answer. Give the path of a Python with llama-cpp-python."
        ) from error
    finally:
        await _stop(probe)


@asynccontextmanager
async def serve_model(python: str, model_file: Path) -> AsyncIterator[ServedModel]:
    """Serve a GGUF file until the block ends. Loading the file takes seconds, or minutes on a slow disk.

    *Ownership*: the process ends with the block. Raises `LanguageModelError` when the process does not start.
    """
    # llama.cpp's server cannot report a port that it chose itself.
    port = free_port()
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            python,
            *("-m", "llama_cpp.server", "--model", str(model_file), "--model_alias", model_file.stem),
            *("--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(CONTEXT_TOKENS)),
            # By default a new request breaks off the answer to the request before, so a summary would interrupt a
            # reply.
            *("--interrupt_requests", "false"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=lambda: os.nice(_NICENESS),
        )
        try:
            model = ServedModel(f"http://127.0.0.1:{port}/v1", model_file.stem)
            await _until_ready(model, process, output)
            yield model
        finally:
            await _stop(process)


async def _until_ready(model: ServedModel, process: asyncio.subprocess.Process, output: IO[bytes]) -> None:
    patience = aiohttp.ClientTimeout(total=_PROBE_TIMEOUT_S)
    try:
        async with asyncio.timeout(START_TIMEOUT_S), aiohttp.ClientSession(timeout=patience) as session:
            while process.returncode is None:
                if await _answers(session, model):
                    return
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        raise LanguageModelError(
            f"The local language model did not start within {START_TIMEOUT_S:g} seconds. Try a smaller model file."
        ) from error
    raise LanguageModelError(
        f"The local language model did not start: {_last_line(output)}. Check the model file, and llama-cpp-python."
    )


async def _answers(session: aiohttp.ClientSession, model: ServedModel) -> bool:
    try:
        async with session.get(f"{model.base_url}/models") as response:
            return response.ok
    except (aiohttp.ClientError, TimeoutError):
        return False


def _last_line(output: IO[bytes]) -> str:
    output.seek(0)
    lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].rstrip(".")[:_MAX_LAST_LINE_CHARS] if lines else "it printed nothing"


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
