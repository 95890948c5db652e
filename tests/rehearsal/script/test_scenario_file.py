"""A scenario file is read completely, and all its mistakes are reported at once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from config.load import load
from rehearsal.script.expectations import EXPECTATION_KINDS
from rehearsal.script.scenario import (
    FIRST_PERSON_ID,
    SERVER_BEHAVIOURS,
    STEP_KINDS,
    CommandStep,
    JoinStep,
    LeaveStep,
    SayStep,
    ServerStep,
    WaitStep,
)
from rehearsal.script.scenario_file import ScenarioError, bundled_scenarios, load_scenario, scenario_path

GOOD = """
title = "A test"
history = "history.jsonl"

[settings]
"compaction.mode" = "on"

[network]
loss = 0.05

[servers.model]
otherwise = "SKIP"
[[servers.model.answers]]
asked = ["island"]
say = "Ithaca."

[people.mira]
name = "Mira"

[people.jonas]
id = 77
present = false

[[steps]]
who = "mira"
command = "join"

[[steps]]
id = "ask"
who = "mira"
say = "Roomtone, which island?"
audio = "one.ogg"

[[steps]]
wait_for = "reply"

[[steps]]
who = "jonas"
join = true
after = "ask"

[[steps]]
who = "jonas"
leave = true
gap_s = 30

[[steps]]
id = "slow"
server = "model"
conduct = "answer"
first_token_s = 2.0

[[expect]]
kind = "answer"
to = "ask"
any_of = ["Ithaca"]

[[expect]]
kind = "max_wer"
value = 0.15

[[expect]]
kind = "silent"
since = "slow"

[[expect]]
kind = "recorded"
who = "Roomtone"
contains = "(interrupted)"
"""

HISTORY = """
{"speaker": "mira", "text": "I would take the boat.", "at": -3600}
{"speaker": "Jonas", "text": "Me too.", "at": -3500}
{"speaker": "Roomtone", "text": "Noted.", "at": -3400.5, "kind": "assistant"}
"""


def written(folder: Path, text: str = GOOD, history: str = HISTORY) -> Path:
    """Write a scenario file with its other files and return its path."""
    (folder / "scenario.toml").write_text(text)
    (folder / "history.jsonl").write_text(history)
    (folder / "one.ogg").write_bytes(b"sound")
    return folder / "scenario.toml"


def mistakes(path: Path) -> str:
    """Return the error messages for a scenario file."""
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    return "\n".join(caught.value.mistakes)


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    """Each step gets its kind, each person an id, and paths become absolute."""
    read = load_scenario(written(tmp_path))
    assert [type(step) for step in read.steps] == [
        CommandStep,
        SayStep,
        WaitStep,
        JoinStep,
        LeaveStep,
        ServerStep,
    ]
    assert [(one.key, one.name, one.id) for one in read.people] == [
        ("mira", "Mira", FIRST_PERSON_ID),
        ("jonas", "Jonas", 77),
    ]
    assert read.says[0].audio == (tmp_path / "one.ogg").resolve()
    assert [turn.at for turn in read.history] == [-3600, -3500, -3400.5]
    assert read.settings == {"compaction.mode": "on"}
    assert read.network.loss == 0.05
    assert read.person("Jonas").key == "jonas"
    assert read.servers.model is not None
    assert read.servers.model.answers[0].asked == ("island",)
    assert read.servers.speech is None


@pytest.mark.parametrize(
    ("old", "new", "place", "word"),
    [
        ('title = "A test"', "", "title", "missing"),
        ('title = "A test"', "title = ", "", "TOML"),
        ('title = "A test"', "title = " + "[" * 5_000, "", "too deeply"),
        ('title = "A test"', "title = " + "1" * 5_000, "", "too long"),
        ("loss = 0.05", "loss = 7", "network.loss", "less than or equal to 1"),
        ("loss = 0.05", "lost = 0.05", "network.lost", "no such key"),
        ('name = "Mira"', 'nme = "Mira"', "people number 1.nme", "no such key"),
        ("id = 77", f"id = {FIRST_PERSON_ID}", "people.jonas", "id or the name of mira"),
        ("id = 77", 'name = "mira"', "people.jonas", "id or the name of mira"),
        ('audio = "one.ogg"', 'audio = "two.ogg"', "steps number 2", 'no file "two.ogg"'),
        ('audio = "one.ogg"', "", "steps number 2.audio", "missing"),
        ('command = "join"', 'command = "join"\nsay = "x"', "steps number 1", "one of say, command"),
        ('wait_for = "reply"', "", "steps number 3", "one of say, command"),
        ('wait_for = "reply"', 'wait_for = "rain"', "steps number 3.wait_for.wait_for", "'reply'"),
        ('wait_for = "reply"', 'wait_for = "reply"\nnew_cursor = 10', "steps number 3", "`new_cursor` belongs to"),
        ('after = "ask"', 'after = "tell"', "steps number 4.after", '"tell"'),
        ("gap_s = 30", "gap_s = 1\noverlap_s = 1", "steps number 5", "can have one of them"),
        ('after = "ask"', "overlap_s = 1", "steps number 4.overlap_s", "only a `say`"),
        ('id = "ask"', 'id = "reply"', "steps number 2.id", "already taken"),
        ('to = "ask"', 'to = "tell"', "expect number 1.to", 'no spoken step has the id "tell"'),
        ('any_of = ["Ithaca"]', "", "expect number 1", "`all_of` or `any_of`"),
        ('kind = "max_wer"', 'kind = "nice"', "expect number 2", "every_utterance_heard_once"),
        ("value = 0.15", "", "expect number 2.max_wer.value", "missing"),
        ('who = "mira"\nsay', 'who = "zed"\nsay', "steps number 2.who", "people (mira, jonas)"),
        ('conduct = "answer"', 'conduct = "sulk"', "steps number 6.conduct", "answer, broken"),
        ('server = "model"', 'server = "speech"', "steps number 6", "`first_token_s` belongs to"),
        ("first_token_s = 2.0", 'gap_s = 1\n[[steps]]\nserver = "speech"\nconduct = "stall"', "steps", "no speech"),
        ('otherwise = "SKIP"', 'conduct = "expire"', "servers.model.conduct", "'answer'"),
        ('asked = ["island"]', "asked = []", "servers.model.answers number 1", "`asked` or `knew`"),
        ('since = "slow"', 'since = "fast"', "expect number 3.since", '"fast"'),
        ('who = "Roomtone"\ncon', 'who = "Zed"\ncon', "expect number 4.who", "mira, jonas, Roomtone"),
        ('history = "history.jsonl"', "history = 3", "history", "valid tuple"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(tmp_path: Path, old: str, new: str, place: str, word: str) -> None:
    """A mistake is reported with the file, the place and the problem."""
    assert old in GOOD
    said = mistakes(written(tmp_path, GOOD.replace(old, new, 1)))
    assert f"scenario.toml, {place}".rstrip(", ") in said
    assert word in said


@pytest.mark.parametrize(
    ("line", "place", "word"),
    [
        ("not json", "history.jsonl, line 5", "not JSON"),
        ("[" * 100_000, "history.jsonl, line 5", "too deeply"),
        ('{"speaker": "mira", "text": "", "at": -1}', "history number 4.text", "at least 1"),
        ('{"speaker": "zed", "text": "x", "at": -1}', "history number 4", '"zed"'),
        ('{"speaker": "mira", "text": "x", "at": -9999}', "history number 4", "earlier"),
    ],
)
def test_a_mistake_in_the_history_is_one_too(tmp_path: Path, line: str, place: str, word: str) -> None:
    """Speakers are given by key or by name, and the oldest turn comes first."""
    said = mistakes(written(tmp_path, GOOD, HISTORY + line))
    assert place in said
    assert word in said


WRITTEN = """
title = "In writing"
written = true
steps = "steps.jsonl"
[people.ada]
[people.bo]
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"who": "bo", "say": "So is mine.", "overlap_s": 1.0}', ""),
        ('{"who": "bo", "say": "Stop.", "after": "voice"}', ""),
        ('{"who": "bo", "leave": true, "gap_s": 600}', ""),
        ('{"who": "bo", "say": "So is mine.", "audio": "one.ogg"}', "has no sound"),
        ('{"who": "bo", "command": "quiet"}', "only talk, join and leave"),
        ('{"who": "bo", "say": "So is mine.", "after": "heard"}', "`gap_s`, `overlap_s`"),
        ("[", "steps.jsonl, line 2: it is not JSON"),
    ],
)
def test_a_scenario_in_writing_has_its_own_rules(tmp_path: Path, line: str, told: str) -> None:
    """Its steps may be in a file of JSON lines. It has no sound, and people only talk, come and go."""
    path = written(tmp_path, WRITTEN)
    (tmp_path / "steps.jsonl").write_text(f'{{"who": "ada", "say": "The boat is green."}}\n{line}\n', "utf-8")
    if told:
        assert told in mistakes(path)
    else:
        assert len(load_scenario(path).steps) == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "it cannot be read"), (b"\xff\xfe\x00", "it is not text in UTF-8"), (b"", "title: it is missing")],
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    """A missing, binary or empty file is reported."""
    path = tmp_path / "scenario.toml"
    if content is not None:
        path.write_bytes(content)
    assert sentence in mistakes(path)


@pytest.mark.parametrize("name", bundled_scenarios())
def test_the_bundled_scenarios_are_good(name: str) -> None:
    """Every scenario that comes with the package can be read."""
    assert load_scenario(scenario_path(name)).says


def test_the_page_of_the_format_names_everything() -> None:
    """The documentation names every step, expectation and server behaviour."""
    page = (Path(__file__).parents[3] / "docs" / "rehearsal.md").read_text(encoding="utf-8")
    conducts = {name for names in SERVER_BEHAVIOURS.values() for name in names}
    for name in {*EXPECTATION_KINDS, *STEP_KINDS, *conducts}:
        assert f"`{name}`" in page or f"`{name} = " in page, name


def test_the_settings_on_the_page_can_be_used(tmp_path: Path) -> None:
    """Whoever copies the example of the format gets a bot that starts."""
    page = (Path(__file__).parents[3] / "docs" / "rehearsal.md").read_text(encoding="utf-8")
    [given] = re.findall(r"^\[settings\].*?\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    settings = tomllib.loads(given)
    assert settings
    load(directory=tmp_path, environ={}, overrides=settings)


def test_a_scenario_is_named_by_file_folder_or_bundled_name(tmp_path: Path) -> None:
    """A scenario is named by its file, its folder or its bundled name. An unknown name is answered with a list."""
    path = written(tmp_path)
    assert scenario_path(str(path)) == path
    assert scenario_path(str(tmp_path)) == path
    with pytest.raises(ScenarioError, match="captions, crowd"):
        scenario_path(str(tmp_path / "nothing.toml"))
