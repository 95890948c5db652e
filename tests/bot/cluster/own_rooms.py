"""The tests of places for rooms on three machines: their processes, their actors and their machines are lost.

`test_real_cluster` starts them in a network of their own; a plain test run does not collect this file. No bot listens
and there is no database, so a place's process runs and its rooms' processes do not load: it is tested who is there.
"""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bot.cluster.place_folder import places_here
from bot.cluster.running_process import PROCESS_FILE
from tests.bot.cluster.machines import FIRST_IP, Machine, build_bridge, give_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE_S = 180.0
GATEWAY = "10.77.0.1:9"
OFFER = ("cluster", "rooms", "--gateway", GATEWAY, "--rooms", "1", "--cpus", "0.5")
# Run on a machine: end its process of this number.
KILL = "import os, sys; os.kill(int(sys.argv[1]), 9)"
_RUNS = re.compile(r"(place-\d+): on (\S+) \(.*\), processes: ")


@dataclass
class Cluster:
    """The three machines. The test runs on the first."""

    machines: list[Machine]

    def places(self) -> dict[str, str]:
        """Return the address of the machine of each place whose process runs, as the operator reads it."""
        told = self.machines[0].run("cluster", "status").splitlines()
        return {match[1]: match[2] for line in told if (match := _RUNS.match(line))}

    def until(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        """Wait until the places are so, and return them."""
        until(lambda: holds(self.places()))
        return self.places()

    def at(self, ip: str) -> Machine:
        """Return the machine of an address."""
        return next(machine for machine in self.machines if machine.ip == ip)


def until(holds: Callable[[], bool]) -> None:
    """Wait for other machines, which tell nobody."""
    due = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < due, "it did not come about"
        time.sleep(0.5)


def process_of(machine: Machine, place: str) -> str:
    """Return the number of the place's process on its machine."""
    file = machine.folder / "data" / "cluster" / "places" / place / PROCESS_FILE
    return file.read_text().strip() if file.is_file() else ""


def has_processes(machine: Machine) -> bool:
    """Return whether any place has a process on the machine: their locks are seen from everywhere."""
    return any(place.process for place in places_here(machine.folder / "data" / "cluster"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, whisper_model_dir: Path) -> Iterator[Cluster]:
    """Yield three machines with two places for rooms, as an operator sets them up."""
    build_bridge()
    machines = []
    for number in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"machine{number}")
        (folder / "roomtone.toml").write_text(
            f'[asr]\nmodel = "{whisper_model_dir.absolute()}"\ndevice = "cpu"\n', encoding="utf-8"
        )
        machines.append(Machine(number, folder))
    first, *others = machines
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOMTONE_DATABASE_URL", "postgresql://roomtone@127.0.0.1:9/roomtone")
        for machine in machines:
            stack.callback(machine.kill)
        stack.enter_context(first.up("--cpus", "0.5"))
        for machine in others:
            give_token(machine, of=first)
            stack.enter_context(machine.up("--join", f"{FIRST_IP}:6379"))
        first.run("cluster", "rooms", "--gateway", GATEWAY, "--rooms", "1", "--cpus", "0.5", "--places", "2")
        yield Cluster(machines)


def test_ray_spreads_the_places(cluster: Cluster) -> None:
    """Two places run, on two machines."""
    places = cluster.until(lambda now: len(now) == 2)
    assert len(set(places.values())) == 2


def test_a_killed_process_is_back(cluster: Cluster) -> None:
    """On the same machine, with another number."""
    ip = cluster.places()["place-1"]
    machine = cluster.at(ip)
    before = process_of(machine, "place-1")
    machine.python(KILL, before)
    until(lambda: process_of(machine, "place-1") not in ("", before))
    assert cluster.until(lambda now: len(now) == 2)["place-1"] == ip


def test_a_killed_actor_is_back_and_its_process_went_on(cluster: Cluster) -> None:
    """All actors are killed. Each place is kept again; no process was started beside one that its actor found."""
    before = cluster.places()
    processes = {name: process_of(cluster.at(ip), name) for name, ip in before.items()}
    subprocess.run(["pkill", "-9", "-f", "^ray::PlaceActor"], check=True)
    after = cluster.until(lambda now: len(now) == 2)
    for name, ip in after.items():
        if ip == before[name]:
            assert process_of(cluster.at(ip), name) == processes[name]


def test_a_drained_machine_has_no_rooms(cluster: Cluster) -> None:
    """Its place is another one elsewhere before the command returns, and there are as many as before."""
    ip = next(ip for ip in cluster.places().values() if ip != FIRST_IP)
    told = cluster.machines[0].run("cluster", "drain", ip)
    assert "no rooms" in told
    assert not has_processes(cluster.at(ip))
    places = cluster.until(lambda now: len(now) == 2)
    assert ip not in places.values()
    cluster.machines = [machine for machine in cluster.machines if machine.ip != ip]


def test_the_places_of_a_lost_machine_are_elsewhere(cluster: Cluster) -> None:
    """A machine's processes all end at once. Ray starts its places on the machine that is left."""
    first, other = cluster.machines
    first.run(*OFFER, "--places", "3")
    cluster.until(lambda now: len(now) == 3 and other.ip in now.values())
    other.kill()
    cluster.until(lambda now: list(now.values()) == [FIRST_IP] * 3)


def test_places_that_are_too_many_leave_and_the_rest_goes_with_the_machine(cluster: Cluster) -> None:
    """One command changes how many there are; `cluster up` leaves no process behind when it is told to end."""
    first = cluster.machines[0]
    assert "Places for rooms: 1 of 1." in first.run(*OFFER, "--places", "1")
    assert list(cluster.places()) == ["place-1"]
    first.end()
    assert "All rooms are handed over." in first.told
    assert not has_processes(first)
