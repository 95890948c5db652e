"""The options of `roomtone rehearse`: settings, and which options go together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("run", "given", "told"),
    [
        (parse_settings, ["compaction.mode"], r"--set compaction\.mode=off"),
        # What has no effect, and what cannot be written, is told before the evening, not after it.
        (rehearse, RehearsalOptions("three-hours", network={"loss": 0.1}), "in writing"),
        (rehearse, RehearsalOptions("three-hours", realtime=True), "in writing"),
        (rehearse, RehearsalOptions(report=Path("nowhere/report.json")), "no folder"),
        (rehearse, RehearsalOptions(picture=Path("nowhere/evening.svg")), "no folder"),
        (rehearse, RehearsalOptions(picture=Path("evening.png")), "evening.svg"),
        (rehearse, RehearsalOptions(sound=Path("evening.mp3")), "evening.ogg"),
        (rehearse, RehearsalOptions("three-hours", sound=Path("evening.ogg")), "in writing"),
        # What is only kept up plays nothing.
        (refuse_scenario_options, RehearsalOptions("hello"), "--serve"),
        (refuse_scenario_options, RehearsalOptions(report=Path("report.json")), "--serve"),
        (refuse_scenario_options, RehearsalOptions(picture=Path("evening.svg")), "--serve"),
        (refuse_scenario_options, RehearsalOptions(realtime=True), "--serve"),
        # A talk and the file for its messages go together.
        (lambda path: command(written=path), Path("talk.json"), "go together"),
        (lambda path: command(prompt=path), Path("sent.json"), "go together"),
    ],
)
def test_what_cannot_be_played_as_asked_is_refused(run: Callable[[Any], object], given: Any, told: str) -> None:
    with pytest.raises(typer.BadParameter, match=told):
        run(given)


def test_what_is_kept_up_may_have_a_network_and_settings() -> None:
    refuse_scenario_options(RehearsalOptions(network={"loss": 0.1}, overrides={"compaction.mode": "off"}))


TALK: dict[str, Any] = {
    "id": "talk",
    "started": "2026-03-20 20:41 UTC",
    "people": ["Ada", "Bo"],
    "history": [{"speaker": "Ada", "text": "The boat is green.", "at_s": 1.0}],
    "question": {"speaker": "Bo", "text": "Roomtone, what colour is it?", "at_s": 5.0},
}


@pytest.mark.slow
def test_what_a_model_is_sent_is_saved(tmp_path: Path) -> None:
    """The messages for each question of a situation, the question last; the tools, and what a search for it found. All
    are asked at the same time.
    """
    file = tmp_path / "talk.json"
    first = TALK["question"] | {"at_s": 605.0}
    questions = [first, first | {"speaker": "Ada", "text": "Roomtone, whose boat is it?"}]
    file.write_text(json.dumps(TALK | {"question": first, "more_questions": questions[1:]}))
    command(written=file, prompt=tmp_path / "sent.json")
    for asked, sent in zip(questions, json.loads((tmp_path / "sent.json").read_text()), strict=True):
        messages, searched = sent["messages"], sent["after_search"]
        assert messages[0]["role"] == "system"
        assert [each["content"].partition("] ")[2] for each in messages if "] " in each["content"]] == [
            "Ada: The boat is green.",
            f"{asked['speaker']}: {asked['text']}",
        ]
        assert any(each["content"].startswith("[20:51] ") for each in messages)
        assert "memory_search" in [each["function"]["name"] for each in sent["tools"]]
        (call,) = next(each["tool_calls"] for each in searched if "tool_calls" in each)
        assert json.loads(call["function"]["arguments"]) == {"query": asked["text"]}
        assert any(each.get("tool_call_id") == call["id"] for each in searched)


@pytest.mark.slow
def test_a_fold_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A long talk of which no fold was written: the messages are saved, and the command fails."""
    for folder in ("talks", "folds"):
        (tmp_path / folder).mkdir()
    (tmp_path / "folds" / "talk.json").write_text("{}")
    history = [{"speaker": "Ada", "text": f"I saw boat {at}.", "at_s": 8.0 * at} for at in range(90)]
    file, saved = tmp_path / "talks" / "talk.json", tmp_path / "sent.json"
    file.write_text(json.dumps(TALK | {"history": history, "question": TALK["question"] | {"at_s": 730.0}}))
    with pytest.raises(typer.Exit) as ended:
        command(written=file, prompt=saved)
    assert ended.value.exit_code == 1
    assert "from turn 0 on" in capsys.readouterr().err
    assert saved.exists()


@pytest.mark.slow
def test_a_talk_that_goes_another_way_is_named(tmp_path: Path) -> None:
    """A line of the bot for which nobody has called it is told with its line."""
    file = tmp_path / "talk.json"
    history = [*TALK["history"], {"speaker": "Roomtone", "text": "Nice.", "at_s": 3.0}]
    file.write_text(json.dumps(TALK | {"history": history}, indent=1))
    with pytest.raises(ScenarioError, match=r'^[^,]*, line 9: "The boat'):
        command(written=file, prompt=tmp_path / "sent.json")
