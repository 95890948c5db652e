"""How room workers are called."""

from __future__ import annotations

import re

import pytest

from bot.cluster.worker_names import names_to_add, numbered, serves, worker_name

A = "10.0.0.1:8572"
# Addresses of different gateway processes, some of which read alike without their signs.
GATEWAYS = (
    A,
    "10.0.0.1:8573",
    "north.internal:8572",
    "roomtone-rooms:8572",
    "[fd00::1]:8572",
    "[fd00:1::]:8572",
    "fd00-1:8572",
    "[::1]:1",
    f"{'a' * 250}:1",
    f"{'a' * 250}:2",
    "../../etc:1",
    "größe.example:1",
)


def test_each_gateway_process_has_names_of_its_own() -> None:
    """Two that read alike too. A name is one short folder, whatever the address is."""
    names = [worker_name(gateway, 1) for gateway in GATEWAYS]
    assert len({*names}) == len(GATEWAYS)
    assert all(re.fullmatch(r"[a-z0-9.-]{10,70}", name) for name in names), names
    assert worker_name(A, 12) == "10.0.0.1-8572-worker-12"


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_a_name_says_whom_the_worker_serves(gateway: str) -> None:
    """However the address is written."""
    name = worker_name(gateway, 7)
    assert numbered(name)[1] == 7
    assert [other for other in GATEWAYS if serves(name, other)] == [gateway]
    assert serves(name, f" {gateway.upper()} ")


@pytest.mark.parametrize("name", ["", "SERVE_PROXY_ACTOR", "worker-1", "a-worker-0", "a-worker-1x", "A-worker-1"])
def test_another_actor_is_no_worker(name: str) -> None:
    """Ray Serve's for example."""
    assert numbered(name) == ("", 0)
    assert not serves(name, A)


@pytest.mark.parametrize(
    ("there", "count", "numbers"),
    [((), 2, [1, 2]), ((1,), 3, [2, 3]), ((2,), 2, [1]), ((1, 3), 3, [2]), ((1,), 1, [])],
)
def test_the_lowest_free_numbers_are_added(there: tuple[int, ...], count: int, numbers: list[int]) -> None:
    """A worker that has left makes its number free."""
    names = [worker_name(A, number) for number in there]
    assert names_to_add(names, count, A) == [worker_name(A, number) for number in numbers]


def test_ten_comes_after_nine() -> None:
    """Workers are sorted by their gateway process, and then by number."""
    names = [worker_name(gateway, number) for gateway in (A, "10.0.0.9:1") for number in (2, 9, 10)]
    assert [*sorted(names)] != names
    assert sorted({*names}, key=numbered) == names
