"""What a mistake in a configuration prints: which key is meant, what is wrong, and a line that is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from config import ConfigError
from config.load import load
from config.problems import SettingOrigin, example
from config.schema import SETTINGS, Setting

# Its folder must exist.
EXAMPLES = list(SETTINGS.values())


def told(directory: Path, text: str) -> tuple[str, ...]:
    """Return the problems of a settings file."""
    (directory / "roomtone.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(directory=directory, environ={})
    return caught.value.problems


@pytest.mark.parametrize("setting", EXAMPLES, ids=lambda setting: setting.name)
def test_every_example_can_be_followed(tmp_path: Path, setting: Setting) -> None:
    """The line that a message gives as an example is accepted where the mistake was made: in the file, or as a
    variable. An example of a list or a table is not an empty one.
    """
    (tmp_path / "roomtone.toml").write_text(f"[{setting.key[0]}]\n{example(setting, SettingOrigin('it'))}\n", "utf-8")
    # The example of a tool server is for a server that the bot must serve.
    serves = {"ROOMTONE_DISCORD__GUILDS": "[123456789012345678]"}
    load(directory=tmp_path, environ=serves)
    name, _, value = example(setting, SettingOrigin("it", setting.variable)).partition("=")
    assert value or setting.default == ""
    load(directory=tmp_path, environ={**serves, name: value})


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        (
            '[[llm.fallback_models]]\nmodel = "a"\n[[llm.fallback_models]]\nmodel = "b"\napikey = "sk-12345678901234"',
            "apikey in entry 2 of llm.fallback_models in roomtone.toml",
            "api_key?",
        ),
        ('[[llm.prices]]\nmodel = "a"\nprompt = "cheap"\ncompletion = 1', "prompt in entry 1 of llm.prices", "number"),
        ("[[llm.fallback_models]]\nbase_url = ''", "model in entry 1 of llm.fallback_models", "missing"),
        ('[llm]\nfallback_models = ["llama3.2"]', "entry 1 of llm.fallback_models", "table"),
        (
            '[[llm.fallback_models]]\nmodel = "a"\nmax_context_tokens = 0',
            "max_context_tokens in entry 1 of llm.fallback_models",
            "must",
        ),
        ('[[mcp.servers]]\nname = "a"\ncommand = "b"\n"xx\\nyy" = 1', "'xx\\nyy' in entry 1 of mcp.servers", "setting"),
        ('[[mcp.servers]]\nname = "a"', "entry 1 of mcp.servers", "command"),
        # A server's name would be looked up by nobody: the bot would hear people whom it was to ask first.
        ('[room]\nconsent = { al = "ask" }', "room.consent", "id of a server"),
        ('[speaking]\nblocked_words = { 0123 = ["rude"] }', "speaking.blocked_words", "id of a server"),
        # With an answer as long as all that the model takes, every reply would fail, minutes after the start.
        (
            "[llm]\nmax_output_tokens = 4096\n[budget]\nmax_context_tokens = 4096",
            "llm.max_output_tokens",
            "budget.max_context_tokens (4096)",
        ),
        (
            '[llm]\nmax_output_tokens = 1000\n[[llm.fallback_models]]\nmodel = "small"\nmax_context_tokens = 1024',
            "llm.max_output_tokens",
            "max_context_tokens of the model small in llm.fallback_models (1024)",
        ),
        # The bot would wait for this name for ever.
        ('[brain]\nnames = ["Nova", "…"]', "brain.names", "letter"),
    ],
)
def test_a_mistake_names_the_key(tmp_path: Path, text: str, place: str, word: str) -> None:
    """It says which of several tables and which of its keys, and quotes no value, which may be a key of an endpoint."""
    (problem,) = told(tmp_path, text)
    assert place in problem
    assert word in problem
    assert "sk-1234" not in problem
