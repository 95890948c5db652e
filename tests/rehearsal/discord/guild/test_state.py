"""The guild's state: voice, messages and commands, without connected clients."""

from __future__ import annotations

from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.spec import GuildSpec, Member
from rehearsal.discord.guild.state import GuildState

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
