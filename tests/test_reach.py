"""Nobody reaches through anybody: what a part owns is used by that part, or through what the part offers.

`a.b.c` is such a reach, where `a` is an object of a class of ours, and `b` another such that it keeps. Data classes
only carry what they have, so their fields are for everybody; and classes of one module know each other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tests.sources import ROOT, parsed, sources

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("bot", "compaction", "voice")
# discord.py's client and its connection, which ours inherit from, are made to be reached through.
LEFT_OUT = ("voice/transport/",)


@dataclass(slots=True)
class Known:
    """A class of ours. `attributes`: the class of each, as far as the code says it plainly."""

    module: str
    is_data: bool
    attributes: dict[str, str] = field(default_factory=dict)


def name_in(annotation: ast.expr | None) -> str:
    """Return the class that an annotation names first; empty if it names none."""
    match annotation:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case ast.BinOp(left, _, right):
            return name_in(left) or name_in(right)
        case _:
            return ""


def is_data(node: ast.ClassDef) -> bool:
    names = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(name_in(each) in {"dataclass", "NamedTuple", "StrEnum", "BaseModel"} for each in (*names, *node.bases))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    return {each.arg: name_in(each.annotation) for each in (*function.args.args, *function.args.kwonlyargs)}


def kept(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Yield what a method keeps in `self`: the attribute and its class."""
    given = parameters(function)
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(ast.Attribute(ast.Name("self"), name), annotation):
                yield name, name_in(annotation)
            case ast.Assign(targets, value):
                for target in targets:
                    both = target.elts if isinstance(target, ast.Tuple) else [target]
                    values = value.elts if isinstance(value, ast.Tuple) else [value] * len(both)
                    for one, its in zip(both, values, strict=False):
                        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                            made = name_in(its.func) if isinstance(its, ast.Call) else ""
                            yield one.attr, made or (given.get(its.id, "") if isinstance(its, ast.Name) else "")


@cache
def classes() -> dict[str, Known]:
    found: dict[str, Known] = {}
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            known = found[node.name] = Known(path, is_data(node))
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    known.attributes[each.target.id] = name_in(each.annotation)
                elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                    if any(name_in(mark) == "property" for mark in each.decorator_list):
                        known.attributes[each.name] = name_in(each.returns)
                    for name, its in kept(each):
                        known.attributes.setdefault(name, its)
    return found


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    paths = [(path, path.relative_to(ROOT)) for path in sources()]
    return tuple((place.as_posix(), parsed(path)) for path, place in paths if place.parts[0] in PACKAGES)


def class_of(node: ast.expr, names: dict[str, str]) -> str:
    """Return the class of what an expression gives; empty if the code does not say it plainly."""
    match node:
        case ast.Name(name):
            return names.get(name, "")
        case ast.Attribute(value, name):
            known = classes().get(class_of(value, names))
            return "" if known is None else known.attributes.get(name, "")
        case _:
            return ""


def reaches(path: str, tree: ast.AST) -> Iterator[str]:
    """Yield each `a.b.c` that reaches through an object."""
    # Each piece of the code with the class of each local name.
    waiting: list[tuple[ast.AST, dict[str, str]]] = [(tree, {})]
    while waiting:
        node, names = waiting.pop()
        if isinstance(node, ast.ClassDef):
            names = {"self": node.name}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = names | parameters(node) | {"self": names.get("self", "")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            owner, name = node.value.value, node.value.attr
            through = classes().get(class_of(owner, names))
            inner = None if through is None else classes().get(through.attributes.get(name, ""))
            is_own = isinstance(owner, ast.Name) and owner.id == "self"
            objects = [each for each in (through, inner) if each is not None and not each.is_data]
            if len(objects) == 2 and not is_own and path != objects[0].module:
                yield f"{path}:{node.lineno}: {ast.unparse(node)}"
        waiting += [(child, names) for child in ast.iter_child_nodes(node)]


def test_nobody_reaches_through_anybody() -> None:
    found = [each for path, tree in trees() if not path.startswith(LEFT_OUT) for each in reaches(path, tree)]
    assert found == []


def test_a_reach_is_seen() -> None:
    """A method of a room that used what the conversation keeps would be found."""
    code = "class Room:\n    def stop(self, conversation: Conversation) -> None:\n        conversation._hearing.run()\n"
    assert list(reaches("bot/room/elsewhere.py", ast.parse(code))) == [
        "bot/room/elsewhere.py:3: conversation._hearing.run"
    ]
