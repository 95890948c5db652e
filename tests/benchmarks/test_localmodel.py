"""Finding a language model for a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.errors import EndpointError
from benchmarks.localmodel import Endpoint, check_endpoint, find_model_file, find_python, local_endpoint
from benchmarks.progress import Silence
from bot.models.catalogue import CHAT_QWEN

if TYPE_CHECKING:
    from pathlib import Path


def test_chosen_file_goes_before_the_pulled_one(tmp_path: Path) -> None:
    """Whoever names a file gets it."""
    chosen = tmp_path / "own.gguf"
    chosen.write_bytes(b"")
    assert find_model_file(chosen, tmp_path) == chosen


def test_pulled_model_is_found_on_the_shelf(tmp_path: Path) -> None:
    """Without a choice the chat model of the catalogue serves."""
    place = tmp_path / CHAT_QWEN.name
    place.mkdir()
    (place / CHAT_QWEN.main_file.name).write_bytes(b"")
    assert find_model_file(None, tmp_path) == place / CHAT_QWEN.main_file.name


def test_missing_model_says_how_to_get_one(tmp_path: Path) -> None:
    """The sentence names the command."""
    with pytest.raises(EndpointError, match="roomtone models pull chat"):
        find_model_file(None, tmp_path)
    with pytest.raises(EndpointError, match="There is no model file"):
        find_model_file(tmp_path / "absent.gguf", tmp_path)


@pytest.mark.asyncio
async def test_python_without_llama_is_refused(tmp_path: Path) -> None:
    """An interpreter that can't serve is told, and so is a path that is none."""
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    with pytest.raises(EndpointError, match="has no llama-cpp-python"):
        await find_python(str(silent))
    with pytest.raises(EndpointError, match="cannot be run"):
        await find_python(str(tmp_path / "absent"))


@pytest.mark.asyncio
async def test_dead_endpoint_is_told() -> None:
    """Nothing listens on the discard port."""
    with pytest.raises(EndpointError, match="No language model answers"):
        await check_endpoint(Endpoint("http://127.0.0.1:9/v1", "none"))


@pytest.mark.asyncio
async def test_server_that_dies_tells_its_last_words(tmp_path: Path) -> None:
    """This interpreter has no module of that name, and says so."""
    shim = tmp_path / "python"
    shim.write_text(f"#!/bin/sh\nexec {sys.executable} -c \"raise SystemExit('no such model')\"\n")
    shim.chmod(0o755)
    with pytest.raises(EndpointError, match="did not start: no such model"):
        async with local_endpoint(str(shim), tmp_path / "model.gguf", Silence()):
            pass
