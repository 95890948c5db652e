"""Whether the bot can come into a voice channel: permissions, full channels, stages and the AFK channel."""

from __future__ import annotations

from dataclasses import replace

import discord
import pytest

from bot.discord.voice_channels import ChannelFacts, entry_refusal
from bot.texts.text import in_language
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec
from tests.bot.discord.test_client import ADA, BEN, online, settle
from tests.patience import PATIENCE_S

ALL = discord.Permissions(view_channel=True, connect=True, speak=True, request_to_speak=True)
VOICE = ChannelFacts(600, "Evening", ALL)
STAGE = replace(VOICE, is_stage=True)


def without(facts: ChannelFacts, **taken: bool) -> ChannelFacts:
    """Return the channel where the bot lacks these permissions."""
    permissions = discord.Permissions(facts.permissions.value)
    permissions.update(**dict.fromkeys(taken, False))
    return replace(facts, permissions=permissions)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (VOICE, None),
        (STAGE, None),
        (without(VOICE, speak=True), "lacks Speak there"),
        (without(VOICE, view_channel=True, connect=True, speak=True), "lacks View Channel, Connect, Speak there"),
        # A listener on a stage needs no right to speak, but to ask for it.
        (without(STAGE, speak=True), None),
        (without(STAGE, request_to_speak=True), "lacks Request to Speak there"),
        (replace(STAGE, permissions=discord.Permissions(view_channel=True, connect=True, mute_members=True)), None),
        (replace(VOICE, is_afk=True), "for people who are away"),
        (replace(VOICE, people=2, limit=3), None),
        (replace(VOICE, people=3, limit=3), "is full: it has room for 3"),
        (replace(VOICE, people=3, limit=3, is_inside=True), None),
        (replace(VOICE, people=3, limit=3, permissions=discord.Permissions.all()), None),
    ],
)
def test_each_reason_is_one_sentence(facts: ChannelFacts, reason: str | None) -> None:
    """The bot names what is missing and the channel; where nothing is, it comes."""
    refused = entry_refusal(facts)
    assert (refused is None) == (reason is None)
    if refused is not None and reason is not None:
        assert reason in refused
        assert "Evening" in refused


def test_the_missing_permissions_are_named_in_the_readers_language() -> None:
    """Discord's own German names are used for the permissions."""
    refused = entry_refusal(without(VOICE, speak=True, connect=True))
    assert refused is not None
    assert "Verbinden, Sprechen" in in_language(refused, "de")


def test_only_the_channels_that_the_server_has_chosen_are_entered() -> None:
    """The refusal says whose choice it is."""
    assert entry_refusal(VOICE, chosen_here=(600,)) is None
    refused = entry_refusal(VOICE, chosen_here=(602,))
    assert refused is not None
    assert "this server has chosen" in refused


GUILD = GuildSpec(
    voice_channels=(
        Channel(600, "Evening"),
        Channel(602, "Locked", denied=int(DiscordPermission.SPEAK | DiscordPermission.CONNECT)),
        Channel(603, "Small", user_limit=1),
        Channel(604, "Away", afk=True),
    )
)


@pytest.mark.parametrize(
    ("channel_id", "answered"),
    [(602, "lacks Connect, Speak there"), (603, "Small is full"), (604, "for people who are away")],
)
async def test_join_says_why_it_cannot_come(channel_id: int, answered: str) -> None:
    """/join checks before it tries, on the local Discord, and the bot stays where it is."""
    async with online(GUILD) as (local, client, supervisor):
        await local.join(ADA, channel_id=channel_id)
        await settle(lambda: client.get_channel(channel_id).members)  # type: ignore[union-attr]
        result = await local.invoke(ADA, "join")
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        assert answered in result.replies[0].content
        assert supervisor.place is None
        await local.join(BEN, channel_id=600)
        await settle(lambda: client.get_channel(600).members)  # type: ignore[union-attr]
        result = await local.invoke(BEN, "join")
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        assert result.replies[0].content == "I am coming to Evening."
