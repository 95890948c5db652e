"""Serving a GGUF file with llama.cpp: which Python interpreter can do so, and the errors when the server does not
start.

A shell script stands in for that interpreter. The real server is tested by `roomtone bench memory` and by hand.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import aiohttp
import pytest

from rehearsal.errors import LanguageModelError
from rehearsal.servers.language_model import find_llama_python, serve_model
from tests.fakes.llama import llama_python, python_that

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
async def test_python_without_llama_is_refused(tmp_path: Path) -> None:
    """An interpreter without llama-cpp-python is refused, and so is a path that cannot be run."""
    with pytest.raises(LanguageModelError, match=r"has no llama-cpp-python.*pip install"):
        await find_llama_python(python_that(tmp_path, "exit 1"))
    with pytest.raises(LanguageModelError, match=r"cannot be run.*Give the path"):
        await find_llama_python(str(tmp_path / "absent"))


@pytest.mark.asyncio
async def test_python_with_llama_is_taken(tmp_path: Path) -> None:
    """An interpreter with llama-cpp-python is used as given."""
    shim = llama_python(tmp_path)
    assert await find_llama_python(shim) == shim


@pytest.mark.asyncio
async def test_without_a_choice_this_python_must_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a choice, the running Python must have llama-cpp-python. If not, the error says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LanguageModelError, match=r"not installed here.*--llama-python"):
        await find_llama_python()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert await find_llama_python() == sys.executable


@pytest.mark.asyncio
async def test_it_is_served_on_loopback_until_the_block_is_left(tmp_path: Path) -> None:
    """The model is served on loopback under its file's name until the block is left.

    A request does not interrupt the answer to another request.
    """
    async with aiohttp.ClientSession() as session:
        async with serve_model(llama_python(tmp_path), tmp_path / "small.gguf") as served:
            assert served.base_url.startswith("http://127.0.0.1:")
            async with session.get(f"{served.base_url}/models") as response:
                (asked,) = [each["id"] for each in (await response.json(content_type=None))["data"]]
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"{served.base_url}/models")
    assert served.name == "small"
    told = dict(pairwise(asked))
    assert (told["--host"], told["--model_alias"], told["--interrupt_requests"]) == ("127.0.0.1", "small", "false")


@pytest.mark.asyncio
async def test_server_that_dies_tells_its_last_words(tmp_path: Path) -> None:
    """The error quotes the server's last output and says what to check."""
    shim = python_that(tmp_path, "echo 'no such model' >&2; exit 1")
    with pytest.raises(LanguageModelError, match=r"did not start: no such model\. Check the model file"):
        async with serve_model(shim, tmp_path / "model.gguf"):
            pass
