"""Whatever holds words of people asks whether they may still be used. The table of bot/README.md, which is made here
from the code, says what becomes of those that are stored.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from bot.store.tables import OF_PEOPLE, metadata
from tests.sources import ROOT, module_name, parsed, sources, statements

HEADING = "## Words of people\n"
# What a class has that leases words, or is told of each time that they are taken back.
ASKS = ("Leased", "Lease |", "lease: Lease", ".lease(", "words.epoch", "words.times", "words.may_use(")


def table() -> str:
    """Return the table as the page shows it."""
    rows = ["| what is stored | what becomes of it |", "|---|---|"]
    for each in metadata.sorted_tables:
        names = [column.name for column in each.columns if OF_PEOPLE in column.info]
        ways = [column.info[OF_PEOPLE] for column in each.columns if OF_PEOPLE in column.info]
        if names:
            goes = [
                "deleted with the person" if all(way.forgotten for way in ways) else "stays: it is their own choice",
                "and with the session" if all(way.expires for way in ways) else "until it is changed",
            ]
            rows.append(f"| table `{each.name}`: {', '.join(names)} | {', '.join(goes)} |")
    return "\n".join(rows) + "\n"


# A class with a text in one of these fields is words; so is a value with such a class in it.
WORDS = frozenset({"text", "what", "words", "summary", "content", "result", "data"})
NO_HOLDERS = {
    "bot.conversation.speaking.FixedSentences": "sentences of ours",
    "bot.dashboard.live.Follower": "events that go before any is used, if words were taken back",
    "bot.discord.commands.recall._Pages": "what somebody looks for, whom alone it is shown, for 14 minutes",
    "bot.discord.dashboard_access.ChannelNames": "names of servers and channels",
    "bot.discord.room_channel.DiscordRoomChannel": "names of those present, which everybody there sees",
    "bot.memory.people.PeopleBook": "facts that are read again when some are deleted",
    "bot.room.auto_joiner.AutoJoiner": "reasons why it does not come to a channel",
    "bot.screen.commentary.ScreenCommentary": "notes, for each of which it asks whether it may be used",
    "bot.server_settings.MemoryServerSettings": "what a server has chosen",
}


@dataclass(frozen=True)
class Made:
    """A class of ours. `attributes`: the type of each, if it is written. `own`: those of what it makes itself."""

    name: str
    attributes: dict[str, ast.expr]
    own: frozenset[str]
    is_value: bool
    asks: bool


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
    return Made(node.name, attributes, frozenset(own), is_value, any(mark in ast.unparse(node) for mark in ASKS))


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


def test_what_holds_words_asks_whether_they_may_be_used() -> None:
    """A class of the bot with words in an attribute leases them, or is made by one that does and lets go of the words
    there. All others have a reason.
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
    holders, new = set[str](), {each.name for each in parts.values() if each.asks}
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


def test_the_page_shows_the_table() -> None:
    """If this fails, put the table that it shows into bot/README.md."""
    page = (ROOT / "bot" / "README.md").read_text("utf-8")
    assert HEADING in page
    assert table() in page, table()
