"""Scripted people who join the local Discord's voice channel without a bot."""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

from rehearsal.people.person import ScriptedPerson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rehearsal.discord import LocalDiscord


@contextlib.asynccontextmanager
async def guest(local: LocalDiscord, user_id: int, *, channel_id: int | None = None) -> AsyncIterator[ScriptedPerson]:
    """Keep a person in a voice channel until the block is left. The default is the guild's first voice channel."""

    async def join() -> Mapping[str, object]:
        return (await local.join(user_id, channel_id=channel_id)).as_dict()

    async def leave() -> None:
        await local.leave(user_id)

    tls = ssl.create_default_context(cafile=str(local.certificate_path))
    name = local.guild.member(user_id).name
    async with ScriptedPerson(user_id=user_id, name=name, join=join, leave=leave, tls=tls) as person:
        yield person
