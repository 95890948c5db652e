"""`roomtone cluster rooms` and `--rooms-listen`: what their words mean, and what a process does without its parent."""

from __future__ import annotations

import asyncio
import io
import logging
import os
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.cli.app import run_command_line
from bot.cli.environment import cluster_folder
from bot.cli.room import _stop_without_parent
from bot.cli.room_start import RoomPlacement, gateway_for_others, room_command, room_start
from bot.cluster.room_offer import RoomOffer
from bot.cluster.running_process import occupied
from bot.cluster.worker_folder import worker_folder
from bot.cluster.worker_output import MOST_BYTES
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.remote.link.address import RoomsAddress
from compaction.errors import StoreError
from config.load import load
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bot.cluster.node import NodeSettings
    from bot.remote.processes.room_machine import RoomMachine
    from config.schema import Settings

UP = ["cluster", "up", "--workers", "2", "--gateway", "10.0.0.1:8572"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder on a machine with a database server."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", "postgresql://roomtone@127.0.0.1/roomtone")
    return tmp_path / "data"


def has_token(data: Path) -> None:
    """Give the machine the cluster's token."""
    (data / "cluster").mkdir(parents=True)
    (data / "cluster" / "token").write_text("a" * 64, "ascii")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("10.0.0.1:8572", "wss://10.0.0.1:8572/room"),
        ("rooms.internal:1", "wss://rooms.internal:1/room"),
        ("[fd00::1]:8572", "wss://[fd00::1]:8572/room"),
        (" 10.0.0.1:65535 ", "wss://10.0.0.1:65535/room"),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, url: str) -> None:
    """Of IPv6, which needs brackets, too."""
    assert RoomsAddress.parsed(text).url() == url


@pytest.mark.parametrize("text", ["", "8572", ":8572", "10.0.0.1", "10.0.0.1:", "a:0", "a:65536", "a:b", "a/b:1"])
def test_what_is_no_address_is_a_sentence(text: str) -> None:
    """It says how to write one."""
    with pytest.raises(SetupError, match="Give it as HOST:PORT"):
        RoomsAddress.parsed(text)


def test_the_bot_listens_for_other_machines_only_when_it_is_told(data: Path) -> None:
    """Then it has the cluster's token, and makes one on the first machine."""
    settings = load()
    assert room_start(settings, RoomPlacement.HERE, None, None) is None
    with pytest.raises(SetupError, match="Add --rooms processes"):
        room_start(settings, RoomPlacement.HERE, "10.0.0.1:8572", None)
    alone = room_start(settings, RoomPlacement.PROCESSES, None, None)
    assert alone is not None
    assert (alone.listen, (data / "cluster").exists()) == (None, False)
    start = room_start(settings, RoomPlacement.PROCESSES, "10.0.0.1:8572", "auto")
    assert start is not None
    assert start.listen == RoomsAddress("10.0.0.1", 8572)
    assert start.token == (cluster_folder(settings) / "token").read_text("ascii")
    assert [*start.command("ws://here", "a")][-6:-1] == ["room", "ws://here", "a", "--cluster", "auto"]
    again = room_start(settings, RoomPlacement.PROCESSES, "10.0.0.1:8572", None)
    assert again is not None
    assert again.token == start.token
    assert "--elsewhere" in start.command("ws://here", "a"), "the notice names the other machines"
    assert "--elsewhere" not in alone.command("ws://here", "a")
    assert room_command(None, "ws://there", "b", machine="north")[-4:] == ["ws://there", "b", "--machine", "north"]


@pytest.mark.parametrize(
    ("listen", "gateway"),
    [
        ("10.0.0.1:8572", "10.0.0.1:8572"),
        ("rooms.internal:8572", "rooms.internal:8572"),
        ("[fd00::1]:8572", "[fd00::1]:8572"),
        ("0.0.0.0:8572", "THIS-MACHINE:8572"),
        ("[::]:8572", "THIS-MACHINE:8572"),
    ],
)
def test_other_machines_are_told_an_address_that_they_reach(listen: str, gateway: str) -> None:
    """At the one for all addresses, each would ask itself."""
    assert gateway_for_others(RoomsAddress.parsed(listen)) == gateway


def test_a_machine_without_what_rooms_need_says_so(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it has loaded anything: an address, a name, the token, the database. Nor is an option left unused."""
    offering = ["cluster", "rooms", "--gateway", "10.0.0.1:8572"]
    for words, problem in (
        (["cluster", "rooms", "--gateway", "10.0.0.1"], "Give it as HOST:PORT"),
        (["cluster", "rooms", "--gateway", "0.0.0.0:8572"], "No other machine is reached at 0.0.0.0"),
        (["cluster", "rooms", "--gateway", "[::]:8572"], "No other machine is reached at ::"),
        ([*offering, "--name", "a b"], "is not the name of a machine"),
        ([*offering, "--name", "north", "--workers", "2"], "--name is for rooms on this machine alone"),
        ([*offering, "--cpus", "2"], "give --workers"),
        ([*offering, "--gpus", "0.5"], "give --workers"),
        (offering, "token: No such file or directory. `roomtone cluster up` makes it on the first machine"),
    ):
        assert run_command_line(words) == 1
        assert problem in " ".join(capsys.readouterr().err.split())
    has_token(data)
    monkeypatch.delenv("ROOMTONE_DATABASE_URL")
    assert run_command_line(offering) == 1
    assert "Set ROOMTONE_DATABASE_URL as on the bot's machine" in " ".join(capsys.readouterr().err.split())


def test_workers_are_asked_for_with_the_same_words(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --workers, the cluster is told what each worker offers; nothing is offered on this machine."""
    asked: list[tuple[RoomOffer, int]] = []

    async def set_workers(settings: Settings, offer: RoomOffer, count: int) -> None:
        assert settings.storage.data_dir == data
        asked.append((offer, count))

    monkeypatch.setattr("bot.cli.cluster_rooms._set_workers", set_workers)
    has_token(data)
    offering = ["cluster", "rooms", "--gateway", "10.0.0.1:8572"]
    assert run_command_line([*offering, "--workers", "3"]) == 0
    assert (
        run_command_line(
            [*offering, "--workers", "0", "--rooms", "2", "--waiting", "2", "--rooms-each", "3", "--cpus", "0.5"]
        )
        == 0
    )
    assert asked == [
        (RoomOffer("10.0.0.1:8572", 4, cluster="auto"), 3),
        (RoomOffer("10.0.0.1:8572", 2, 3, "auto", waiting=2, cpus=0.5), 0),
    ]
    for words, problem in (
        ([*offering, "--workers", "999"], "between 0 and 256 room workers"),
        (
            [*offering, "--workers", "2", "--waiting", "5"],
            "fewer processes (--rooms, 4) than shall wait",
        ),
        (["cluster", "up", "--gateway", "10.0.0.1:8572"], "--workers and --gateway belong together"),
        (["cluster", "up", "--workers", "2"], "--workers and --gateway belong together"),
        (["cluster", "up", "--rooms-each", "2"], "are for --workers"),
        ([*UP, "--waiting", "5"], "fewer processes (--rooms, 4) than shall wait"),
        ([*UP, "--cluster", "north"], "is not the address of a cluster"),
    ):
        assert run_command_line(words) == 1
        assert problem in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "offer",
    [
        RoomOffer("10.0.0.1:8572", cluster="auto"),
        RoomOffer("10.0.0.1:8572", 6, 4, "10.0.0.1:8571", waiting=3, cpus=0.5, gpus=0.25),
        RoomOffer("10.0.0.1:8572", 6, 4, None, waiting=3),
    ],
)
def test_the_service_of_the_first_machine_asks_for_the_same_workers(
    data: Path, monkeypatch: pytest.MonkeyPatch, offer: RoomOffer
) -> None:
    """`cluster up` says what `cluster rooms --workers` says. Otherwise its restart would change every worker."""
    asked: list[tuple[RoomOffer, int]] = []
    pools: list[Sequence[str]] = []
    wanted: list[Sequence[str]] = []

    async def set_workers(_: Settings, offer: RoomOffer, count: int) -> None:
        asked.append((offer, count))

    async def up(_: NodeSettings, pool: Sequence[str], workers: Sequence[str]) -> int:
        pools.append(pool)
        wanted.append(workers)
        return 0

    monkeypatch.setattr("bot.cli.cluster_rooms._set_workers", set_workers)
    monkeypatch.setattr("bot.cli.cluster.run_node", up)
    has_token(data)
    [command, *words] = offer.asking(3)
    assert run_command_line(["cluster", command, *words]) == 0
    renamed = {"--cpus": "--worker-cpus", "--gpus": "--worker-gpus"}
    assert run_command_line(["cluster", "up", *(renamed.get(word, word) for word in words), "--cpus", "2"]) == 0
    assert pools[0][0] == "scale"
    assert run_command_line(["cluster", *wanted[0]]) == 0
    assert asked == [(offer, 3), (offer, 3)]


def test_rooms_use_the_cluster_that_their_machine_is_in(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are told otherwise. Where there is no cluster, none is said to be away."""
    offered: list[str | None] = []

    async def rooms(_settings: Settings, offer: RoomOffer, _name: str, _worker: str) -> None:
        offered.append(offer.cluster)

    monkeypatch.setattr("bot.cli.cluster_rooms._rooms", rooms)
    has_token(data)
    offering = ["cluster", "rooms", "--gateway", "10.0.0.1:8572"]
    assert run_command_line(offering) == 0
    with occupied(data / "cluster"):
        assert run_command_line(offering) == 0
        assert run_command_line([*offering, "--cluster", "none"]) == 0
        worker = RoomOffer("10.0.0.1:8572").command("worker-1")
        assert run_command_line(worker[worker.index("cluster") :]) == 0
        assert run_command_line([*offering, "--cluster", "10.0.0.9:8571"]) == 0
    assert offered == [None, "auto", None, None, "10.0.0.9:8571"]


def test_a_worker_keeps_what_it_says_short(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of a worker does so while it offers rooms, because its actor may be away."""
    has_token(data)
    output = worker_folder(data / "cluster", "a-worker-1").output
    output.parent.mkdir(parents=True)
    output.write_bytes(b"x" * (MOST_BYTES + 1))

    async def run(_machine: RoomMachine, _stop: asyncio.Event) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while output.stat().st_size > MOST_BYTES:  # noqa: ASYNC110 - a thread cuts it
                await asyncio.sleep(0.01)

    monkeypatch.setattr("bot.remote.processes.room_machine.RoomMachine.run", run)
    assert run_command_line(["cluster", "rooms", "--gateway", "10.0.0.1:8572", "--worker", "a-worker-1"]) == 0
    assert output.stat().st_size == 0


WORDS, NAME = "the walrus sleeps", "Marguerite"


def log_what_was_said() -> None:
    """Log as a room could: fields, an error that quotes, and a message of a library."""
    log = structlog.get_logger()
    log.warning(
        "turn_recorded", speaker_id=7, text=WORDS, name=NAME, problem=StoreError(f"It has no '{NAME}: {WORDS}'.")
    )
    logging.getLogger("library").warning("%s said %s", NAME, WORDS)
    try:
        raise ValueError(f"{NAME}: {WORDS}")
    except ValueError:
        log.exception("room_crashed")


def is_said_in(text: str) -> bool:
    """Return whether a text has what was said, or who said it."""
    return NAME in text or "walrus" in text


def test_a_machine_with_rooms_logs_no_words_and_no_names(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`/forget-me` does not reach its log: not the file, and not what it prints, which a worker has as a file. Lines
    are kept as long as the bot's. The operator who wants words in logs is told.
    """
    has_token(data)
    monkeypatch.setenv("ROOMTONE_LOGS__SPEECH", "true")
    file = log_path(data)
    file.parent.mkdir(parents=True)
    file.write_text('{"timestamp": "2020-01-01T00:00:00Z", "level": "info", "event": "turn_recorded"}\n')

    async def run(_machine: RoomMachine, _stop: asyncio.Event) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while "2020-01-01" in file.read_text():  # noqa: ASYNC110 - a thread removes it
                await asyncio.sleep(0.01)
        log_what_was_said()

    monkeypatch.setattr("bot.remote.processes.room_machine.RoomMachine.run", run)
    assert run_command_line(["cluster", "rooms", "--gateway", "10.0.0.1:8572"]) == 0
    printed = "".join(capfd.readouterr())
    assert "although logs.speech is on" in printed
    assert "room_crashed" in printed
    assert file.read_text().count("turn_recorded") == 1
    assert not is_said_in(file.read_text() + printed)


@pytest.mark.parametrize("machine", ["north", ""])
def test_a_process_of_another_machine_logs_no_words_and_no_names(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], machine: str
) -> None:
    """One of the bot's own machine does if the operator wants it: `/forget-me` cleans that log."""
    has_token(data)
    monkeypatch.setenv("ROOMTONE_LOGS__SPEECH", "true")
    monkeypatch.setattr("bot.cli.room._stop_without_parent", lambda *_, **__: nullcontext())
    monkeypatch.setattr("bot.remote.link.link_file.read_link", lambda _: SimpleNamespace(token="t"))

    async def run(*_: object, **__: object) -> str:
        log_what_was_said()
        return "left"

    monkeypatch.setattr("bot.wiring.room_process.run_room_process", run)
    offer = ["--machine", machine] if machine else []
    assert run_command_line(["room", "ws://127.0.0.1:9/room", "one", *offer]) == 0
    printed, written = "".join(capfd.readouterr()), log_path(data).read_text()
    assert "turn_recorded" in written
    assert "room_crashed" in printed
    assert is_said_in(written) == is_said_in(printed) == (not machine)


@pytest.mark.asyncio
async def test_a_process_hands_its_room_over_when_its_parent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent holds the other end of standard input, and writes nothing."""
    reading, writing = os.pipe()
    with io.TextIOWrapper(os.fdopen(reading, "rb", buffering=0)) as source:
        monkeypatch.setattr("sys.stdin", source)
        stop = asyncio.Event()
        with _stop_without_parent(stop, watches=True):
            os.write(writing, b"anything")
            await asyncio.sleep(0)
            assert not stop.is_set()
            os.close(writing)
            async with asyncio.timeout(PATIENCE_S):
                await stop.wait()
