"""The rules of the architecture: which package and layer may import which, where each library is imported, unique class
names. docs/architecture.md tells them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.sources import PACKAGES, ROOT, all_imports, module_name, nodes, parsed, part_of, sources

# Package -> the other packages of this repository that it may import.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "compaction": frozenset(),
    "voice": frozenset(),
    "bot": frozenset({"compaction", "voice"}),
    "config": frozenset({"bot", "compaction", "voice"}),  # settings modules alone, see below
    "rehearsal": frozenset({"bot", "compaction", "voice"}),  # a few modules alone, see below
    "benchmarks": frozenset(PACKAGES),
}
# These put the whole program together, so they may import everything.
COMPOSERS = ("bot.__main__", "bot.cli", "rehearsal.roomtone")
# docs/architecture.md says why it leaves them out.
NOT_DRAWN = {"texts"}
# The half of the rehearsal that knows nothing of Roomtone, and what it uses of the product.
LOCAL_DISCORD = tuple(
    f"rehearsal.{name}" for name in ("discord", "errors", "foreign_requests", "people", "pytest_plugin", "waiting")
)
CODEC = "voice.transport.opus"
# The other half, without the composers, also uses the events of the bot and their values.
REHEARSAL_MAY_USE = (CODEC, "bot.events", "compaction.model", "compaction.payload")

# Library -> the modules (by prefix) that may import it.
HOMES: dict[str, tuple[str, ...]] = {
    "discord": ("bot.discord", "voice.hearing", "voice.transport", "benchmarks.load", "rehearsal.pytest_plugin"),
    "prometheus_client": ("bot.monitoring",),
    "nacl": ("bot.dashboard", "voice.transport", "rehearsal"),
    "ray": ("bot.cluster",),
    "starlette": ("bot.cluster",),
    "cryptography": ("rehearsal",),
    "dateparser": ("bot.time_ahead",),
    "davey": ("voice.transport", "rehearsal"),
    "faster_whisper": ("voice.asr", "voice.listening"),
    "ctranslate2": ("voice.asr",),
    "openai": ("bot.llm", "voice.endpoint", "voice.asr.remote", "voice.realtime"),
    "jsonschema": ("bot.brain.tools", "rehearsal.discord.specification"),
    "mcp": ("bot.mcp",),
    "hibari": ("voice.speaking",),
    "piper": ("voice.speaking",),
    "PIL": ("voice.screen",),
    "rapidocr": ("voice.screen",),
    "snowballstemmer": ("compaction.language",),
    "tiktoken": ("bot.llm",),
    "sqlalchemy": ("bot.store",),
    "alembic": ("bot.store.migrations",),
    "aiohttp.web": ("bot.web", "rehearsal"),
    "typer": ("bot.__main__", "bot.cli"),
}

# Package, or folder of one -> its folders and modules in layers, lowest first. A module imports only from lower layers
# and from its own folder. Imports for type checking count too. Folders in the same layer do not import each other.
FLOORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "benchmarks.memory": (
        ("conversations",),
        ("roomtone_search",),
        ("evidence", "names", "search", "summaries"),
        ("quoting",),
        ("bench", "fit_reranking"),
    ),
    "bot": (
        ("guild", "texts"),
        (
            "background_task",
            "clock",
            "cost",
            "dropped_sounds",
            "errors",
            "local_zone",
            "private_files",
            "places",
            "server_settings",
            "settings",
            "shards",
            "terminal_text",
            "tuning",
            "versions",
            "viewers",
            "words",
        ),
        ("channel", "folder_lock", "health", "models", "outgoing_address", "runtime_tuning", "store", "time_phrases"),
        ("events", "logs", "reminders", "time_ahead", "webhook_sender"),
        ("room_part",),
        ("llm", "memory"),
        ("brain", "embedding"),
        ("cluster", "mcp", "participation", "realtime"),
        ("dashboard", "monitoring"),
        ("screen",),
        ("web",),
        ("posts",),
        ("conversation",),
        ("room",),
        ("discord",),
        ("wiring",),
        ("app",),
        ("cli",),
        ("__main__",),
    ),
    "compaction": (
        ("clock_time", "errors", "log_events", "model", "sentence_cache", "tokens", "untrusted_text"),
        ("language", "payload", "ports", "turn_buffer", "window"),
        ("events", "notes", "speaker_names", "withheld"),
        ("mapping_store", "store_queue"),
        ("summary",),
        ("budget", "memory"),
        ("context", "settings"),
        ("compactor",),
        ("session",),
        ("conversation_memory",),
    ),
    "rehearsal": (
        ("errors", "fault_plan", "foreign_requests", "waiting", "words"),
        ("discord",),
        ("people",),
        ("pytest_plugin",),
        ("scenarios", "servers"),
        ("script",),
        ("runner",),
        ("report",),
        ("judge",),
        ("roomtone",),
    ),
    "rehearsal.discord": (
        ("certificate", "guild", "specification", "timers"),
        ("dave", "limits", "media", "websockets"),
        ("gateway", "voice"),
        ("interactions",),
        ("rest",),
        ("control", "cut_specification", "faults"),
        ("server",),
    ),
    "voice": (
        (
            "audio",
            "cancellation",
            "clock",
            "daemon_thread",
            "endpoint_settings",
            "errors",
            "queue_figures",
            "retry_pause",
            "secret_digest",
            "server_keys",
            "token_bucket",
        ),
        ("circuit_breaker", "plain_http"),
        ("endpoint",),
        ("asr", "screen", "transport"),
        ("listening", "speaking"),
        ("hearing", "realtime"),
    ),
}

# Words in backticks in packages' docstrings that are commands, libraries or log lines.
NO_MODULES = {"roomtone", "mcp", "model_context_built", "revision", "port"}

# Import for type checking that closes a circle -> the reason.
CIRCLES_OF_TYPES = {
    (
        "bot.room.auto_joiner",
        "bot.room.rooms",
    ): "the rooms tell what brings the bot who comes and goes, and it asks them where the bot is",
    **dict.fromkeys(
        (
            ("bot.conversation.assemble", "bot.conversation.conversation"),
            ("bot.conversation.reminding", "bot.conversation.conversation"),
            ("bot.conversation.turn_taking", "bot.conversation.conversation"),
        ),
        "a conversation is whole once it has its parts, of which some ask it what it says next",
    ),
    (
        "bot.participation.guild_state",
        "bot.participation.participation",
    ): "whoever silences the bot on a server stops what it says in its room there",
    (
        "bot.screen.screen_room",
        "bot.screen.screens",
    ): "the screens of a process open those of its rooms, which share its readers",
    (
        "bot.conversation.pauses",
        "bot.conversation.hearing",
    ): "hearing tells of pauses, and their words are acted on by it",
    (
        "voice.transport.private.websocket",
        "voice.transport.private.connection_state",
    ): "discord.py's websocket and its state machine, from which these two inherit, call each other",
    (
        "voice.transport.private.connection_state",
        "voice.transport.private.client",
    ): "discord.py's client makes its state machine, which tells the client of each change",
    (
        "voice.transport.private.client",
        "voice.transport.connector",
    ): "the connector makes the clients, and is told which of them is connected",
}

# Private names of other libraries that tests touch -> the folders in which they do. Our own have no place here.
# Discord's client: decision 0002. Ray, MCP's library and aiohttp tell the rest nowhere else.
_OF_DISCORD = ("tests/bot/discord", "tests/node", "tests/rehearsal/discord", "tests/voice/transport")
_NAMES_OF_DISCORD = (
    "_add_guild_from_data",
    "_callbacks",
    "_connect_websocket",
    "_connection",
    "_create_socket",
    "_disconnected",
    "_end",
    "_error_display_name",
    "_expecting_disconnect",
    "_global_over",
    "_guilds",
    "_handshake_websocket",
    "_runner",
    "_running",
    "_socket_reader",
    "_view_store",
    "_views",
    "_max_heartbeat_timeout",
    "_voice_connect",
    "_wait_for_state",
)
PRIVATE_OF_OTHERS: dict[str, tuple[str, ...]] = dict.fromkeys(_NAMES_OF_DISCORD, _OF_DISCORD) | {
    "_guilds": (*_OF_DISCORD, "tests/conftest.py"),
    "_response": ("tests/rehearsal/discord/sockets.py",),
    "_bound_deployment": ("tests/bot/cluster",),
    "_deployment_config": ("tests/bot/cluster",),
    "_stop_server_process": ("tests/bot/mcp",),
    "_tool_output_schemas": ("tests/bot/mcp",),
    "_fixtureinfo": ("tests/conftest.py",),
    "_scheduled": ("tests/fakes/loop_time.py",),
    "_exit": ("tests/bot/cli/test_signals.py", "tests/bot/mcp/server.py", "tests/endurance/victim.py"),
    "_ntuple_diskusage": ("tests/bot/monitoring", "tests/bot/test_app_health.py"),
}
# What a test may do to an attribute by its name.
_BY_NAME = {"setattr", "getattr", "delattr", "object", "patch"}

# A time of the product that a test changes -> why no clock of the test can pass it.
PATCHED_TIMES = {
    "AGAIN_AFTER_S": "a dozen tests of other things would wait for it, between requests over sockets",
    "ANSWER_TIMEOUT_S": "a thread computes for as long as the machine needs",
    "CHECK_EVERY_S": "the whole bot runs, and Discord's heartbeats with it",
    "END_TIMEOUT_S": "a process ends",
    "KEEPALIVE_EVERY_S": "a thread sends, over a path that forgets in real time",
    "LONGEST_POLL_S": "a thread waits for a socket",
    "MAX_SOUND_S": "an amount of sound",
    "MOST_SOUND_S": "an amount of sound",
    "ONE_MOMENT_AFTER_S": "it is lengthened (tests/bot/conftest.py) beyond what follows it",
    "REGISTER_TIMEOUT_S": "it is lengthened (tests/conftest.py) as what surrounds it",
    "REPORT_EVERY_S": "another process makes the progress",
    "SENTENCE_TIMEOUT_S": "a thread computes for as long as the machine needs",
    "SILENCE_S": "the voice server would find its clients silent by the same clock",
    "START_EVERY_S": "the local Discord would let every test wait that starts a client after another",
    "STOP_TIMEOUT_S": "a thread is joined",
    "TRANSFER_TIMEOUT_S": "the system waits for a process",
    "WAIT_S": "SQLite waits for a lock",
}

# Class name that two modules share on purpose -> the reason.
SHARED_CLASS_NAMES = {"Json": "of each package: what it writes, reads or measures as JSON"}


def within(module: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether `module` is one of `prefixes` or a module inside one."""
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def test_packages_import_only_what_they_may() -> None:
    """Each package imports only the packages that `MAY_IMPORT` allows; only the composers may import everything."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in all_imports()
        if (target := found.target.split(".")[0]) in PACKAGES
        and target != (own := found.module.split(".")[0])
        and target not in MAY_IMPORT[own]
        and not within(found.module, COMPOSERS)
    ]
    assert offences == []


def test_config_reads_settings_modules_alone() -> None:
    """config imports only the settings modules of the other packages."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in all_imports()
        if found.module.split(".")[0] == "config"
        and found.target.split(".")[0] in {"bot", "compaction", "voice"}
        and not any(part.endswith("settings") for part in found.target.split("."))
    ]
    assert offences == []


def test_rehearsal_knows_the_events_of_the_bot_alone() -> None:
    """The rehearsal checks the bot independently, so only what runs it imports more of the product than the events of
    the bot and the Opus codec.
    """
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in all_imports()
        if found.module.split(".")[0] == "rehearsal"
        and found.target.split(".")[0] in {"bot", "compaction", "config", "voice"}
        and not within(found.module, COMPOSERS)
        and not within(found.target, REHEARSAL_MAY_USE)
    ]
    assert offences == []


def test_the_local_discord_stands_alone() -> None:
    """Other bots are tested with it, so of ours it imports itself and the Opus codec alone."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in all_imports()
        if within(found.module, LOCAL_DISCORD)
        and found.target.split(".")[0] in PACKAGES
        and not within(found.target, (*LOCAL_DISCORD, CODEC))
    ]
    assert offences == []


@pytest.mark.parametrize("library", sorted(HOMES))
def test_each_library_has_one_home(library: str) -> None:
    """A library is imported only in the modules that translate its errors and peculiarities."""
    offences = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in all_imports()
        if within(found.target, (library,)) and not within(found.module, HOMES[library])
    ]
    assert offences == []


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_imports_go_down(package: str) -> None:
    """Inside a package, no module imports from a higher layer or from another folder of its own layer."""
    height = {part: floor for floor, parts in enumerate(FLOORS[package]) for part in parts}
    inside = [
        (found.module, found.line, part_of(found.module, package), part_of(found.target, package))
        for found in all_imports()
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
    """`FLOORS` lists every folder and top-level module of a package."""
    folder = ROOT.joinpath(*package.split("."))
    found = {part_of(module_name(path), package) for path in folder.rglob("*.py")} - {""}
    assert found == {part for parts in FLOORS[package] for part in parts}


def picture_of(package: str) -> str:
    """Return the diagram of a package's folders in docs/architecture.md."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(package)}\n\n```mermaid\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_every_folder_is_in_the_picture(package: str) -> None:
    folders = {part for parts in FLOORS[package] for part in parts if ROOT.joinpath(*package.split("."), part).is_dir()}
    drawn = set(re.findall(r'(\w+)\["', picture_of(package)))
    assert folders - drawn - NOT_DRAWN == set()


@pytest.mark.parametrize("package", sorted(FLOORS))
def test_every_arrow_is_an_import(package: str) -> None:
    imported = {
        (part_of(found.module, package), part_of(found.target, package))
        for found in all_imports()
        if found.module.startswith(f"{package}.") and found.target.startswith(f"{package}.")
    }
    arrows = set(re.findall(r"^ *(\w+)(?:\[.*?\])? --> (\w+)", picture_of(package), re.MULTILINE))
    assert arrows
    assert arrows - imported == set()


def _named_types(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the classes and the aliases of types of a module, also those for type checking alone."""
    for node in body:
        match node:
            case ast.If():
                yield from _named_types(node.body)
            case ast.ClassDef(name) | ast.AnnAssign(ast.Name(name), ast.Name("TypeAlias")):
                yield name


def test_a_class_name_has_one_meaning() -> None:
    """A public name of a class or of an alias of types is defined only once in all packages, and in the modules that
    tests share, except for the names in `SHARED_CLASS_NAMES`.
    """
    homes: dict[str, list[str]] = defaultdict(list)
    shared = (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    for path in (*sources(), *shared):
        for name in _named_types(parsed(path).body):
            if not name.startswith("_"):
                homes[name].append(module_name(path))
    twice = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {name: modules for name, modules in twice.items() if name not in SHARED_CLASS_NAMES} == {}
    assert set(SHARED_CLASS_NAMES) <= set(twice)


def _module_graph() -> dict[str, set[str]]:
    known = {module_name(path) for path in sources()}
    graph: dict[str, set[str]] = defaultdict(set)
    for found in all_imports():
        target = found.target if found.target in known else found.target.rpartition(".")[0]
        is_excused = found.typing_only and (found.module, target) in CIRCLES_OF_TYPES
        if target in known and target != found.module and not is_excused:
            graph[found.module].add(target)
    return graph


def _imported(graph: dict[str, set[str]], module: str) -> set[str]:
    """Return what a module imports, itself or through others."""
    found, left = set[str](), [module]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_there_is_no_circle_of_imports() -> None:
    """No module imports itself through others, not even for type checking, except for `CIRCLES_OF_TYPES`."""
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
    for module, target in CIRCLES_OF_TYPES:
        assert module in _imported(graph, target), f"{module} may import {target}: there is no circle any more"


def test_every_task_has_a_name() -> None:
    """The names tell in a dump of a process what its tasks are. `ensure_future` takes no name, so nobody calls it."""
    offences = []
    for path in sources():
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            is_named = any(keyword.arg == "name" for keyword in node.keywords)
            if called == "ensure_future" or (called == "create_task" and not is_named):
                offences.append(f"{module_name(path)}:{node.lineno} starts a task without a name")
    assert offences == []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _texts(nodes: list[ast.expr]) -> list[str]:
    return [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _private_names(node: ast.AST) -> list[str]:
    """Return the private names that a piece of a test reads, imports, patches or passes on. A class's own are its own
    business.
    """
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return []
        case ast.Attribute(attr=name):
            found = [name]
        case ast.ImportFrom(module=str(module), names=names):
            found = [*module.split("."), *(alias.name for alias in names)]
        case ast.keyword(arg=str(name)):
            found = [name]
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=args) if called in _BY_NAME:
            found = [name.split(".")[-1] for name in _texts(args)]
        case ast.Tuple(elts=[ast.Constant(value=str(module)), *rest]) if module.split(".")[0] in PACKAGES:
            found = _texts(rest)
        case _:
            return []
    return [name for name in found if _is_private(name)]


def test_tests_use_no_private_names() -> None:
    """What a test cannot see from outside, nobody needs; what somebody needs has a public name."""
    offences = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # Most files of tests have none, and parsing all of them takes seconds.
        if not re.search(
            r"(?<!self)(?<!cls)\._[A-Za-z]|[\"']_[A-Za-z]\w*[\"']|[(,]\s*_[a-z]\w*=|import .*\b_[A-Za-z]", text
        ):
            continue
        place = path.relative_to(ROOT).as_posix()
        offences += [
            f"{place}:{getattr(node, 'lineno', 0)} {name}"
            for node in ast.walk(ast.parse(text))
            for name in _private_names(node)
            if not place.startswith(PRIVATE_OF_OTHERS.get(name, ("nowhere",)))
        ]
    assert offences == []


def test_no_test_imports_another_test_module() -> None:
    """What tests share is in a module of its own, so a test can be changed or removed alone."""
    statement = re.compile(r"^ *(?:from|import) +tests\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.MULTILINE)
    offences = [
        f"{path.relative_to(ROOT).as_posix()}: {found}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for found in statement.findall(path.read_text(encoding="utf-8"))
        if re.search(r"\btest_", found)
    ]
    assert offences == []


def test_time_is_changed_only_where_no_clock_passes_it() -> None:
    """Elsewhere a test lets it pass: on a `FakeClock`, in virtual time, or on the loop's clock (tests/fakes)."""
    patched = re.compile(r"\bsetattr\([^()]*?\b([A-Z][A-Z_]*_M?S)\"")
    files = (ROOT / "tests").rglob("*.py")
    assert {name for path in files for name in patched.findall(path.read_text(encoding="utf-8"))} == set(PATCHED_TIMES)


def test_package_docstrings_name_what_exists() -> None:
    """A package's docstring guides readers to its modules: it names none that was renamed or removed."""
    stale = []
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")):
        docstring = ast.get_docstring(parsed(path)) or ""
        # `module`, `module.name` in this package, or `package.module` from the top. Other words in backticks have a
        # blank, a sign or a capital.
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]\w*)*)`", docstring):
            first = name.split(".")[0]
            here = [path.parent / first, path.parent / f"{first}.py", path.parent / name, ROOT / first]
            if name not in NO_MODULES and not any(found.exists() for found in here):
                stale.append(f"{module_name(path)}: {name}")
    assert stale == []
