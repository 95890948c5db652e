"""The source code and the pages as the tests of texts read them: which texts for people are in them, and where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from bot.texts.text import ENGLISH
from bot.web.page_texts import page_in
from tests.sources import ROOT, nodes

PACKAGES = ("bot", "compaction", "voice")
_BASES = {"BotError", "VoiceError", "CompactionError"}

# Modules whose errors only the operator reads, because they are raised before the bot is in Discord, for a command
# line, or for the log.
FOR_THE_OPERATOR = (
    "bot/folder_lock.py",
    "bot/store/backup.py",
    "bot/cli",
    "bot/cluster",
    "bot/discord/client.py",
    "bot/discord/endpoint.py",
    "bot/discord/connection.py",
    "bot/discord/live_probe.py",
    "bot/embedding",
    "bot/llm/budgeted.py",
    "bot/llm/openai_embeddings.py",
    "bot/mcp",
    "bot/memory/admin.py",
    "bot/memory/transcript.py",
    "bot/models/catalogue.py",
    "bot/models/directory.py",
    "bot/models/sources.py",
    "bot/llm/model_calls.py",
    "bot/store/migrations",
    "bot/time_phrases.py",
    "bot/wiring/summariser.py",
    "compaction/session.py",
    "compaction/summary",
    # What a recogniser without an endpoint cannot do is in the log; people read how many sounds were left out.
    "voice/asr/scheduler.py",
    # Of endpoints' errors people read what `for_people` says.
    "voice/asr/remote.py",
    "voice/endpoint.py",
    "voice/realtime/connection.py",
    "voice/speaking/openai.py",
    "voice/asr/whisper.py",
    "voice/asr/worker.py",
    "voice/listening",
    "voice/transport/opus.py",
)


@dataclass(frozen=True, slots=True)
class Module:
    """One module. `path`: below the repository. `nodes`: those of its syntax tree."""

    path: str
    nodes: tuple[ast.AST, ...]

    @property
    def package(self) -> str:
        return self.path.partition("/")[0]

    @property
    def is_for_people(self) -> bool:
        return not self.path.startswith(FOR_THE_OPERATOR)

    @property
    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def place(self, node: ast.expr) -> str:
        return f"{self.path}:{node.lineno}"

    def literals(self, node: ast.expr) -> list[str]:
        """Return the strings that an expression may be, as far as they are written in this module."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Name(id=name):
                return [text for value in self._assigned(name) for text in self.literals(value)]
            case ast.Subscript(value=table) | ast.Call(func=ast.Attribute(value=table, attr="get")):
                return self.literals(table)
            case ast.Dict(values=values):
                return [text for value in values for text in self.literals(value)]
            case ast.IfExp(body=one, orelse=other):
                return [*self.literals(one), *self.literals(other)]
            case _:
                return []

    @property
    def people_texts(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield what people read in place of errors of this module that are for the operator."""
        said = [call.args[0] for call in self.calls if name_of(call) == "for_people"]
        said += self._assigned("people")
        return ((text, node) for node in said for text in self.literals(node) if text)

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        for node in self.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    yield value
                case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
                    yield value


@cache
def modules() -> tuple[Module, ...]:
    """Return all modules of the packages that people may hear or read from."""
    paths = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return tuple(Module(str(path.relative_to(ROOT)), nodes(path)) for path in paths)


@cache
def errors() -> frozenset[str]:
    """Return the names of our error classes."""
    bases = {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }
    found = set(_BASES)
    while more := {name for name, above in bases.items() if name not in found and found.intersection(above)}:
        found |= more
    return frozenset(found)


def name_of(call: ast.Call) -> str:
    """Return what is called, without what it belongs to."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


# Markup of Discord and placeholders.
_NO_WORDS = re.compile(r"\{[^}]*\}|<[@#]?[!&]?[^>]*>|<t:")


def words_in(text: str) -> bool:
    """Return whether there are words in a text, which people would read in English."""
    return re.search(r"[A-Za-z]{2}", _NO_WORDS.sub("", text)) is not None


def texts_of_page(html: str) -> list[str]:
    """Return the texts of a page that are translated."""
    asked = _Asked()
    page_in(html, ENGLISH, asked)
    return asked.texts


class _Asked(Mapping[str, str]):
    """A language that has every text as it is, and notes those it is asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __getitem__(self, english: str) -> str:
        self.texts.append(english)
        return english

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)
