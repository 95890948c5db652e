"""The permissions of the invitation, each missing once: what does not work is named, and the rest works."""

from __future__ import annotations

import pytest

from bot.channel.port import Card, ChatError
from bot.discord.permissions import PERMISSIONS, invited, lacking
from bot.texts.text import Text, verbatim
from rehearsal.discord.guild.permissions import INVITED, DiscordPermission
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec
from tests.bot.discord.client import ADA, answered, online, room_channel_in
from tests.patience import settle

LOUNGE, CHAT = 600, 601
_P = DiscordPermission


@pytest.mark.parametrize("missing", PERMISSIONS)
def test_what_is_missing_is_named_with_its_use(missing: str) -> None:
    """By Discord's name, for whoever can mend it."""
    granted = invited()
    granted.update(**{missing: False})
    told = str(lacking(granted, "Lounge"))
    named = {str(name) for name, _ in PERMISSIONS.values() if f": {name} (" in told or f", {name} (" in told}
    assert named == {str(PERMISSIONS[missing][0])}
    assert str(PERMISSIONS[missing][1]) in told
    assert lacking(invited(), "Lounge") is None
    assert lacking(granted, "Lounge", PERMISSIONS.keys() - {missing}) is None


async def test_the_bot_goes_on_without_a_permission_and_says_which() -> None:
    """/join and /status list them. A mention is answered without a reply's reference, no thread is begun into which
    nothing could be written, and the card that cannot be shown names what it lacks.
    """
    lost = _P.EMBED_LINKS | _P.READ_MESSAGE_HISTORY | _P.SEND_MESSAGES_IN_THREADS
    guild = GuildSpec(voice_channels=(Channel(LOUNGE, "Lounge"),))
    async with online(guild) as (local, client, rooms):
        local.change(invited=INVITED & ~lost)
        await local.join(ADA)
        await settle(lambda: room_channel_in(client, LOUNGE).members())
        for command in ("join", "status"):
            (told,) = await answered(local, ADA, command)
            for name in ("Embed Links", "Read Message History", "Send Messages in Threads"):
                assert f"{name} (to " in told
            assert "Attach Files" not in told
            rooms.room_channel = room_channel_in(client, LOUNGE)
        here = room_channel_in(client, LOUNGE)
        with pytest.raises(ChatError, match="Send Messages in Threads"):
            await here.open_thread(CHAT)
        assert local.state.threads == {}
        with pytest.raises(ChatError, match="Embed Links"):
            await here.posts.begin(Card(Text("This session"), verbatim("x")))
        rooms.written = "Nine."
        await local.post_message(ADA, f"<@{ROOMTONE_BOT_ID}> what time is it?", channel_id=LOUNGE)
        await settle(lambda: [each.content for each in local.messages if each.author_id == ROOMTONE_BOT_ID])
        assert local.messages[-1].content == "Nine."
