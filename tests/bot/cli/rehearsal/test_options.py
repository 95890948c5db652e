"""The options of `roomtone rehearse`: settings, network shares, and which options go together."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from bot.cli.rehearsal.options import (
    RehearsalOptions,
    check_output_folders,
    network_shares,
    parse_settings,
    refuse_scenario_options,
    refuse_sound_options,
)


@pytest.mark.parametrize(
    ("word", "key", "value"),
    [
        ("compaction.mode=off", "compaction.mode", "off"),
        ('compaction.mode="off"', "compaction.mode", "off"),
        ("llm.first_token_timeout_s=5", "llm.first_token_timeout_s", 5),
        ("logs.speech=true", "logs.speech", True),
        ("brain.name=" + "[" * 5_000, "brain.name", "[" * 5_000),
        ("brain.name=" + "1" * 5_000, "brain.name", "1" * 5_000),
        ('brain.wake_names=["Otto"]', "brain.wake_names", ["Otto"]),
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


def test_only_the_shares_that_were_given_replace_the_scenarios() -> None:
    """A share of None keeps the scenario's share; a share of 0 replaces it."""
    assert network_shares(loss=0.05, padding=None, reorder=0.0) == {"loss": 0.05, "reorder": 0.0}


@pytest.mark.parametrize(
    "wanted",
    [
        RehearsalOptions("three-hours", network={"loss": 0.1}),
        RehearsalOptions("three-hours", realtime=True),
    ],
)
def test_an_evening_in_writing_has_no_use_for_what_is_about_sound(wanted: RehearsalOptions) -> None:
    """For a written evening, options about sound or models are refused instead of silently ignored."""
    with pytest.raises(typer.BadParameter, match="three-hours is a written evening"):
        refuse_sound_options(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        RehearsalOptions("hello"),
        RehearsalOptions(speech=Path("recordings")),
        RehearsalOptions(limit=3),
        RehearsalOptions(report=Path("report.json")),
        RehearsalOptions(picture=Path("evening.svg")),
        RehearsalOptions(realtime=True),
    ],
)
def test_what_is_only_kept_up_plays_nothing(wanted: RehearsalOptions) -> None:
    """With --serve, options about a run are refused; options about the network, servers and settings are allowed."""
    with pytest.raises(typer.BadParameter, match="--serve plays nothing"):
        refuse_scenario_options(wanted)
    refuse_scenario_options(RehearsalOptions(network={"loss": 0.1}, overrides={"compaction.mode": "off"}))


def test_what_could_not_be_kept_is_not_played(tmp_path: Path) -> None:
    """A missing output folder is reported before the evening, not after it."""
    check_output_folders(RehearsalOptions(report=tmp_path / "report.json", picture=Path("evening.svg")))
    for wanted in (
        RehearsalOptions(report=tmp_path / "a" / "r.json"),
        RehearsalOptions(picture=tmp_path / "a" / "e.svg"),
    ):
        with pytest.raises(typer.BadParameter, match="there is no folder"):
            check_output_folders(wanted)


def test_settings_and_a_report_go_with_any_evening() -> None:
    """Settings and a report are allowed for a written evening too."""
    refuse_sound_options(
        RehearsalOptions("three-hours", report=Path("report.json"), overrides={"compaction.mode": "off"})
    )
