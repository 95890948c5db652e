"""The options of `roomtone rehearse`: settings, and which options go together."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bot.cli.rehearse import RehearsalOptions, parse_settings, refuse_scenario_options, rehearse


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("compaction.mode=off", "compaction.mode", "off"),
        ('compaction.mode="off"', "compaction.mode", "off"),
        ("tuning.first_token_s=5", "tuning.first_token_s", 5),
        ("recall.enabled=true", "recall.enabled", True),
        ("llm.model=" + "[" * 5_000, "llm.model", "[" * 5_000),
        ("llm.model=" + "1" * 5_000, "llm.model", "1" * 5_000),
        ('brain.names=["Otto"]', "brain.names", ["Otto"]),
        ("llm.base_url=http://127.0.0.1:1/v1?a=b", "llm.base_url", "http://127.0.0.1:1/v1?a=b"),
    ],
)
def test_a_setting_is_a_key_and_a_value(word: str, key: str, value: object) -> None:
    """A value that is valid TOML is read as TOML, and any other value is taken as text."""
    assert parse_settings([word]) == {key: value}


def test_a_word_without_a_value_is_refused() -> None:
    """A setting without a value is refused with an example."""
    with pytest.raises(typer.BadParameter, match=r"--set compaction\.mode=off"):
        parse_settings(["compaction.mode"])


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (RehearsalOptions("three-hours", network={"loss": 0.1}), "in writing"),
        (RehearsalOptions("three-hours", realtime=True), "in writing"),
        (RehearsalOptions(report=Path("nowhere/report.json")), "no folder"),
        (RehearsalOptions(picture=Path("nowhere/evening.svg")), "no folder"),
        (RehearsalOptions(picture=Path("evening.png")), "evening.svg"),
    ],
)
def test_what_could_not_be_kept_or_heard_is_not_played(wanted: RehearsalOptions, told: str) -> None:
    """Options that have no effect, and files that cannot be written, are refused before the evening, not after it."""
    with pytest.raises(typer.BadParameter, match=told):
        rehearse(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        RehearsalOptions("hello"),
        RehearsalOptions(report=Path("report.json")),
        RehearsalOptions(picture=Path("evening.svg")),
        RehearsalOptions(realtime=True),
    ],
)
def test_what_is_only_kept_up_plays_nothing(wanted: RehearsalOptions) -> None:
    """With --serve, options about a run are refused; options about the network, servers and settings are allowed."""
    with pytest.raises(typer.BadParameter, match="--serve"):
        refuse_scenario_options(wanted)
    refuse_scenario_options(RehearsalOptions(network={"loss": 0.1}, overrides={"compaction.mode": "off"}))
