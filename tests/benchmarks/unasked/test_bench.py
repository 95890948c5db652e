"""The benchmark of unasked speech: what it plays, counts and leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.progress import NoProgress
from benchmarks.unasked.bench import run, unasked_targets
from benchmarks.unasked.options import UnaskedBenchOptions

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.report import Json

EVENING = [
    ("Matt", "Welcome. Thanks, Max!"),
    ("Sam", "We leave at nine and take the bus."),
]
WITH_MAX = [("Max", "Hello there."), ("Sam", "Max, shall we begin?")]


def write(folder: Path, name: str, lines: list[tuple[str, str]]) -> None:
    """Write a conversation as JSON lines."""
    text = "\n".join(
        json.dumps({"speaker": who, "text": text, "at": 6.0 * number}) for number, (who, text) in enumerate(lines)
    )
    (folder / f"{name}.jsonl").write_text(text, "utf-8")


def entry(figures: Json, *path: str) -> Json:
    """Return the figure at `path`."""
    for name in path:
        assert isinstance(figures, dict)
        figures = figures[name]
    return figures


@pytest.mark.asyncio
async def test_a_name_that_somebody_has_is_not_counted_there(tmp_path: Path) -> None:
    """The default names meet every conversation, and another name those in which nobody has it."""
    write(tmp_path, "evening", EVENING)
    write(tmp_path, "with-max", WITH_MAX)
    report = await run(UnaskedBenchOptions(tmp_path, names=("Max",)), NoProgress())
    ours = dict(report.ours)
    assert entry(ours, "Roomtone", "whole turns", "conversations") == 2
    assert entry(ours, "Roomtone", "sentence by sentence", "utterances") == 5
    assert entry(ours, "Max", "somebody_has_the_name_in") == ["with-max"]
    assert entry(ours, "Max", "whole turns", "spoken_unasked") == 1
    assert entry(ours, "Max", "whole turns", "kinds") == {"name said": 1}
    assert entry(ours, "Max", "whole turns", "examples") == ["evening, line 0, name said"]
    assert [(target.value, target.met) for target in report.targets] == [(0, True), (0, True)]
    assert report.remarks[-1] == (
        "With the name Max it would have spoken 1 time in 0 minutes of whole turns (name said: 1) and 1 time in 0 "
        "minutes of sentence by sentence (name said: 1)."
    )


@pytest.mark.asyncio
async def test_what_people_said_is_quoted_only_where_that_was_chosen(tmp_path: Path) -> None:
    """The conversations may be private, and a report is shown around."""
    write(tmp_path, "evening", [("Matt", "Thanks, Juniper! " + "So be it. " * 20), ("Sam", "We leave.")])
    for texts, quoted in ((False, ""), (True, f": {('Thanks, Juniper! ' + 'So be it. ' * 20)[:80]}…")):
        report = await run(UnaskedBenchOptions(tmp_path, names=("Juniper",), texts=texts), NoProgress())
        assert ("So be it" in report.as_json()) is texts
        assert entry(dict(report.ours), "Juniper", "whole turns", "examples") == [f"evening, line 0, name said{quoted}"]


@pytest.mark.asyncio
async def test_what_is_no_talk_among_people_is_left_out(tmp_path: Path) -> None:
    """A monologue and a talk with an assistant are left out, and a remark says so."""
    write(tmp_path, "evening", EVENING)
    write(tmp_path, "alone", [("Ada", "What is the time?")])
    write(tmp_path, "assistant", [("Ada", "What is the time?"), ("assistant", "Nine."), ("Bo", "Thanks.")])
    report = await run(UnaskedBenchOptions(tmp_path, names=()), NoProgress())
    assert entry(dict(report.ours), "Roomtone", "whole turns", "conversations") == 1
    assert sum("Of 3 conversations, 1 have" in remark for remark in report.remarks) == 2


@pytest.mark.asyncio
async def test_without_conversations_nothing_is_measured() -> None:
    """The targets say so, and a remark names the option."""
    report = await run(UnaskedBenchOptions(), NoProgress())
    assert [target.met for target in report.targets] == [None, None]
    assert "--transcripts DIR" in report.remarks[0]


def test_one_unasked_reply_misses_the_target() -> None:
    """The goal is none at all."""
    figures: dict[str, Json] = {"spoken_unasked": 1, "minutes": 90.0}
    first, _ = unasked_targets({"Roomtone": {"whole turns": figures}})
    assert (first.met, first.sample) == (False, "90 minutes")
