"""A room's voice connection."""

from __future__ import annotations

import dataclasses
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from voice.transport.link import VoiceLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.channel.port import VoiceConnection
    from voice.transport.audio_events import AudioEvent
    from voice.transport.discord_gateway import DiscordMainGateway
    from voice.transport.link_events import LinkEvent
    from voice.transport.outgoing import FrameSource
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()


@asynccontextmanager
async def voice_connection(
    gateway: DiscordMainGateway,
    source: FrameSource,
    sink: Callable[[Sequence[AudioEvent]], None],
    *,
    is_excluded: Callable[[int], bool],
    on_change: Callable[[], None],
    paced_sender: PacedSender | None,
    require_e2ee: bool,
) -> AsyncIterator[VoiceConnection]:
    """Join the channel of `gateway` as `bot.channel.port.RoomChannel.connect` does. Raises `LinkError`."""

    def changed(event: LinkEvent) -> None:
        # Its fields never contain speech.
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event) if field.name != "at"}
        log.info(f"link_{type(event).__name__.lower()}", **fields)
        on_change()

    async with VoiceLink(
        gateway,
        sink=sink,
        is_excluded=is_excluded,
        on_event=changed,
        paced_sender=paced_sender,
        require_e2ee=require_e2ee,
    ) as link:
        link.play(source)
        yield link
