"""A scenario file is read completely, and all its mistakes are reported at once."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from config.load import load
from rehearsal.discord.faults import FAULTS
from rehearsal.errors import ScenarioError
from rehearsal.script.expectations import EXPECTATION_KINDS
from rehearsal.script.scenario import (
    FIRST_PERSON_ID,
    STEP_KINDS,
    BotStep,
    CommandStep,
    FaultStep,
    JoinStep,
    LeaveStep,
    NetworkStep,
    SayStep,
    ServerStep,
    WaitStep,
)
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario, scenario_path
from rehearsal.script.server_specs import SERVER_BEHAVIOURS

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
at = 30

[[steps]]
network = { padding = 0.1 }

[[steps]]
fault = "rtcp"

[[steps]]
id = "slow"
server = "model"
conduct = "answer"
first_token_s = 2.0

[[steps]]
bot = "kill"

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
        NetworkStep,
        FaultStep,
        ServerStep,
        BotStep,
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
    ("old", "new", "sentences"),
    [
        ('title = "A test"', "", ["`title` is missing"]),
        ('title = "A test"', "title = ", ["it is not TOML"]),
        ('title = "A test"', "title = " + "[" * 5_000, ["it is nested too deeply"]),
        ('title = "A test"', "title = " + "1" * 5_000, ["or a number is too long"]),
        ("loss = 0.05", "loss = 7", ["network.loss: 7 must be at most 1"]),
        ("loss = 0.05", "lost = 0.05", ["there is no key `lost` here"]),
        ('name = "Mira"', 'nme = "Mira"', ["people.mira.nme: there is no key `nme` here"]),
        ("id = 77", f"id = {FIRST_PERSON_ID}", ["is already the id of mira"]),
        ("id = 77", 'name = "mira"', ["is already the name of mira"]),
        ('audio = "one.ogg"', 'audio = "two.ogg"', ['steps number 2.audio: there is no file "two.ogg"']),
        ('audio = "one.ogg"', "", ["steps number 2.audio: `audio` is missing"]),
        ('command = "join"', 'command = "join"\nsay = "x"', ["it has say and command at once"]),
        ('wait_for = "reply"', "", ["steps number 3: it does not say what happens"]),
        ('wait_for = "reply"', 'wait_for = "rain"', ['"rain" is not one of']),
        ('wait_for = "reply"', 'wait_for = "reply"\nnew_cursor = 10', ["`new_cursor` belongs to"]),
        ('fault = "rtcp"', 'fault = "rain"', ['there is no fault "rain"; there are clear_frames, ']),
        ('after = "ask"', 'after = "tell"', ['no earlier step has the id "tell"']),
        ("at = 30", "at = 30\ngap_s = 1", ["`at` is a fixed moment"]),
        ("at = 30", "gap_s = 1\noverlap_s = 1", ["a step can have one of them"]),
        ('after = "ask"', "overlap_s = 1", ["only a `say` can be overlapped"]),
        ('id = "ask"', 'id = "reply"', ['"reply" is already taken', 'no earlier step has the id "ask"']),
        ('to = "ask"', 'to = "tell"', ['no spoken step has the id "tell"']),
        ('any_of = ["Ithaca"]', "", ["an answer needs `all_of` or `any_of`"]),
        ('kind = "max_wer"', 'kind = "nice"', ['"nice" is not one of every_utterance_heard_once']),
        ("value = 0.15", "", ["expect number 2.value: `value` is missing"]),
        ('who = "mira"\nsay', 'who = "zed"\nsay', ['"zed" is not one of the people (mira, jonas)']),
        ('conduct = "answer"', 'conduct = "sulk"', ['steps number 8.conduct: "sulk" is not one of answer, broken, ']),
        ('server = "model"', 'server = "speech"', ["first_token_s` belongs to"]),
        (
            'server = "model"\nconduct = "answer"\nfirst_token_s = 2.0',
            'server = "speech"\nconduct = "stall"',
            ["steps number 8.server: the scenario has no speech server"],
        ),
        ('otherwise = "SKIP"', 'conduct = "expire"', ['servers.model.conduct: "expire" is not one of']),
        ('asked = ["island"]', "asked = []", ["an answer needs `asked` or `knew`"]),
        ('since = "slow"', 'since = "fast"', ['expect number 3.since: no step has the id "fast"']),
        ('who = "Roomtone"\ncon', 'who = "Zed"\ncon', ['who: "Zed" is not one of mira, jonas, Roomtone']),
        ('audio = "one.ogg"', 'audio = "one.ogg"\nanswered = 3', ["steps number 2.answered: 3 is neither"]),
        ('history = "history.jsonl"', 'history = "other.jsonl"', ['"other.jsonl" cannot be read']),
        ('history = "history.jsonl"', "history = 3", ["it is not a file name"]),
        ('history = "history.jsonl"', "people = 3", ["it is not TOML"]),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(tmp_path: Path, old: str, new: str, sentences: list[str]) -> None:
    """A mistake is reported with the file, the place and the problem."""
    assert old in GOOD
    said = mistakes(written(tmp_path, GOOD.replace(old, new, 1)))
    for sentence in sentences:
        assert sentence in said
    assert str(tmp_path) in said


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    """All mistakes of the scenario and its history are reported at once."""
    text = GOOD.replace('title = "A test"', "titel = 1").replace("loss = 0.05", "loss = -1")
    text = text.replace('audio = "one.ogg"', 'audio = "no.ogg"').replace("value = 0.15", "value = 3")
    history = (
        HISTORY + '{"speaker": "zed", "text": "", "at": 3}\nnot json\n{"speaker": "zed", "text": "x", "at": -9999}'
    )
    said = mistakes(written(tmp_path, text, history))
    for place in ("title:", "titel:", "network.loss:", "steps number 2.audio:", "expect number 2.value:"):
        assert f"scenario.toml, {place}" in said
    for place in ("line 5.text:", "line 5.at:", "line 6:", 'line 7: "zed" is not one of the people', "line 7: it is"):
        assert f"history.jsonl, {place}" in said


def test_one_mistake_in_a_person_causes_no_others(tmp_path: Path) -> None:
    """A mistake in a person causes no further error where the scenario refers to that person."""
    said = mistakes(written(tmp_path, GOOD.replace('name = "Mira"', "name = 3")))
    assert len(said.splitlines()) == 1


def test_a_mark_before_utf_8_is_no_mistake(tmp_path: Path) -> None:
    """A byte order mark at the beginning is ignored, because some editors write one."""
    assert load_scenario(written(tmp_path, "\ufeff" + GOOD)).title == load_scenario(written(tmp_path, GOOD)).title


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "it cannot be read"), (b"\xff\xfe\x00", "it is not text in UTF-8"), (b"", "`title` is missing")],
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
    """The documentation names every step, expectation, server behaviour, fault and bundled scenario."""
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    conducts = {name for names in SERVER_BEHAVIOURS.values() for name in names}
    for name in {*EXPECTATION_KINDS, *STEP_KINDS, *conducts, *FAULTS, *bundled_scenarios()}:
        assert f"`{name}`" in page or f"`{name} = " in page, name


def test_the_settings_on_the_page_can_be_used(tmp_path: Path) -> None:
    """Whoever copies the example of the format gets a bot that starts."""
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    [given] = re.findall(r"^\[settings\].*?\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    settings = tomllib.loads(given)
    assert settings
    load(directory=tmp_path, environ={}, overrides=settings)


def test_a_scenario_is_named_by_file_folder_or_bundled_name(tmp_path: Path) -> None:
    """A scenario is named by its file, its folder or its bundled name. An unknown name is answered with a list."""
    path = written(tmp_path)
    assert scenario_path(str(path)) == path
    assert scenario_path(str(tmp_path)) == path
    with pytest.raises(ScenarioError, match="bundled scenarios are both-ask, ceiling, "):
        scenario_path(str(tmp_path / "nothing.toml"))
