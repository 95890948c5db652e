"""Settings given on the command line; the whole rehearsal is played in tests/scenarios."""

from __future__ import annotations

import pytest
import typer

from bot.cli.rehearse import bundled, parse_settings


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("compaction.mode=off", "compaction.mode", "off"),
        ('compaction.mode="off"', "compaction.mode", "off"),
        ("brain.reply_timeout_s=5", "brain.reply_timeout_s", 5),
        ("logs.speech=true", "logs.speech", True),
        ('brain.wake_names=["Otto"]', "brain.wake_names", ["Otto"]),
        ("llm.base_url=http://127.0.0.1:1/v1?a=b", "llm.base_url", "http://127.0.0.1:1/v1?a=b"),
    ],
)
def test_a_setting_is_a_key_and_a_value(word: str, key: str, value: object) -> None:
    """Values are read as TOML where they are TOML, and taken as they stand elsewhere."""
    assert parse_settings([word]) == {key: value}


def test_the_bundled_scenarios_are_listed() -> None:
    """By the name to type and the title, one a line."""
    lines = bundled()
    assert ["hush", "Be quiet"] in [line.split(maxsplit=1) for line in lines]
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)


def test_a_word_without_a_value_is_refused() -> None:
    """With an example."""
    with pytest.raises(typer.BadParameter, match=r"--set compaction\.mode=off"):
        parse_settings(["compaction.mode"])
