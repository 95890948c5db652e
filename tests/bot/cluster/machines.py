"""Machines of their own on this one: each has its network, its processes and its temporary files.

For tests that run in a network of their own, as root. The machines are on one bridge; the test itself is the first
machine, at `FIRST_IP`. Killing a machine ends all its processes at once, as when somebody pulls the plug.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMTONE = [sys.executable, "-m", "bot"]
FIRST_IP = "10.77.0.1"
_BRIDGE = "machines"
# The first process of a machine: it collects what others leave behind, as every first process must.
_INIT = (
    'echo "$0" >/proc/sys/kernel/hostname && mkdir -p /tmp/ray && mount -t tmpfs none /tmp/ray && echo ready && '
    "{ sleep infinity & wait; }"
)
# What each machine has for itself, besides its temporary files.
_OWN = ("--net", "--pid", "--mount", "--uts")
_SEEN_EVERY_S = 0.2
# Ray takes up to half a minute, and then each room waits for a pause in speech.
_LEAVES_WITHIN_S = 180.0


def environment() -> dict[str, str]:
    """Return the variables of a command that runs in another folder."""
    # With this the tests find their model (tests/conftest.py); Roomtone would refuse it as no setting.
    without = {name: value for name, value in os.environ.items() if name != "ROOMTONE_WHISPER_MODEL"}
    return {**without, "PYTHONPATH": str(Path.cwd())}


def build_bridge() -> None:
    """Connect this machine, at `FIRST_IP`, to the others to come."""
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{FIRST_IP}/24", "dev", _BRIDGE)
    _ip("link", "set", _BRIDGE, "up")


class Machine:
    """One machine. `number`: the last part of its address; 1 is the machine that the test runs on."""

    def __init__(self, number: int, folder: Path) -> None:
        self.ip = f"10.77.0.{number}"
        self.name = f"machine{number}"
        self.folder = folder
        self._first = number == 1
        self._prefix: list[str] = []
        self._up: subprocess.Popen[bytes] | None = None
        self._machine: subprocess.Popen[bytes] | None = None
        if not self._first:
            self._boot()

    def run(self, *words: str) -> str:
        """Run a command of Roomtone here, which must end well, and return what it printed."""
        return self._printed([*ROOMTONE, *words])

    def refusal(self, *words: str) -> str:
        """Run a command of Roomtone here, which must fail, and return what it said."""
        ended = self._finished([*ROOMTONE, *words])
        assert ended.returncode == 1
        return ended.stderr

    def python(self, program: str, *words: str) -> str:
        """Run a Python program here, which must end well, and return what it printed."""
        return self._printed([sys.executable, "-c", program, *words])

    @contextmanager
    def up(self, *words: str) -> Iterator[None]:
        """Run `roomtone cluster up` here; yield when it runs. An earlier one has ended."""
        if self._up is not None:
            self._up.wait(_LEAVES_WITHIN_S)
        with (self.folder / "up.txt").open("wb") as file:
            self._up = subprocess.Popen(
                [*self._prefix, *ROOMTONE, "cluster", "up", "--ip", self.ip, *words],
                cwd=self.folder,
                env=environment(),
                stdout=file,
                stderr=file,
            )
        try:
            while "Ctrl-C ends it." not in self.told:
                assert self._up.poll() is None, self.told
                time.sleep(_SEEN_EVERY_S)
            yield
        finally:
            self.end()

    @contextmanager
    def running(self, *words: str) -> Iterator[None]:
        """Run a command of Roomtone here during the block, and then interrupt it as Ctrl-C does."""
        with subprocess.Popen(
            [*self._prefix, *ROOMTONE, *words],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as command:
            try:
                yield
            finally:
                command.send_signal(signal.SIGINT)

    @property
    def told(self) -> str:
        """Return what `cluster up` has printed."""
        return (self.folder / "up.txt").read_text()

    def end(self) -> None:
        """Ask `cluster up` to end, and wait for it. Does nothing on a machine that was killed."""
        assert self._up is not None
        if self._up.poll() is None:
            os.kill(self._process_of_up, signal.SIGTERM)
            self._up.wait(_LEAVES_WITHIN_S)

    def leave(self) -> str:
        """Let the machine leave as its operator does, wait for the end of `cluster up`, and return what both said."""
        told = self.run("cluster", "down")
        assert self._up is not None
        self._up.wait(_LEAVES_WITHIN_S)
        return told + self.told

    def kill(self) -> None:
        """End every process of the machine at once. On the first one, which is the test's own, only `cluster up`."""
        if self._first and self._up is not None and self._up.poll() is None:
            self._up.kill()
            self._up.wait()
        if self._machine is None or self._machine.poll() is not None:
            return
        os.kill(self._init, signal.SIGKILL)
        self._machine.wait()
        if self._up is not None:
            self._up.wait()

    def processes(self, *words: str) -> list[int]:
        """Return the machine's processes, by their numbers here, whose command line has all of these words."""
        network = _network(os.getpid() if self._first else self._init)
        if not network:
            return []
        return [
            process
            for process, command in _commands()
            if all(word in command for word in words) and _network(process) == network
        ]

    @property
    def _process_of_up(self) -> int:
        """Return the process of `cluster up`, below the one that entered the machine."""
        assert self._up is not None
        return self._up.pid if self._first else _only_child(self._up.pid)

    def _boot(self) -> None:
        self._machine = subprocess.Popen(
            ["unshare", *_OWN, "--fork", "--kill-child", "--mount-proc", "sh", "-c", _INIT, self.name],
            stdout=subprocess.PIPE,
        )
        assert self._machine.stdout is not None
        with self._machine.stdout as output:
            assert output.readline() == b"ready\n"
        self._init = _only_child(self._machine.pid)
        _ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", str(self._init))
        _ip("link", "set", self.name, "master", _BRIDGE, "up")
        self._prefix = ["nsenter", f"--target={self._init}", *_OWN, f"--wd={self.folder}"]
        for words in (("addr", "add", f"{self.ip}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
            subprocess.run([*self._prefix, "ip", *words], check=True)
        subprocess.run([*self._prefix, "ip", "link", "set", "lo", "up"], check=True)

    def _printed(self, command: list[str]) -> str:
        ended = self._finished(command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def _finished(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix, *command],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )


def give_token(to: Machine, *, of: Machine) -> None:
    """Copy the cluster's token to another machine, as its operator does."""
    place = Path("data/cluster")
    (to.folder / place).mkdir(parents=True, mode=0o700)
    shutil.copy(of.folder / place / "token", to.folder / place / "token")


def _commands() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_text("utf-8", "replace").replace("\0", " ")


def _network(process: int) -> str:
    """Return the network that a process is in; empty if it has ended."""
    with suppress(OSError):
        return str(Path(f"/proc/{process}/ns/net").readlink())
    return ""


def _only_child(process: int) -> int:
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
