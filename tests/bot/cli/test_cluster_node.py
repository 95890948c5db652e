"""`roomtone cluster up` and `down`: the exit status, and that nothing of Ray stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.cli import cluster, cluster_node
from bot.cli.app import run_command_line
from bot.cli.failures import INTERRUPTED
from bot.cluster.node import NodeSettings
from bot.cluster.ray_process import ray_process
from bot.logs.log_file import log_path
from tests.bot.cluster.test_ray_process import is_alive, left_ray, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

POOL = ("scale", "1")


class Machine:
    """A machine whose Ray is a fake, and its commands too. `happens`: what was done, in order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.happens: list[str] = []
        # How each command ends; at the others the operator says that the machine is to stop.
        self.statuses = {"scale": 0}
        self.ray_starts = True
        self.ray_status = asyncio.Future[int]()
        monkeypatch.setattr("bot.cluster.node.running_node", self._running_node)
        monkeypatch.setattr(cluster_node, "_run_command", self._run_command)

    async def up(self, ip: str = "127.0.0.1") -> int:
        """Run `cluster up` and return its exit status."""
        return await cluster_node.run_node(NodeSettings(self.folder, ip=ip), POOL)

    async def join(self, head: str) -> int:
        """Run `cluster up --join` and return its exit status."""
        return await cluster_node.run_node(NodeSettings(self.folder, join=head), ())

    @asynccontextmanager
    async def _running_node(self, node: NodeSettings) -> AsyncIterator[asyncio.Task[int]]:
        assert ray_process(node.folder) is None, "two of them at once"
        ended = asyncio.create_task(self._ray())
        try:
            if not self.ray_starts:
                await self._stopped("start")
            self.happens.append("Ray runs")
            yield ended
        finally:
            self.happens.append("Ray ends")
            ended.cancel()

    async def _ray(self) -> int:
        return await self.ray_status

    async def _run_command(self, words: Sequence[str]) -> int:
        self.happens.append(words[0])
        status = self.statuses.get(words[0])
        if status is None:
            await self._stopped(words[0])
        return status or 0

    async def _stopped(self, what: str) -> None:
        """Hang, and let systemd stop the service meanwhile."""
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            self.happens.append(f"{what} is given up")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("hangs", "happens"),
    [
        ("start", ["start is given up", "Ray ends"]),
        ("scale", ["Ray runs", "scale", "scale is given up", "Ray ends"]),
    ],
)
async def test_a_machine_that_is_stopped_while_it_starts_ends_ray(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    hangs: str,
    happens: list[str],
) -> None:
    """It waits neither for Ray nor for recognisers that nobody wants any more, and systemd sees no failure."""
    machine = Machine(tmp_path, monkeypatch)
    machine.ray_starts = hangs != "start"
    machine.statuses.pop(hangs, None)
    assert await machine.up() == 0
    assert machine.happens == happens
    assert "Ending Ray …" in capsys.readouterr().out


@pytest.mark.asyncio
async def test_a_machine_that_is_taken_out_ends_without_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cluster down` stops it, and systemd, which starts it again after a failure, leaves it."""
    machine = Machine(tmp_path, monkeypatch)
    running = asyncio.create_task(machine.up())
    told = ""
    while "Ctrl-C ends it." not in told:
        await asyncio.sleep(0)
        told += capsys.readouterr().out
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert machine.happens == ["Ray runs", "scale", "Ray ends"]


@pytest.mark.asyncio
@pytest.mark.parametrize("ray_status", [0, 1])
async def test_a_machine_that_lost_ray_ends_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ray_status: int
) -> None:
    """However Ray ends by itself, systemd starts the machine again."""
    machine = Machine(tmp_path, monkeypatch)
    machine.ray_status.set_result(ray_status)
    assert await machine.up() == 1
    assert "Ray has ended by itself." in capsys.readouterr().out


@pytest.mark.asyncio
async def test_a_machine_that_has_joined_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the cluster that it is in now. It starts nothing there."""
    machine = Machine(tmp_path, monkeypatch)
    machine.ray_status.set_result(1)
    await machine.join("10.0.0.1:6379")
    assert "This machine is in the cluster of 10.0.0.1:6379." in capsys.readouterr().out
    assert machine.happens == ["Ray runs", "Ray ends"]


@pytest.mark.parametrize("words", [["up"], ["down"]])
def test_events_go_into_the_log_and_not_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """A terminal that is closed ends `up`: a line for that terminal would be an error."""

    async def work(*_: object) -> int:
        structlog.get_logger().info("recogniser_ended")
        return 0

    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(cluster, "run_node", work)
    monkeypatch.setattr(cluster, "end_left_ray", work)
    monkeypatch.setattr("bot.cluster.ray_process.ray_process", lambda _: 1)
    assert run_command_line(["cluster", *words]) == 0
    assert "recogniser_ended" in log_path(tmp_path / "data").read_text("utf-8")
    assert "recogniser_ended" not in "".join(capsys.readouterr())


@pytest.mark.asyncio
async def test_a_command_that_fails_ends_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its status, and what comes after it is not begun."""
    machine = Machine(tmp_path, monkeypatch)
    machine.statuses["scale"] = 3
    assert await machine.up() == 3
    assert machine.happens == ["Ray runs", "scale", "Ray ends"]


@pytest.mark.asyncio
@pytest.mark.process
async def test_a_command_that_is_given_up_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that does not hear SIGTERM, as one that waits for Ray in a thread."""
    number, program = tmp_path / "number", tmp_path / "program"
    program.write_text(
        f"#!/bin/sh\ntrap '' TERM\necho $$ >{number}.new\nmv {number}.new {number}\nexec sleep infinity\n"
    )
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    running = asyncio.create_task(cluster_node._run_command(["scale", "1"]))
    await until(number.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_alive(int(number.read_text()))


@pytest.mark.asyncio
@pytest.mark.process
async def test_a_ray_that_was_left_is_ended_before_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the port, and the recognisers of it would be nobody's."""
    machine = Machine(tmp_path, monkeypatch)
    machine.ray_status.set_result(1)
    with left_ray(tmp_path) as process:
        assert await machine.up() == 1
        assert process.wait() == -signal.SIGTERM
    assert "has left Ray running" in capsys.readouterr().out


@pytest.mark.process
def test_down_ends_a_ray_that_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where `cluster up` was killed, nobody else would. The second `down` has nothing to do."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    with left_ray(tmp_path / "data" / "cluster") as process:
        assert run_command_line(["cluster", "down"]) == 0
        assert process.wait() == -signal.SIGTERM
    assert "has left Ray running" in capsys.readouterr().out
    assert run_command_line(["cluster", "down"]) == 0
    assert "in no cluster" in capsys.readouterr().out


@pytest.mark.process
def test_a_machine_that_is_told_twice_leaves_no_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray is in a session of its own, where the second Ctrl-C does not reach it."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with left_ray(tmp_path) as process:
        cluster_node._end_at_once(tmp_path, INTERRUPTED)
        assert process.wait() == -signal.SIGKILL
    assert ended == [INTERRUPTED]
