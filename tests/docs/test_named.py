"""What the pages name in passing exists: commands with their options on the command line and on Discord, make targets,
modules, files, settings, variables, and names of code, log events and fields.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from discord import app_commands
from typer.core import TyperArgument, TyperGroup, TyperOption

from bot.cli.app import COMMANDS, assemble
from bot.discord.client import RoomtoneClient
from bot.discord.commands.setting_table import SETTINGS as SERVER_SETTINGS
from bot.discord.permissions import PERMISSIONS
from bot.settings import DiscordSettings
from config.load import load
from config.schema import SETTINGS
from tests.bot.discord.client import FakeRooms
from tests.bot.discord.commands.all_commands import all_command_adders

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "bot", "compaction", "config", "docs", "examples", "rehearsal", "voice")
PAGES = sorted(
    page
    for page in [*REPOSITORY.glob("*.md"), *(path for each in FOLDERS for path in (REPOSITORY / each).rglob("*.md"))]
    # What was true of an earlier version may stand there.
    if page.name != "CHANGELOG.md"
)
# Scenarios are TOML too; tests/rehearsal/script reads them.
WITH_SETTINGS = [page for page in PAGES if page.name != "rehearsal.md"]
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"\bROOMTONE_[A-Z]+__[A-Z_]+\b")
PACKAGES = ("bot", "compaction", "voice")
SECTIONS = {section for section, *_ in SETTINGS}
# test_spec_coverage.py reads this page; it names tests by a part of their names, and names of other programs.
WITHOUT_COVERAGE = "spec-coverage.md"
# Names of other programs (PostgreSQL, systemd, Linux, Ollama, Ray), and what a decision rejected.
NAMES_OF_OTHERS = {
    *("archive_command", "ef_search", "log_parameter_max_length", "log_statement", "pg_wal", "ts_rank"),
    *("DynamicUser", "SO_TXTIME", "amx_int8", "num_ctx"),
    *("RAY_SERVE_ENABLE_DIRECT_INGRESS", "RAY_SERVE_ENABLE_HA_PROXY"),
    *("DistantPlace", "stay_silent"),
}
_NO_MODULE = re.compile(r"\.(json|py)$|^discord\.http$")
# Paths of the bot's web server and of the machine, which begin like a slash command.
_NO_COMMAND = re.compile(r"/(api|app|etc|healthz|metrics|opt|proc|readyz|tmp|v1|var)\b")


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
    return assemble(list(COMMANDS))


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
                waiting = waiting[option.nargs :]
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


def test_every_target_and_module_exists() -> None:
    """Each `make …` has its target, and each `python -m …` its module."""
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    for page, text in NAMED:
        if found := re.match(r"make ([a-z]+)(?: [A-Z]+=\S+)*$", text):
            assert re.search(rf"^{found[1]}:", makefile, re.MULTILINE), (page.name, text)
        if found := re.match(r"python -m ([a-z_.]+)", text):
            assert importlib.util.find_spec(found[1]) is not None, (page.name, text)


def test_the_guide_has_each_choice_of_a_server() -> None:
    """The guide's list of /settings has every setting of the panel, with what it chooses."""
    guide = (REPOSITORY / "docs" / "guide.md").read_text("utf-8").partition("## On each server\n")[2]
    first_cells = re.findall(r"^- ([A-Z][^:*]*): ", guide.partition("\n### ")[0], re.MULTILINE)
    named = {name for cell in first_cells for name in cell.split(", ")}
    assert {str(setting.name) for setting in SERVER_SETTINGS} - named == set()


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


def in_code(page: Path) -> list[str]:
    """Return what the page quotes as code inside its lines."""
    return _INLINE.findall(re.sub(r"\n +", " ", _FENCE.sub("", page.read_text("utf-8"))))


@cache
def words_of_the_code() -> frozenset[str]:
    """Return every word in the files that are no pages: names, keys and parts of texts."""
    folders = [REPOSITORY / each for each in (*FOLDERS, "deploy", "tests")]
    suffixes = {".css", ".html", ".js", ".py", ".toml", ".yaml", ".yml", ".service", ".txt"}
    files = [
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.suffix in suffixes and "__pycache__" not in file.parts
    ]
    files += [each for each in REPOSITORY.iterdir() if each.is_file() and each.suffix != ".md"]
    # It names every metric (a histogram as `…_bucket`), and tests/bot/monitoring compares it with the bot.
    files.append(REPOSITORY / "config" / "grafana" / "roomtone.json")
    texts = (file.read_text("utf-8", "replace") for file in files if "benchmarks/memory/recorded" not in str(file))
    words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    return frozenset(words | {word.removesuffix("_bucket") for word in words})


def test_every_name_that_a_page_quotes_is_in_the_code() -> None:
    """A function, class, constant, log event, field or metric that a page names has not been renamed since."""
    shape = re.compile(r"[a-z]+(_[a-z0-9]+)+|[A-Z][a-z]+([A-Z][a-z]+)+|[A-Z]+(_[A-Z]+)+")
    named = [(page.name, each) for page in PAGES if page.name != WITHOUT_COVERAGE for each in in_code(page)]
    read = [(page, each) for page, each in named if shape.fullmatch(each) and each not in NAMES_OF_OTHERS]
    assert len(read) > 100
    assert [(page, each) for page, each in read if each not in words_of_the_code()] == []


def test_every_file_that_a_page_quotes_is_there() -> None:
    """A path below one of the project's folders leads to a file or folder."""
    below = re.compile(rf"({'|'.join((*FOLDERS, 'deploy', 'tests'))})/[\w./-]+")
    named = [(page.name, each) for page in PAGES if page.name != WITHOUT_COVERAGE for each in in_code(page)]
    paths = [(page, each) for page, each in named if below.fullmatch(each)]
    assert len(paths) > 40
    # Diagrams and tables of tasks leave the `.py` out.
    gone = [(page, each) for page, each in paths if not (REPOSITORY / each).exists()]
    assert [(page, each) for page, each in gone if not (REPOSITORY / f"{each}.py").exists()] == []


def is_module(name: str) -> bool:
    """Return whether `conversation.hearing` or `bot.conversation.hearing` is a module or a folder of ours."""
    paths = [folder / name.replace(".", "/") for folder in (REPOSITORY, *(REPOSITORY / each for each in PACKAGES))]
    return any(path.is_dir() or path.with_suffix(".py").is_file() for path in paths)


def test_every_setting_and_module_that_a_page_names_exists() -> None:
    """`section.field` is a setting, or `folder.module` a module, in the text and in the diagrams. A page may name what
    is in a module, too: `bot.llm.budgeted.BudgetedModel`.
    """
    folders = {each.name for package in PACKAGES for each in (REPOSITORY / package).iterdir() if each.is_dir()}
    dotted = re.compile(rf"({'|'.join(sorted({*folders, *SECTIONS, *PACKAGES}))})(\.[a-z_]+)+")
    read = []
    for page in (page for page in PAGES if page.name not in {"settings.md", WITHOUT_COVERAGE}):
        drawn = [block for language, block in _FENCE.findall(page.read_text("utf-8")) if language == "mermaid"]
        read += [
            (page.name, found[0]) for block in drawn for found in re.finditer(rf"(?<![\w.]){dotted.pattern}", block)
        ]
        named = [re.sub(r"(\.[A-Z]\w*)+$", "", each.partition(" = ")[0]) for each in in_code(page)]
        # Files have names like that, too; and one name is of the library discord.py.
        read += [(page.name, each) for each in named if dotted.fullmatch(each) and not _NO_MODULE.search(each)]
    assert len(read) > 100
    assert [
        (page, name)
        for page, name in read
        if tuple(name.split(".")) not in SETTINGS
        and not is_module(name)
        and not (name.count(".") > 1 and is_module(name.rpartition(".")[0]))
    ] == []


@cache
def slash_commands() -> dict[str, dict[str, set[str]]]:
    """Return the options of each slash command, by its name with its group, and the words that each option takes."""
    tree = RoomtoneClient(DiscordSettings(), FakeRooms(), all_command_adders()).tree
    return {
        each.qualified_name: {
            option.display_name: {choice.name for choice in option.choices} for option in each.parameters
        }
        for each in tree.walk_commands()
        if isinstance(each, app_commands.Command)
    }


def unknown_words(text: str) -> list[str]:
    """Return what of a slash command such as `/join listen:file` Discord would not know."""
    words = text.removeprefix("/").split(" ")
    name = " ".join(words[:2]) if " ".join(words[:2]) in slash_commands() else words[0]
    if name not in slash_commands():
        # A group, or one of its commands that is left open: `/settings`, `/settings …`.
        is_group = any(each.startswith(f"{name} ") for each in slash_commands())
        return [] if is_group and words[1:] in ([], ["…"]) else [text]
    # What somebody writes behind an option may have any words.
    given = [word.partition(":") for word in words[len(name.split(" ")) :][:1]]
    options = slash_commands()[name]
    return [
        option + value
        for option, sign, value in given
        if not sign or option not in options or (options[option] and value not in options[option])
    ]


def test_every_slash_command_that_a_page_names_exists() -> None:
    """Discord knows the command, its option, and the choice where the option has choices."""
    pages = [*PAGES, REPOSITORY / "CHANGELOG.md"]
    named = [(page.name, each) for page in pages for each in in_code(page) if re.match(r"/[a-z]", each)]
    # One example is a German name, and one is of another program.
    read = [
        each for each in named if not _NO_COMMAND.match(each[1]) and each[1] not in {"/komm", "/knowledge-db search"}
    ]
    assert len(read) > 100
    assert [(page, each) for page, each in read if unknown_words(each)] == []


def test_the_guide_has_each_permission_of_the_link() -> None:
    """The guide's list has every permission that `roomtone invite` asks for, and no other."""
    guide = (REPOSITORY / "docs" / "guide.md").read_text("utf-8")
    listed = guide.partition("### Permissions\n")[2].partition("\n### ")[0]
    cells = re.findall(r"^- (\*.+?\*): ", listed, re.MULTILINE)
    told = {name.lower().replace(" ", "_") for cell in cells for name in re.findall(r"\*([A-Z][\w ]+)\*", cell)}
    assert told == set(PERMISSIONS)
