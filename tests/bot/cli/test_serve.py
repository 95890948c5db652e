"""What `roomtone rehearse --serve` prints for other clients."""

from __future__ import annotations

import pytest

from bot.cli.serve import TOKEN, addresses
from rehearsal.discord.server import LocalDiscord


@pytest.mark.asyncio
async def test_everything_a_client_needs_is_printed() -> None:
    """Addresses, certificate, token, channels, members, and where the control API is told about."""
    async with LocalDiscord() as discord:
        told = "\n".join(addresses(discord))
        for needed in (
            discord.api_base,
            discord.gateway_url,
            f"wss://{discord.voice_endpoint}",
            str(discord.certificate_path),
            discord.control_base,
            TOKEN,
            "600 Evening",
            "601 chat",
            "2001 Ada",
            "docs/rehearsal-control-api.md",
        ):
            assert needed in told
