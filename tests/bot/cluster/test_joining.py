"""What an operator reads when a machine cannot join: at once, and what to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.cluster.address import ClusterError
from bot.cluster.joining import check_own_ip, check_token_taken, reach_head
from bot.errors import SetupError
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


def test_a_machine_has_its_loopback_address() -> None:
    """It is what a cluster of one machine begins with."""
    check_own_ip("127.0.0.1")


@pytest.mark.parametrize(
    ("ip", "told"),
    [
        ("nowhere", "'nowhere' is not an IP address"),
        ("10.0.0", "'10.0.0' is not an IP address"),
        # Kept for documentation, so that no machine has them.
        ("192.0.2.1", "does not have the address 192.0.2.1"),
        ("2001:db8::1", "does not have the address 2001:db8::1"),
        # A socket could be bound to these, but no other machine could reach it.
        ("0.0.0.0", "Nobody can reach one machine at 0.0.0.0"),
        ("::", "Nobody can reach one machine at ::"),
        ("224.0.0.1", "Nobody can reach one machine at 224.0.0.1"),
        ("255.255.255.255", "Nobody can reach one machine at 255.255.255.255"),
    ],
)
def test_another_machines_address_is_refused(ip: str, told: str) -> None:
    """Whoever wrote the first machine's address on the second one reads it before Ray has tried for two minutes."""
    with pytest.raises(SetupError, match=told):
        check_own_ip(ip)


@pytest.mark.asyncio
async def test_a_first_machine_that_listens_is_reached() -> None:
    """Nothing is said to it, so its Ray only sees a connection that comes and goes."""
    said = asyncio.Queue[bytes]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.put_nowait(await reader.read())
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        await reach_head(f"{host}:{port}", PATIENCE_S)
        assert await said.get() == b""


@pytest.mark.asyncio
async def test_a_first_machine_that_is_away_is_named() -> None:
    """With what to look at, there and in between."""
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
    with pytest.raises(ClusterError, match=rf"Nobody answers at {host}:{port}\. .*firewalls"):
        await reach_head(f"{host}:{port}", 0.1)


def test_a_refused_token_is_told_with_its_file(tmp_path: Path) -> None:
    """Ray's own advice names another file. Whatever else it says is not about the token."""
    check_token_taken("ray.exceptions.RpcError: Timed out", tmp_path)
    with pytest.raises(ClusterError, match=f"{tmp_path / 'token'}. Copy the first machine's"):
        check_token_taken("ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken: missing", tmp_path)
