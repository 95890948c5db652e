"""A port for a program that has to be told one: free, and not of those that others get by chance."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from rehearsal.servers import free_port as module
from rehearsal.servers.free_port import free_port

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("told", "below"), [("20000 60999", 20_000), ("no range", 32_768), ("", 32_768)])
def test_nobody_gets_it_by_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, below: int) -> None:
    """It lies below the ports that the system gives out, or that most systems do."""
    place = tmp_path / "range"
    if told:
        place.write_text(told)
    monkeypatch.setattr(module, "_RANGE", place)
    assert 10_000 <= free_port() < below


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all below are taken, it is any other."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        taken: int = first.getsockname()[1]
        monkeypatch.setattr(module, "_LOWEST", taken)
        monkeypatch.setattr(module, "_first_given_out", lambda: taken + 1)
        second.bind(("127.0.0.1", free_port()))
        assert second.getsockname()[1] != taken
