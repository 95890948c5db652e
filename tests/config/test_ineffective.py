"""A setting that another one switches off is told at the start, with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.document import render
from config.load import load

if TYPE_CHECKING:
    from pathlib import Path

URL = '"http://127.0.0.1:9/v1"'
FOR_ALL = 'guilds = [500]\nroles = ["everyone"]'


def told(directory: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """Return the sentences that reading these settings prints."""
    (directory / "roomtone.toml").write_text(text, "utf-8")
    sentences: list[str] = []
    load(directory=directory, environ=environ or {}, notify=sentences.append)
    return sentences


@pytest.mark.parametrize(
    ("without_effect", "with_effect"),
    [
        (f"[asr]\nbase_url = {URL}", '[asr]\nengine = "endpoint"'),
        ('[asr]\napi_key = "key"', '[asr]\nengine = "endpoint"'),
        (f"[speaking]\nbase_url = {URL}", '[speaking]\nengine = "auto"'),
        ('[speaking]\nvoice_name = "nova"', '[speaking]\nengine = "endpoint"'),
        ('[speaking]\nfallback = "none"', '[speaking]\nengine = "auto"'),
        (f"[recall]\nbase_url = {URL}", '[recall]\nembedder = "auto"'),
        ('[recall]\nmodel = "small"', '[recall]\nembedder = "endpoint"'),
        (f"[screen]\nbase_url = {URL}", '[screen]\nmodel = "eyes"'),
        ("[screen]\nmax_looks_per_hour = 1", '[screen]\nmodel = "eyes"'),
        ("[realtime]\nenabled = true", '[speaking]\nmoderation = "off"'),
        ("[compaction]\ntimeout_s = 10", '[compaction]\nsummariser = "auto"'),
    ],
)
def test_a_setting_without_effect_is_told(tmp_path: Path, without_effect: str, with_effect: str) -> None:
    """The sentence names it with its place, the setting that is in the way, and what to set. What has an effect says
    nothing.
    """
    key = without_effect.partition("]\n")[2].partition(" ")[0]
    section = without_effect[1:].partition("]")[0]
    off = {
        "ROOMTONE_ASR__LANGUAGE": "de",
        "ROOMTONE_SPEAKING__ENGINE": "piper",
        "ROOMTONE_SPEAKING__MODERATION": "endpoint",
        "ROOMTONE_RECALL__EMBEDDER": "minilm",
        "ROOMTONE_COMPACTION__SUMMARISER": "extractive",
    }
    (sentence,) = told(tmp_path, without_effect, off)
    assert sentence.startswith(f"{section}.{key} in roomtone.toml line 2 has no effect: ")
    assert sentence.endswith(", or delete it.")
    assert " Set " in sentence
    environ = {
        "ROOMTONE_"
        + with_effect[1:].partition("]")[0].upper()
        + "__"
        + with_effect.partition("]\n")[2].partition(" ")[0].upper(): with_effect.partition('"')[2].rstrip('"')
    }
    assert told(tmp_path, without_effect, environ) == []


def test_what_belongs_together_is_one_sentence(tmp_path: Path) -> None:
    """An address and its key are told together."""
    (sentence,) = told(tmp_path, f'[asr]\nbase_url = {URL}\napi_key = "key-12345"')
    assert sentence == (
        "asr.base_url in roomtone.toml line 2, asr.api_key in roomtone.toml line 3 have no effect: speech is "
        'recognised on this machine (asr.engine = local). Set asr.engine = "endpoint", or delete them.'
    )


def test_a_copy_of_all_defaults_says_nothing(tmp_path: Path) -> None:
    """Some people begin with the whole of default.toml."""
    assert told(tmp_path, render()) == []
    assert told(tmp_path, render().replace('engine = "auto"', 'engine = "piper"')) == []


def test_what_the_program_sets_says_nothing(tmp_path: Path) -> None:
    """The operator cannot mend what a rehearsal overrides."""
    sentences: list[str] = []
    overrides = {"asr.base_url": "http://127.0.0.1:9/v1"}
    load(directory=tmp_path, environ={}, overrides=overrides, notify=sentences.append)
    assert sentences == []


@pytest.mark.parametrize(
    ("entry", "told_of"),
    [
        (f'command = "x"\n{FOR_ALL}\nheaders = {{ A = "b" }}', "headers of the server a in mcp.servers has no effect"),
        (f'url = {URL}\n{FOR_ALL}\nargs = ["b"]', "args of the server a in mcp.servers has no effect"),
        (f'url = {URL}\n{FOR_ALL}\nenv = {{ A = "b" }}', "env of the server a in mcp.servers has no effect"),
        ('command = "x"\nargs = ["b"]', "The server a in mcp.servers has no effect: it is for nobody."),
    ],
)
def test_a_tool_server_without_use_is_told(tmp_path: Path, entry: str, told_of: str) -> None:
    """A program takes no headers, a url no arguments, and without `guilds` and `roles` nobody may use it."""
    (sentence,) = told(tmp_path, f'[discord]\nguilds = [500]\n[[mcp.servers]]\nname = "a"\n{entry}')
    assert sentence.startswith(told_of)
