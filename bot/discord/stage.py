"""Stage channels: the bot joins as a listener, whom nobody hears, and must become a speaker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from bot.discord.request_errors import REQUEST_ERRORS
from bot.texts.text import Text

if TYPE_CHECKING:
    import discord

    from bot.channel.port import Place

log = structlog.get_logger()

TIMEOUT_S = 10.0


async def take_the_stage(me: discord.Member, stage: discord.StageChannel, place: Place) -> None:
    """Become a speaker if permitted. Otherwise request to speak, and write into the chat how to permit it.

    `me`: the bot as a listener in `stage`. `place`: the same channel.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            if stage.permissions_for(me).mute_members:
                await me.edit(suppress=False)
                return
            await me.request_to_speak()
    except REQUEST_ERRORS as error:
        log.warning("stage_not_taken", channel_id=place.channel_id, error_class=type(error).__name__)
    await place.write(
        Text(
            "I am among the audience of {channel}, where nobody hears me. Invite me to speak; or give my role the "
            "permission Mute Members, then use /leave and /join.",
            channel=place.name,
        )
    )
