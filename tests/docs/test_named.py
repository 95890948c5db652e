"""What the pages name in passing exists: commands with their options, make targets, modules, settings and variables."""

from __future__ import annotations

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperArgument, TyperGroup, TyperOption

from bot.cli.app import _COMMANDS, _assemble
from config.load import load
from config.schema import SETTINGS

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "bot", "compaction", "config", "docs", "examples", "rehearsal", "voice")
PAGES = sorted(
    page
    for page in [*REPOSITORY.glob("*.md"), *(path for each in FOLDERS for path in (REPOSITORY / each).rglob("*.md"))]
    # What was true of an earlier version may stand there.
    if page.name != "CHANGELOG.md"
)
# Scenarios are TOML too; tests/rehearsal/script reads them.
WITH_SETTINGS = [page for page in PAGES if page.name != "scenarios.md"]
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"\bROOMTONE_[A-Z]+__[A-Z_]+\b")


def quoted(page: Path) -> list[str]:
    """Return what the page quotes as code: inside a line, and line by line of its blocks for a shell."""
    text = page.read_text("utf-8")
    blocks = [block for language, block in _FENCE.findall(text) if language == "sh"]
    lines = [re.sub(r"\s{2,}#.*$", "", line).strip() for block in blocks for line in block.splitlines()]
    return [*lines, *_INLINE.findall(re.sub(r"\n +", " ", _FENCE.sub("", text)))]


NAMED = sorted({(page, each.removeprefix(".venv/bin/")) for page in PAGES for each in quoted(page)})


@cache
def program() -> Any:
    """Return `roomtone` with all its commands."""
    return _assemble(list(_COMMANDS))


def missing(words: list[str]) -> str | None:
    """Return the first word that `roomtone` would not understand, or None."""
    command = program()
    arguments = 0
    waiting = list(words)
    while waiting:
        word, _, value = waiting.pop(0).partition("=")
        if word.startswith("-"):
            option = next((each for each in command.params if word in each.opts), None)
            if option is None and word not in {"--help", "-h", "--install-completion"}:
                return word
            if isinstance(option, TyperOption) and not option.is_flag and not value:
                waiting = waiting[1:]
        elif isinstance(command, TyperGroup):
            if word not in command.commands:
                return word
            command = command.commands[word]
        else:
            arguments += 1
            if arguments > sum(
                each.nargs if each.nargs > 0 else 99 for each in command.params if isinstance(each, TyperArgument)
            ):
                return word
    return None


def test_every_command_that_a_page_names_exists() -> None:
    """`roomtone` understands each command with its options, wherever a page names it."""
    commands = [(page.name, text) for page, text in NAMED if text.startswith("roomtone ")]
    assert len(commands) > 40
    # One of the benchmarks stands for NAME.
    read = [(page, text, shlex.split(text.replace(" NAME", " memory"))) for page, text in commands]
    assert [(page, text) for page, text, words in read if missing(words[1:])] == []


@pytest.mark.parametrize(
    ("command", "word"), [("memory forget --nobody", "--nobody"), ("forget", "forget"), ("doctor now", "now")]
)
def test_a_command_that_does_not_exist_is_found(command: str, word: str) -> None:
    """The test above sees unknown commands, options and arguments."""
    assert missing(command.split()) == word


def test_every_target_and_module_exists() -> None:
    """Each `make …` has its target, and each `python -m …` its module."""
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    for page, text in NAMED:
        if found := re.match(r"make ([a-z]+)(?: [A-Z]+=\S+)*$", text):
            assert re.search(rf"^{found[1]}:", makefile, re.MULTILINE), (page.name, text)
        if found := re.match(r"python -m ([a-z_.]+)", text):
            assert importlib.util.find_spec(found[1]) is not None, (page.name, text)


def test_the_guide_has_each_choice_of_a_server() -> None:
    """The guide's table of /settings has every command of /settings, with what it chooses."""
    commands = (REPOSITORY / "docs" / "commands.md").read_text("utf-8")
    choices = set(re.findall(r"^\| `/settings ([a-z-]+)`", commands, re.MULTILINE)) - {"show"}
    guide = (REPOSITORY / "docs" / "guide.md").read_text("utf-8").partition("| `/settings …` |")[2].partition("\n\n")[0]
    assert len(choices) > 10
    assert choices - set(re.findall(r"`([a-z-]+)`", guide)) == set()


def test_nobody_is_told_to_install_it_from_an_index() -> None:
    """Roomtone is in no package index, so what somebody puts there under its name is not Roomtone."""
    sources = [path for each in FOLDERS for path in (REPOSITORY / each).rglob("*.py")]
    told = [
        path.name
        for path in [*PAGES, *sources, *(REPOSITORY / "bot" / "texts").glob("*.toml")]
        if re.search(r"[Ii]nstall [^.\n]*\broomtone\[", path.read_text("utf-8"))
    ]
    assert told == []


@pytest.mark.parametrize("page", WITH_SETTINGS, ids=lambda page: page.name)
def test_every_example_of_settings_loads(page: Path, tmp_path: Path) -> None:
    """A page's TOML is what `roomtone.toml` takes, and each variable on it is a setting."""
    text = page.read_text("utf-8")
    told: list[str] = []
    for language, block in _FENCE.findall(text):
        if language == "toml":
            (tmp_path / "roomtone.toml").write_text(block, "utf-8")
            load(directory=tmp_path, environ={}, notify=told.append)
    known = {setting.variable for setting in SETTINGS.values()}
    assert set(_VARIABLE.findall(text)) - {"ROOMTONE_SECTION__FIELD"} <= known
    assert told == []
