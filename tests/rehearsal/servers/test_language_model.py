"""Serving a GGUF file with llama.cpp: which Python can, and what is said when it does not start.

A shell script stands for that Python; the real server is tried by `roomtone bench memory` and by hand.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import aiohttp
import pytest

from rehearsal.errors import LanguageModelError
from rehearsal.servers.language_model import find_llama, served_model

if TYPE_CHECKING:
    from pathlib import Path

# What `python -m llama_cpp.server --host H --port P …` is asked for, as small as can be: it has one model, and says
# how it was started in the place of its name.
SERVER = """
import http.server, json, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = json.dumps({"data": [{"id": sys.argv[1:]}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""


def python_that(folder: Path, does: str) -> str:
    """Return the path of a script that stands for an interpreter."""
    shim = folder / "python"
    shim.write_text(f"#!/bin/sh\n{does}\n")
    shim.chmod(0o755)
    return str(shim)


@pytest.mark.asyncio
async def test_python_without_llama_is_refused(tmp_path: Path) -> None:
    """An interpreter that can't serve is told, and so is a path that is none."""
    with pytest.raises(LanguageModelError, match=r"has no llama-cpp-python.*pip install"):
        await find_llama(python_that(tmp_path, "exit 1"))
    with pytest.raises(LanguageModelError, match=r"cannot be run.*Give the path"):
        await find_llama(str(tmp_path / "absent"))


@pytest.mark.asyncio
async def test_python_with_llama_is_taken(tmp_path: Path) -> None:
    """The one that was named."""
    shim = python_that(tmp_path, "exit 0")
    assert await find_llama(shim) == shim


@pytest.mark.asyncio
async def test_without_a_choice_this_python_must_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says what to install when it has not."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LanguageModelError, match=r"not installed here.*--llama-python"):
        await find_llama()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert await find_llama() == sys.executable


@pytest.mark.asyncio
async def test_it_is_served_on_loopback_until_the_block_is_left(tmp_path: Path) -> None:
    """Under the file's name, and a request never cuts another's answer off."""
    (tmp_path / "server.py").write_text(SERVER)
    shim = python_that(tmp_path, f'exec {sys.executable} {tmp_path / "server.py"} "$@"')
    said: list[str] = []
    async with aiohttp.ClientSession() as session:
        async with served_model(shim, tmp_path / "small.gguf", said.append) as served:
            assert served.base_url.startswith("http://127.0.0.1:")
            async with session.get(f"{served.base_url}/models") as response:
                (asked,) = [each["id"] for each in (await response.json(content_type=None))["data"]]
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"{served.base_url}/models")
    assert served.name == "small"
    assert said == [f"serving small.gguf at {served.base_url}"]
    told = dict(pairwise(asked))
    assert (told["--host"], told["--model_alias"], told["--interrupt_requests"]) == ("127.0.0.1", "small", "false")


@pytest.mark.asyncio
async def test_server_that_dies_tells_its_last_words(tmp_path: Path) -> None:
    """And what to look at."""
    shim = python_that(tmp_path, "echo 'no such model' >&2; exit 1")
    with pytest.raises(LanguageModelError, match=r"did not start: no such model\. Check the model file"):
        async with served_model(shim, tmp_path / "model.gguf", lambda _: None):
            pass
