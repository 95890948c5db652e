"""The user, the ports and the receive buffer of the machine."""

from __future__ import annotations

import socket

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import check_ports, check_receive_buffer, check_user, check_web_port
from bot.settings import WebSettings
from tests.bot.cli.doctor.findings import is_missing


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


def test_web_port() -> None:
    """A port that another program has is a warning: the bot talks without its pages. The bot's own is none."""
    free = check_web_port(WebSettings(port=0), bot_runs=False)
    assert (free.status, free.detail) == (Status.OK, "any free one on 127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        taken = check_web_port(WebSettings(port=port), bot_runs=False)
        own = check_web_port(WebSettings(port=port), bot_runs=True)
    assert taken.status is Status.WARNING
    assert taken.detail.startswith(f"127.0.0.1:{port} is in use by another program: there are no dashboard")
    assert "choose another web.port" in taken.remedy
    assert (own.status, own.detail) == (Status.OK, f"127.0.0.1:{port} is in use, by the bot that runs")
    again = check_web_port(WebSettings(port=port), bot_runs=False)
    assert (again.status, again.detail) == (Status.OK, f"127.0.0.1:{port} is free")


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64])
def test_a_web_host_that_is_not_this_machine(host: str) -> None:
    """Whatever is wrong with it, the remedy names the setting."""
    finding = check_web_port(WebSettings(host=host), bot_runs=True)
    assert finding.status is Status.WARNING
    assert finding.detail.startswith(f"nothing can listen on {host}:8095 (")
    assert "Set web.host to an address of this machine" in finding.remedy


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
