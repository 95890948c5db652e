"""The guild's state: voice, messages and commands, without connected clients."""

from __future__ import annotations

import pytest

from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.spec import Channel, GuildSpec, Member
from rehearsal.discord.guild.state import GuildState
from rehearsal.errors import LocalDiscordError

ADA = 2001


def test_a_stay_keeps_its_session_and_a_move_does_not() -> None:
    """A change of flags in the same channel keeps the voice session. A move to another channel starts a new session."""
    world = GuildState(GuildSpec())
    first = world.enter_voice(ADA, 600)
    muted = world.enter_voice(ADA, 600, self_mute=True)
    moved = world.enter_voice(ADA, 602)
    assert first["session_id"] == muted["session_id"] != moved["session_id"]
    assert (muted["self_mute"], world.voice_channel_of(ADA)) == (True, 602)
    left = world.leave_voice(ADA)
    assert left is not None
    assert left["channel_id"] is None
    assert (world.leave_voice(ADA), world.voice_state(ADA), world.voice_channel_of(ADA)) == (None, None, None)


def test_old_messages_are_forgotten() -> None:
    """The latest thousand messages are kept. Messages that were deleted in between still count."""
    world = GuildState(GuildSpec())
    for number in range(1, 1203):
        world.add_message(
            payloads.message(world.guild, message_id=number, channel_id=601, author_id=ADA, content=str(number))
        )
        if number == 600:
            assert world.delete_message(500) is not None
    kept = [message.id for message in world.messages()]
    assert (kept[0], kept[-1], len(kept)) == (203, 1202, 999)
    assert world.message(500) is world.delete_message(500) is None


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"people": ()}, "at least one voice channel and one person"),
        ({"voice_channels": ()}, "at least one voice channel and one person"),
        ({"people": (Member(1001, "Twin"),)}, "Two members of the guild share the id 1001"),
        ({"text_channel": Channel(600, "chat")}, "Two channels of the guild share the id 600"),
        ({"people": (Member(0, "Nobody"),)}, "positive numbers"),
    ],
)
def test_a_guild_that_cannot_be_is_refused(parts: dict[str, object], says: str) -> None:
    """Ids must be unique and positive, and a guild needs at least one voice channel and one person."""
    with pytest.raises(LocalDiscordError, match=says):
        GuildSpec(**parts)  # type: ignore[arg-type]


def test_rights_follow_the_role() -> None:
    """The owner has every permission, moderators may mute, and everybody may connect and speak."""
    guild = GuildSpec(people=(Member(1, "Owner"), Member(2, "Mod", moderator=True), Member(3, "Guest")))
    owner, moderator, anybody = (int(payloads.permission_bits(guild, user)) for user in (1, 2, 3))
    connect, speak, mute, administrator = 1 << 20, 1 << 21, 1 << 22, 1 << 3
    assert owner & moderator & anybody & connect
    assert owner & moderator & anybody & speak
    assert moderator & mute
    assert not anybody & mute
    assert owner & administrator
    assert not moderator & administrator
    assert payloads.guild_member(guild, 2)["roles"] == [payloads.roles(guild)[1]["id"]]
