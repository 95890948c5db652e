"""A room's voice connection as a process of its own, for a test that kills it. It prints how much it has heard."""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import TYPE_CHECKING

import aiohttp

from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity
from bot.remote.room_side.remote_place import RemotePlace
from voice.transport.audio_events import SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.audio import Pcm
    from voice.transport.audio_events import AudioEvent


class Silence:
    """Plays nothing."""

    def next_frame(self) -> Pcm | None:
        """Return nothing."""
        return None


async def main(url: str, token: str, ca_file: str, guild_id: str, channel_id: str, claim: str) -> None:
    """Join, and print the seconds of sound that were heard, until it is killed."""
    end = GatewayLink(url, token, RoomIdentity(0, 0))
    tls = ssl.create_default_context(cafile=ca_file)
    place = RemotePlace(end, connector=lambda: aiohttp.TCPConnector(ssl=tls))
    heard_s = 0.0

    def sink(batch: Sequence[AudioEvent]) -> None:
        nonlocal heard_s
        heard_s += sum(len(item.pcm) / 16_000 for item in batch if isinstance(item, SpeechFrames))
        sys.stdout.write(f"heard {heard_s:.2f}\n")
        sys.stdout.flush()

    async with end:
        await place.begin(int(guild_id), int(channel_id))
        async with place.connect(Silence(), sink, excludes=lambda _: False, claim=int(claim)) as link:
            sys.stdout.write("joined\n")
            sys.stdout.flush()
            await link.lost()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
