"""A scripted person as a member of a local Discord in this process."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from rehearsal.people.person import ScriptedPerson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.discord.server import LocalDiscord


def scripted_member(discord: LocalDiscord, user_id: int, *, channel_id: int | None = None) -> ScriptedPerson:
    """Return a member of the server who is in a voice channel, by default the first, while their context lasts."""

    async def join() -> Mapping[str, object]:
        return (await discord.join(user_id, channel_id=channel_id)).as_dict()

    async def leave() -> None:
        await discord.leave(user_id)

    return ScriptedPerson(
        user_id=user_id,
        name=discord.guild.member(user_id).name,
        join=join,
        leave=leave,
        tls=ssl.create_default_context(cafile=str(discord.certificate_path)),
    )
