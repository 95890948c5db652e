"""The local Discord's certificate is trusted by its path, for 127.0.0.1 and localhost, also by strict clients."""

from __future__ import annotations

import asyncio
import ssl
import stat
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.certificate import write_certificate
from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_strict_client_trusts_it(tmp_path: Path, name: str) -> None:
    """The handshake passes with VERIFY_X509_STRICT, which is the default of Python 3.13."""
    written = write_certificate(tmp_path / "new")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.transport.abort()

    trusting = ssl.create_default_context(cafile=str(written.certificate_path))
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=written.server_context()) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=name)
        assert await reader.readexactly(5) == b"hello"
        writer.transport.abort()
        await asyncio.sleep(0)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", port, ssl=ssl.create_default_context())


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    """The key file has mode 0600, also when a certificate is made again in the same place."""
    for _ in range(2):
        written = write_certificate(tmp_path)
        assert stat.S_IMODE(written.key_path.stat().st_mode) == 0o600


def test_a_place_that_cannot_be_written_is_a_plain_sentence(tmp_path: Path) -> None:
    """The error for a directory that cannot be written names the directory and the remedy."""
    (tmp_path / "file").touch()
    with pytest.raises(LocalDiscordError, match=r"cannot be written to .*file/here.* Name a directory"):
        write_certificate(tmp_path / "file" / "here")
