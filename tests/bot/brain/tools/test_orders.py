"""What somebody's words order: measured on a table that was written before the rules."""

from __future__ import annotations

import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools import orders as rules
from bot.brain.tools.links import link_tool
from bot.brain.tools.orders import Demand, demand_for, says_yes
from bot.brain.tools.tool import RoomTool
from bot.brain.wakeword import strip_name
from bot.mcp.tools import McpTool
from compaction.sentence_cache import clear_sentence_caches
from tests.bot.mcp.test_tools import adapted
from tests.fakes.chat import FakeChat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TABLE = tomllib.loads((Path(__file__).parent / "orders.toml").read_text(encoding="utf-8"))
HALVES = ("tuning", "apart")
# Of the 69 real orders of each half: carried out at once, and after the bot's question, as measured.
FIGURES = {"tuning": (54, 15), "apart": (51, 17)}
CARRIED_OUT = 0.95
POST = link_tool(FakeChat())


def _tools() -> tuple[RoomTool, ...]:
    """Return the table's tools as a room has them: ours, and those of MCP servers without words of the operator."""
    theirs: list[RoomTool] = []
    for name, about in TABLE["tools"].items():
        server, _, tool = name.partition("_")
        if name != POST.name:
            theirs += adapted(McpTool(tool, about, {"type": "object"}), name=server)
    assert {tool.name for tool in (POST, *theirs)} == set(TABLE["tools"])
    return (POST, *theirs)


TOOLS = _tools()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One line of the table, and what the rules make of it."""

    half: str
    kind: str
    says: str
    orders: str
    at_once: tuple[str, ...]
    asked_about: tuple[str, ...]


def sentences() -> Iterator[Sentence]:
    """Yield the table's sentences, each judged for every tool."""
    for kind, lines in TABLE["sentences"].items():
        for line in lines:
            said = strip_name(line["says"], ("Roomtone",))
            demands = {tool.name: demand_for(tool, said, TOOLS) for tool in TOOLS}
            yield Sentence(
                line["half"],
                kind,
                line["says"],
                line["orders"],
                tuple(name for name, demand in demands.items() if demand is Demand.ORDERED),
                tuple(name for name, demand in demands.items() if demand is Demand.PERHAPS),
            )


def test_the_table_is_large_and_half_of_it_is_held_apart() -> None:
    """The table has at least 200 different sentences, with orders and others in both halves, and German ones."""
    lines = list(sentences())
    assert len({line.says for line in lines}) == len(lines) >= 200
    count = Counter((line.half, bool(line.orders)) for line in lines)
    assert set(count) == {(half, orders) for half in HALVES for orders in (True, False)}
    assert sum(line.half == "apart" for line in lines) * 2 == len(lines)
    assert sum(line.kind == "German" for line in lines) >= 30


@pytest.mark.parametrize("half", HALVES)
def test_no_sentence_has_an_unwanted_effect(half: str) -> None:
    """No sentence runs a tool that it does not order, in either half."""
    assert [line for line in sentences() if line.half == half and set(line.at_once) - {line.orders}] == []


@pytest.mark.parametrize("half", HALVES)
def test_orders_are_carried_out(half: str) -> None:
    """At least 95 % of the real orders are carried out, the doubtful ones after a question."""
    orders = [line for line in sentences() if line.half == half and line.orders]
    at_once = sum(line.orders in line.at_once for line in orders)
    asked = sum(line.orders in line.asked_about for line in orders)
    assert (at_once + asked) / len(orders) >= CARRIED_OUT
    assert (at_once, asked) == FIGURES[half]


@pytest.mark.parametrize("half", HALVES)
def test_few_questions_are_asked_in_vain(half: str) -> None:
    """A sentence that orders nothing seldom lets a model ask the person about a tool."""
    others = [line for line in sentences() if line.half == half and not line.orders]
    assert sum(bool(line.asked_about) for line in others) / len(others) <= 0.2


@pytest.mark.parametrize(
    "said",
    [
        "What does the file say?",
        "I write files, delete files, post links and play songs.",
        "Let's postpone it.",
        "That poster is about Linkin Park.",
        "Don't post the link!",
        "Bob said. Post the link in the chat.",
        "Post the link, Bob.",
        "I write mails, post links, and delete files.",
        "That's what they do: they write the file and post the link.",
        "Post the link? No, I wouldn't.",
        "Delete the file or not?",
        "Play a song or turn off the lights, that's the question.",
        "Write a mail to Clara, that was your advice.",
        "And then he was like, turn off the lights.",
        "Write the file, delete the file, it's all the same to them.",
        "Let me post the link.",
        "Do you want to post the link?",
        "Poste den Link, hat er gesagt.",
        "Mach ich das Licht aus?",
        "Tell Bob to write the file and post the link.",
        "“Post the link in the chat.”",
        "Play that song at my funeral and I'll haunt you all.",
        "Delete the file and you're fired.",
        "Mach das Licht aus, und du fliegst.",
        "Turn off the lights or I'll scream.",
        "Just write it off, it's not worth fighting about.",
        "Play it cool.",
        "Play nice, you two.",
        "Switch to your pistol, switch, switch!",
        "Delete!",
        "Post.",
    ],
)
def test_other_structures_order_nothing(said: str) -> None:
    """A tool's words in a question, report, quote or call to somebody else are no order."""
    assert all(demand_for(tool, said, TOOLS) is not Demand.ORDERED for tool in TOOLS)


@pytest.mark.parametrize(
    "said", ["リンクを投稿してください", "링크를 올려줘", "Дай ссылку", "Mettez le lien, s'il vous plaît"]
)
def test_other_languages_are_asked_about(said: str) -> None:
    """Where the language is not known, nothing runs at once, and the bot may ask."""
    assert demand_for(POST, said, TOOLS) is Demand.PERHAPS


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Write that down somewhere, I'll forget it otherwise.", "fs_write_file"),
        ("Jot down the three names for later, please.", "fs_write_file"),
        ("Post the link and I'll open it.", "post_link"),
        ("Delete the file and you can start again.", "fs_delete_file"),
        ("Speicher die Datei, ich vergess das sonst.", "fs_write_file"),
    ],
)
def test_doubtful_orders_are_asked_about(said: str, name: str) -> None:
    """What may be an order and may be a threat, or has a condition beside it, is asked about."""
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    assert demand_for(tool, said, TOOLS) is Demand.PERHAPS


def test_a_tie_is_asked_about() -> None:
    """An order that fits two tools equally well runs neither without a question."""
    jot, keep = (RoomTool(f"{name}_note", "", {}, POST.call, words=("write", "note")) for name in ("jot", "keep"))
    assert demand_for(jot, "Write a note.", [jot]) is Demand.ORDERED
    assert demand_for(jot, "Write a note.", [jot, keep]) is Demand.PERHAPS


@pytest.mark.parametrize(
    ("said", "yes"),
    [
        ("Yes.", True),
        ("yeah go ahead", True),
        ("Sure, post it.", True),
        ("Yes please, post the link in the chat.", True),
        ("Okay.", True),
        ("Do it.", True),
        ("Of course!", True),
        ("Ja, mach das.", True),
        ("Ja bitte.", True),
        ("Na klar!", True),
        ("Auf jeden Fall.", True),
        ("Jap, gerne.", True),
        ("Auf keinen Fall.", False),
        ("Na ja, nicht so gern.", False),
        ("Na ja.", False),
        ("Natürlich, mach das.", True),
        ("Oui.", True),
        ("はい", True),
        ("Yes?", False),
        ("No.", False),
        ("Yes, no, wait.", False),
        ("Yes, but not now.", False),
        ("Don't do it.", False),
        ("Yes, the other link.", False),
        ("Yes, I was there too.", False),
        ("Post it.", False),
        ("Nein, bitte nicht.", False),
        ("", False),
    ],
)
def test_what_counts_as_a_yes(said: str, yes: bool) -> None:
    """A yes is nothing but a yes, perhaps with the deed; anything else in the sentence makes it none."""
    assert says_yes(said, POST) is yes


@pytest.mark.parametrize("piece", ["a-", "a.", "post the link, ", "do me a favour ", "and ", "“"])
def test_long_texts_are_judged_in_linear_time(piece: str) -> None:
    """A text of repeated pieces is judged at once; a rule that goes back over it would take minutes."""
    started = time.process_time()
    demand_for(POST, piece * 5_000, TOOLS)
    assert time.process_time() - started < 5.0


@given(said=st.text(max_size=60))
def test_any_text_is_judged(said: str) -> None:
    """Any text is judged without an error, and words without a letter order nothing."""
    demand = demand_for(POST, said, TOOLS)
    assert demand is Demand.NOT or any(letter.isalnum() for letter in said)


@given(noun=st.sampled_from(POST.words[1:]), rest=st.sampled_from(["is here", "was broken", "sounds like Linkin Park"]))
def test_a_noun_alone_orders_nothing(noun: str, rest: str) -> None:
    """Whatever a tool acts on may be spoken of."""
    assert demand_for(POST, f"The {noun} {rest}.", TOOLS) is Demand.NOT


@pytest.mark.parametrize("said", ["Play something nice.", "Write a long poem about cats, and post it."])
def test_each_tool_is_compared_with_the_words_once(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred tools with effects, as large MCP servers have, cost ten times as much as ten: the question waits."""
    looked_at = 0
    names = rules._names

    def counted(word: str, nouns: Iterable[str]) -> bool:
        nonlocal looked_at
        looked_at += 1
        return names(word, nouns)

    monkeypatch.setattr(rules, "_names", counted)
    costs = []
    for count in (10, 100):
        tools = [
            RoomTool(f"hub_{number}", "Does it.", {}, POST.call, side_effects=True, words=("create", f"thing{number}"))
            for number in range(count)
        ]
        looked_at = 0
        clear_sentence_caches()
        assert Demand.ORDERED not in {demand_for(tool, said, tools) for tool in tools}
        costs.append(looked_at)
    assert costs[1] == 10 * costs[0]
