"""The web port of the machine."""

from __future__ import annotations

import socket

import pytest

from bot.cli.doctor.finding import Status
from bot.cli.doctor.machine import check_web_port
from bot.settings import WebSettings


def test_web_port() -> None:
    """A port that another program has is a warning: the bot talks without its pages. A bot that runs has its own."""
    free = check_web_port(WebSettings(port=0), bot_runs=False)
    assert (free.status, free.detail) == (Status.OK, "any free one on 127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as other:
        web = WebSettings(port=other.getsockname()[1])
        taken, own = check_web_port(web, bot_runs=False), check_web_port(web, bot_runs=True)
    assert taken.status is Status.WARNING
    assert "choose another web.host or web.port" in taken.remedy
    assert own.status is Status.OK


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64])
def test_a_web_host_that_is_not_this_machine(host: str) -> None:
    """Whatever is wrong with it, the finding names it."""
    finding = check_web_port(WebSettings(host=host), bot_runs=True)
    assert finding.status is Status.WARNING
    assert finding.detail.startswith(f"nothing can listen on {host}:8095 (")
