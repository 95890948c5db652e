"""Values that cannot be used are refused with a sentence: a blank path would be the working directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.errors import ConfigError
from config.load import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[storage]\ndata_dir = ""', "storage.data_dir in roomtone.toml line 2 is empty. Name a path"),
        ('[storage]\ndata_dir = "\\u0000"', "storage.data_dir in roomtone.toml line 2 is empty. Name a path"),
        ('[models]\ndirectory = " "', "models.directory in roomtone.toml line 2 is empty. Name a path"),
        ('[discord]\nca_file = " "', "discord.ca_file in roomtone.toml line 2 is empty. Name a path"),
        ('[llm]\nmodel = " "', "llm.model in roomtone.toml line 2 is empty. Name a text"),
        ('[brain]\nname = " "', "brain.name in roomtone.toml line 2 is empty. Name a text"),
        ('[discord]\napi_base = "localhost:8000"', "discord.api_base in roomtone.toml line 2 is not usable"),
        ('[discord]\napi_base = "ws://localhost"', "it is not an address that begins with http:// or https://"),
        ('[llm]\nbase_url = "http://my server/v1"', "it is not an address that begins with http:// or https://"),
        ('[[mcp.servers]]\nname = "a"\nurl = "http://"', "must be an address that begins with http:// or https://"),
        ('[web]\nhost = "http://localhost"', "without http:// and without a port (web.port)"),
        ('[web]\nhost = "127.0.0.1:8095"', "without http:// and without a port (web.port)"),
    ],
)
def test_what_nobody_meant_is_refused_once(tmp_path: Path, text: str, said: str) -> None:
    """Blanks are no folder, and an address has a scheme. Each has one sentence with a remedy."""
    (tmp_path / "roomtone.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as refused:
        load(directory=tmp_path, environ={})
    (problem,) = refused.value.problems
    assert said in problem
    assert "For example: " in problem


@pytest.mark.parametrize(
    "text",
    [
        "[logs]\nspeech = true",
        '[logs]\nspeech = "yes"',
        '[asr]\nmodel = ""\ncpu_threads = "2"',
        '[discord]\nca_file = ""\napi_base = ""',
        '[brain]\ninstructions = " "',
        '[web]\nhost = "::1"',
        '[web]\nhost = "fe80::1%eth0"',
        '[web]\nhost = "my-machine.example.org"',
        '[web]\nhost = "0.0.0.0"',
    ],
)
def test_what_is_meant_is_taken(tmp_path: Path, text: str) -> None:
    """Numbers and switches may be written as text, and an empty text is a default of several settings."""
    (tmp_path / "roomtone.toml").write_text(text, "utf-8")
    assert load(directory=tmp_path, environ={}).web.port == 8095
