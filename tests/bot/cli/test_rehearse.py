"""The options of `roomtone rehearse`: settings, and which options go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from bot.cli.rehearse import RehearsalOptions, command, parse_settings, refuse_scenario_options, rehearse
from rehearsal.script.scenario_file import ScenarioError


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
        (RehearsalOptions(sound=Path("evening.mp3")), "evening.ogg"),
        (RehearsalOptions("three-hours", sound=Path("evening.ogg")), "in writing"),
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


TALK = {
    "id": "talk",
    "started": "2026-03-20 20:41 UTC",
    "people": ["Ada", "Bo"],
    "history": [{"speaker": "Ada", "text": "The boat is green.", "at_s": 1.0}],
    "question": {"speaker": "Bo", "text": "Roomtone, what colour is it?", "at_s": 5.0},
}


@pytest.mark.slow
def test_what_a_model_is_sent_is_saved(tmp_path: Path) -> None:
    """The messages for the question of a situation, the question last."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(TALK))
    command(written=file, prompt=tmp_path / "sent.json")
    sent = json.loads((tmp_path / "sent.json").read_text())
    assert sent[0]["role"] == "system"
    assert [each["content"].partition("] ")[2] for each in sent if "] " in each["content"]] == [
        "Ada: The boat is green.",
        "Bo: Roomtone, what colour is it?",
    ]


@pytest.mark.slow
def test_a_talk_that_goes_another_way_is_named(tmp_path: Path) -> None:
    """A line of the bot for which nobody has called it is told with its line."""
    file = tmp_path / "talk.json"
    history = [*TALK["history"], {"speaker": "Roomtone", "text": "Nice.", "at_s": 3.0}]
    file.write_text(json.dumps(TALK | {"history": history}, indent=1))
    with pytest.raises(ScenarioError, match=r'^[^,]*, line 9: "The boat'):
        command(written=file, prompt=tmp_path / "sent.json")


@pytest.mark.parametrize("given", [{"written": Path("talk.json")}, {"prompt": Path("sent.json")}])
def test_a_talk_and_the_file_for_its_messages_go_together(given: dict[str, Path]) -> None:
    """Neither is of use without the other."""
    with pytest.raises(typer.BadParameter, match="go together"):
        command(**given)  # type: ignore[arg-type]
