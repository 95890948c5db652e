"""The user, the ports and the receive buffer of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import check_ports, check_receive_buffer, check_user
from tests.bot.cli.doctor.findings import is_missing

if TYPE_CHECKING:
    import socket


def test_root_is_warned_of() -> None:
    """A bot that runs as root gets a warning with the remedy."""
    assert check_user(root=False).status == "ok"
    warned = check_user(root=True)
    assert warned.status == "warning"
    assert "user of its own" in warned.remedy


def test_ports() -> None:
    """If no socket can be opened on this machine, the reason is reported."""
    assert check_ports().status is Status.OK

    def bind(_kind: socket.SocketKind) -> None:
        raise OSError(24, "Too many open files")

    assert is_missing(check_ports(bind), detail="Too many open files", remedy="ulimit")


def test_receive_buffer() -> None:
    """A small receive buffer is a warning that names the number of people it is enough for, and the remedy."""
    assert check_receive_buffer().detail.startswith("the system keeps ")
    assert check_receive_buffer(lambda: 4 << 20).status is Status.OK
    small = check_receive_buffer(lambda: 212_992)
    assert small.status is Status.WARNING
    assert "208 KB" in small.detail
    assert "more than 66 people" in small.detail
    assert "net.core.rmem_max=4194304" in small.remedy

    def refuse() -> int:
        raise OSError(24, "Too many open files")

    assert check_receive_buffer(refuse).detail == "not known: Too many open files"
