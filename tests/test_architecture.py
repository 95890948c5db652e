"""The rules of the architecture: who may import whom, floors, one home for each library, one class for each name."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmarks", "bot", "compaction", "config", "rehearsal", "voice")

# Package -> the packages of ours that it may import besides itself.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "compaction": frozenset(),
    "voice": frozenset(),
    "bot": frozenset({"compaction", "voice"}),
    "config": frozenset({"bot", "compaction", "voice"}),  # settings modules alone, see below
    "rehearsal": frozenset({"voice"}),  # voice.transport.opus alone, see below
    "benchmarks": frozenset(PACKAGES),
}
# These two compose everything, so they may import everything.
COMPOSERS = ("bot.__main__", "bot.cli")
REHEARSAL_MAY_USE = "voice.transport.opus"

# Library -> the modules (by prefix) that may import it.
HOMES: dict[str, tuple[str, ...]] = {
    "discord": ("bot.discord", "voice.transport"),
    "nacl": ("voice.transport", "rehearsal"),
    "davey": ("voice.transport", "rehearsal"),
    "faster_whisper": ("voice.asr",),
    "ctranslate2": ("voice.asr",),
    "openai": ("bot.llm", "voice.endpoint", "voice.asr.remote", "voice.realtime"),
    "jsonschema": ("bot.brain.tools",),
    "mcp": ("bot.mcp",),
    "piper": ("voice.speaking",),
    "PIL": ("voice.screen", "benchmarks.screen", "rehearsal.scenarios"),
    "rapidocr": ("voice.screen",),
    "snowballstemmer": ("compaction.language",),
    "tiktoken": ("bot.llm",),
    "sqlalchemy": ("bot.store",),
    "aiohttp.web": ("bot.web", "rehearsal"),
    "typer": ("bot.__main__", "bot.cli"),
}

# Package -> its folders and loose modules, from the bottom to the top. A module imports from lower floors only, or from
# its own folder; also imports for types alone count. Parts on one floor do not know each other.
FLOORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "bot": (
        ("clock", "errors", "events", "guild", "runtime_tuning", "settings"),
        ("channel", "health", "logs", "models", "store", "time_phrases", "web"),
        ("llm", "memory"),
        ("brain", "embedding"),
        ("mcp", "participation", "realtime"),
        ("discord", "screen"),
        ("room",),
        ("wiring",),
        ("app",),
        ("cli",),
        ("__main__",),
    ),
    "compaction": (
        ("errors", "model", "tokens"),
        ("language", "payload", "ports", "timeline"),
        ("notes",),
        ("summary",),
        ("budget", "memory"),
        ("context", "settings"),
        ("folding",),
        ("session",),
    ),
    "rehearsal": (
        ("errors", "words"),
        ("discord", "people"),
        ("scenarios", "servers"),
        ("script",),
        ("runner",),
        ("report",),
        ("judge",),
        ("rehearse",),
    ),
    "voice": (
        ("audio", "circuit_breaker", "endpoint", "endpoint_settings", "errors"),
        ("asr", "screen", "transport"),
        ("listening",),
        ("speaking",),
        ("realtime",),
    ),
}

# Class names that two modules share on purpose: each with its reason.
SHARED_CLASS_NAMES: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: which module of ours imports what, and whether only for types."""

    module: str
    target: str
    line: int
    typing_only: bool


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return [f"{module}.{alias.name}" for alias in names]
        case _:
            return []


def imports_of(path: Path) -> list[Import]:
    """Return every import of a file, wherever it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_blocks = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    typing_nodes = {id(inner) for block in typing_blocks for statement in block.body for inner in ast.walk(statement)}
    return [
        Import(module_name(path), target, node.lineno, id(node) in typing_nodes)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for target in _targets(node)
    ]


def sources() -> list[Path]:
    """Return every source file of ours."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


ALL_IMPORTS = [found for path in sources() for found in imports_of(path)]


def within(module: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether `module` is one of `prefixes` or lies inside one."""
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def test_packages_import_only_what_they_may() -> None:
    """Compaction and voice know nothing of ours; nobody but the composers sees config, rehearsal, benchmarks."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in ALL_IMPORTS
        if (target := found.target.split(".")[0]) in PACKAGES
        and target != (own := found.module.split(".")[0])
        and target not in MAY_IMPORT[own]
        and not within(found.module, COMPOSERS)
    ]
    assert offences == []


def test_config_reads_settings_modules_alone() -> None:
    """config assembles settings; it does not reach into the packages."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in ALL_IMPORTS
        if found.module.split(".")[0] == "config"
        and found.target.split(".")[0] in {"bot", "compaction", "voice"}
        and "settings" not in found.target.split(".")
    ]
    assert offences == []


def test_rehearsal_uses_the_opus_codec_alone() -> None:
    """The rehearsal is an independent judge: of ours it uses the codec and nothing else."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in ALL_IMPORTS
        if found.module.split(".")[0] == "rehearsal"
        and found.target.split(".")[0] == "voice"
        and not within(found.target, (REHEARSAL_MAY_USE,))
    ]
    assert offences == []


@pytest.mark.parametrize("library", sorted(HOMES))
def test_each_library_has_one_home(library: str) -> None:
    """A library is imported only where its errors and quirks are translated."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in ALL_IMPORTS
        if within(found.target, (library,)) and not within(found.module, HOMES[library])
    ]
    assert offences == []


def part_of(module: str) -> str:
    """Return the folder or loose module of its package that a module lies in: `room` for `bot.room.hearing`."""
    return [*module.split("."), ""][1]


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_imports_go_down(package: str) -> None:
    """Within a package no import goes up to a higher floor, or across to another part of the same floor."""
    height = {part: floor for floor, parts in enumerate(FLOORS[package]) for part in parts}
    inside = [
        (found.module, found.line, part_of(found.module), part_of(found.target))
        for found in ALL_IMPORTS
        if found.module.startswith(f"{package}.") and found.target.startswith(f"{package}.")
    ]
    offences = [
        f"{module}:{line} imports {target}"
        for module, line, part, target in inside
        if part != target and height[part] <= height[target]
    ]
    assert offences == []


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_floors_name_every_part(package: str) -> None:
    """Every folder and loose module of a package has its floor."""
    found = {part_of(module_name(path)) for path in (ROOT / package).rglob("*.py")} - {""}
    assert found == {part for parts in FLOORS[package] for part in parts}


def test_a_class_name_has_one_meaning() -> None:
    """A public class name is defined once in the whole tree, except for those with a reason."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module_name(path))
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {name: modules for name, modules in twice.items() if name not in SHARED_CLASS_NAMES} == {}
    assert set(SHARED_CLASS_NAMES) <= set(twice)


def _module_graph() -> dict[str, set[str]]:
    known = {module_name(path) for path in sources()}
    graph: dict[str, set[str]] = defaultdict(set)
    for found in ALL_IMPORTS:
        if found.typing_only:
            continue
        target = found.target if found.target in known else found.target.rpartition(".")[0]
        if target in known and target != found.module:
            graph[found.module].add(target)
    return graph


def test_there_is_no_circle_of_imports() -> None:
    """Following the imports that run never leads back."""
    graph, state = _module_graph(), dict[str, str]()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert state.get(module) != "open", " -> ".join((*path, module))
        if module in state:
            return
        state[module] = "open"
        for target in sorted(graph.get(module, ())):
            visit(target, (*path, module))
        state[module] = "done"

    for module in sorted(graph):
        visit(module, ())


def test_package_list_names_every_package() -> None:
    """pyproject.toml lists every package; a folder missing there would be missing from an installation."""
    import tomllib

    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"])
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert declared == found
