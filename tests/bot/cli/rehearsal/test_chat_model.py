"""Which model answers behind the local chat server, and what the terminal says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.cli.rehearsal.chat_model import LocalLanguageModel, QuotingResponder, find_chat_backend
from bot.cli.rehearsal.options import LanguageModelChoice
from bot.models.catalogue import CHAT_QWEN
from rehearsal.errors import LanguageModelError
from tests.fakes.llama import llama_python, python_that

if TYPE_CHECKING:
    from pathlib import Path

NO_FILE = "roomtone models pull chat"
NO_LLAMA = "pip install 'llama-cpp-python[server]'"
HERE = "this Python"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    # What is installed, what is named in the options, and the result: the model's file and Python, or what is missing.
    ("pulled", "llama_here", "file_named", "python_named", "file", "python", "missing"),
    [
        (True, True, False, False, "pulled", HERE, ()),
        (True, True, True, False, "named", HERE, ()),
        (True, False, False, True, "pulled", "named", ()),
        (False, False, True, True, "named", "named", ()),
        (False, True, False, False, "", "", (NO_FILE,)),
        (True, False, False, False, "", "", (NO_LLAMA,)),
        (False, False, False, False, "", "", (NO_FILE, NO_LLAMA)),
    ],
)
async def test_a_language_model_where_one_can_be_served(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    pulled: bool,
    llama_here: bool,
    file_named: bool,
    python_named: bool,
    file: str,
    python: str,
    missing: tuple[str, ...],
) -> None:
    """A named file or Python wins over an installed one. Without a language model, the terminal says how to get one."""
    shelf, named = tmp_path / "models" / CHAT_QWEN.name, tmp_path / "own.gguf"
    shelf.mkdir(parents=True)
    named.write_bytes(b"")
    if pulled:
        (shelf / CHAT_QWEN.main_file.name).write_bytes(b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if llama_here else None)
    monkeypatch.setattr("sys.executable", HERE)
    other = llama_python(tmp_path)
    wanted = LanguageModelChoice(named if file_named else None, other if python_named else "")
    mind = await find_chat_backend(wanted, tmp_path / "models")
    if missing:
        assert isinstance(mind, QuotingResponder)
        assert "embedded responder" in mind.sentence
        assert all(remedy in mind.sentence for remedy in missing)
        assert [remedy for remedy in (NO_FILE, NO_LLAMA) if remedy in mind.sentence] == list(missing)
        return
    assert isinstance(mind, LocalLanguageModel)
    assert mind.model_file == (named if file == "named" else shelf / CHAT_QWEN.main_file.name)
    assert mind.python == (other if python == "named" else HERE)
    assert mind.model_file.stem in mind.sentence


@pytest.mark.asyncio
@pytest.mark.parametrize("named", ["file", "python", "both"])
async def test_who_names_a_model_is_told_when_there_is_none(tmp_path: Path, named: str) -> None:
    """If a named model cannot be used, an error says so; the embedded responder does not silently replace it."""
    absent = tmp_path / "absent.gguf" if named != "python" else None
    python = python_that(tmp_path, "exit 1") if named != "file" else ""
    with pytest.raises(LanguageModelError) as told:
        await find_chat_backend(LanguageModelChoice(absent, python), tmp_path)
    assert ("There is no model file" in str(told.value)) is (absent is not None)
    assert "llama-cpp-python" in str(told.value)
