"""The table of bot/README.md: what holds words of people, what becomes of it, and which test proves that. It is made
from the code here.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.store.tables import OF_PEOPLE, metadata
from tests.sources import ROOT, module_name, parsed, sources, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADING = "## Words of people\n"
# What other parts are made of.
NOT_YET = {"RoomPart"}
COLUMNS_TEST = "`tests/bot/store/test_columns_of_people.py`"


def holders() -> dict[str, str]:
    """Return the classes of the bot that hold words, each with the first sentence of its `on_withdrawn`."""
    found: dict[str, str] = {}
    for path in sources():
        module = module_name(path)
        if not module.startswith("bot."):
            continue
        for made in statements(parsed(path)):
            if not isinstance(made, ast.ClassDef) or any("Protocol" in ast.unparse(base) for base in made.bases):
                continue
            if made.name in NOT_YET:
                continue
            for method in made.body:
                if isinstance(method, ast.FunctionDef) and method.name == "on_withdrawn":
                    told = " ".join((ast.get_docstring(method) or "").split())
                    found[f"{module}.{made.name}"] = told.partition(". ")[0].rstrip(".")
    return found


def proofs() -> dict[str, list[str]]:
    """Return the test files that are marked as the proof of each holder."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for holder in re.findall(r"^@pytest\.mark\.withdraws\(\"(.+)\"\)$", path.read_text("utf-8"), re.MULTILINE):
            found[holder].append(f"`{path.relative_to(ROOT)}`")
    return found


def table() -> str:
    """Return the table as the page shows it."""
    rows = ["| holder | what it does when words are withdrawn | test |", "|---|---|---|"]
    tests = proofs()
    rows += [f"| `{name}` | {told} | {', '.join(tests[name])} |" for name, told in holders().items()]
    for each in metadata.sorted_tables:
        names = [column.name for column in each.columns if OF_PEOPLE in column.info]
        ways = [column.info[OF_PEOPLE] for column in each.columns if OF_PEOPLE in column.info]
        if names:
            goes = [
                "deleted with the person" if all(way.forgotten for way in ways) else "stays: it is their own choice",
                "and with the session" if all(way.expires for way in ways) else "until it is changed",
            ]
            rows.append(f"| table `{each.name}`: {', '.join(names)} | {', '.join(goes)} | {COLUMNS_TEST} |")
    return "\n".join(rows) + "\n"


# A class with a text in one of these fields is words; so is a value with such a class in it.
WORDS = frozenset({"text", "what", "words", "summary", "content", "result", "data"})
NO_HOLDERS = {
    "bot.brain.tools.toolbox.QuestionTools": "calls of one question, which may not be used after all were dropped",
    "bot.conversation.hearing.Hearing": "asks `drops` of all before it becomes a turn, which takes seconds",
    "bot.conversation.owed_answers.OwedAnswers": "the questions of the replier, from which `Speaking` drops them",
    "bot.conversation.pauses.Pauses": "asks `drops` of all before it is used, until the utterance is over",
    "bot.discord.commands.recall._Pages": "what somebody looks for, whom alone it is shown, for 14 minutes",
    "bot.discord.dashboard_access.ChannelNames": "names of servers and channels",
    "bot.discord.room_channel.DiscordRoomChannel": "names of those present, which everybody there sees",
    "bot.memory.people.PeopleBook": "facts that are read again when some are deleted",
    "bot.room.auto_joiner.AutoJoiner": "reasons why it does not come to a channel",
    "bot.server_settings.MemoryServerSettings": "what a server has chosen",
}


@dataclass(frozen=True)
class Made:
    """A class of ours. `attributes`: the type of each, if it is written. `own`: those of what it makes itself."""

    name: str
    attributes: dict[str, ast.expr]
    own: frozenset[str]
    is_value: bool
    takes_event: bool


def classes() -> dict[str, Made]:
    """Return the classes of the bot and of what it uses, but not its protocols, each by its module and name."""
    found: dict[str, Made] = {}
    for path in sources():
        module = module_name(path)
        if module.startswith(("bot.", "compaction.", "voice.")):
            for node in statements(parsed(path)):
                if isinstance(node, ast.ClassDef) and not any("Protocol" in ast.unparse(each) for each in node.bases):
                    found[f"{module}.{node.name}"] = made_of(node)
    return found


def made_of(node: ast.ClassDef) -> Made:
    attributes = {ast.unparse(each.target): each.annotation for each in node.body if isinstance(each, ast.AnnAssign)}
    own = set[str]()
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    for method in methods:
        given = {each.arg: each.annotation for each in (*method.args.args, *method.args.kwonlyargs)}
        for target, value, annotation in assignments(method):
            name = ast.unparse(target)
            made = value.func if isinstance(value, ast.Call) else None
            kind = annotation or made or (given.get(value.id) if isinstance(value, ast.Name) else None)
            if name.startswith("self.") and kind is not None:
                attributes.setdefault(name, kind)
                own |= set() if isinstance(value, ast.Name) else names_in(kind)
    marks = " ".join(map(ast.unparse, (*node.decorator_list, *node.bases)))
    is_value = "dataclass" in marks or "NamedTuple" in marks
    return Made(node.name, attributes, frozenset(own), is_value, "on_withdrawn" in {each.name for each in methods})


def assignments(method: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, ast.expr | None]]:
    """Yield the target, the value and the type of each assignment."""
    for each in ast.walk(method):
        if isinstance(each, ast.AnnAssign):
            yield each.target, each.value, each.annotation
        elif isinstance(each, ast.Assign):
            for target in each.targets:
                match target, each.value:
                    case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                        yield from ((one, value, None) for one, value in zip(targets, values, strict=True))
                    case _:
                        yield target, each.value, None


def names_in(kind: ast.expr) -> set[str]:
    """Return the names in a type, without those that a function takes or returns."""
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) in {"Callable", "type"}:
        return set()
    if isinstance(kind, ast.Name | ast.Attribute):
        return {ast.unparse(kind).rpartition(".")[2]}
    parts = (each for each in ast.iter_child_nodes(kind) if isinstance(each, ast.expr))
    return set().union(*map(names_in, parts))


def is_text_of_people(kind: ast.expr) -> bool:
    """Return whether a type has texts by the id of a person."""
    written = ast.unparse(kind)
    return written.startswith(("dict[int,", "dict[tuple[int")) and "str" in written.partition(",")[2]


def test_what_holds_words_takes_the_event() -> None:
    """A class of the bot with words in an attribute has `on_withdrawn`, or is made by one that has it, which lets go of
    the words there. All others have a reason.
    """
    made = classes()
    values = [each for each in made.values() if each.is_value]
    words = {
        each.name
        for each in values
        for name, kind in each.attributes.items()
        if name in WORDS and ast.unparse(kind) in {"str", "str | None", "Json"}
    }
    while (
        more := {each.name for each in values if any(names_in(kind) & words for kind in each.attributes.values())}
        - words
    ):
        words |= more
    parts = {each.name: each for each in made.values() if not each.is_value}
    holders, new = set[str](), {each.name for each in parts.values() if each.takes_event}
    while new:
        holders |= new
        new = set().union(*(parts[each].own for each in new)) & parts.keys() - holders
    undeclared = {
        name
        for name, each in made.items()
        if name.startswith("bot.") and not each.is_value and each.name not in holders
        if any(names_in(kind) & words or is_text_of_people(kind) for kind in each.attributes.values())
    }
    assert undeclared == NO_HOLDERS.keys()


def test_every_holder_is_proved() -> None:
    """A class that takes the event has a test, and a test names a class that is there."""
    assert holders().keys() == proofs().keys()


def test_the_page_shows_the_table() -> None:
    """If this fails, put the table that it shows into bot/README.md."""
    page = (ROOT / "bot" / "README.md").read_text("utf-8")
    assert HEADING in page
    assert table() in page, table()
