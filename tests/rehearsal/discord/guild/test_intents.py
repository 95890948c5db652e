"""What intents decide: the events that a bot gets, and the flags of its application."""

from __future__ import annotations

import pytest

from rehearsal.discord.guild.intents import PRIVILEGED, UNPRIVILEGED, Intent, application_flags, gets

BOT = 1001


@pytest.mark.parametrize(
    ("event", "intents", "data", "expected"),
    [
        ("READY", 0, {}, True),
        ("INTERACTION_CREATE", 0, {}, True),
        ("VOICE_SERVER_UPDATE", 0, {}, True),
        ("VOICE_STATE_UPDATE", 0, {}, False),
        ("VOICE_STATE_UPDATE", int(Intent.GUILD_VOICE_STATES), {}, True),
        ("MESSAGE_CREATE", int(Intent.GUILDS), {}, False),
        ("MESSAGE_DELETE", int(Intent.GUILD_MESSAGES), {}, True),
        ("GUILD_MEMBER_UPDATE", UNPRIVILEGED, {"user": {"id": "2001"}}, False),
        ("GUILD_MEMBER_UPDATE", UNPRIVILEGED, {"user": {"id": "1001"}}, True),
        ("GUILD_MEMBER_UPDATE", int(Intent.GUILD_MEMBERS), {"user": {"id": "2001"}}, True),
    ],
)
def test_an_event_needs_its_intent(event: str, intents: int, data: object, expected: bool) -> None:
    """Some events come to everybody, and a bot is always told of a change of its own member."""
    assert gets(event, data, user_id=BOT, intents=intents) is expected


def test_an_applications_flags_say_what_is_allowed() -> None:
    """One bit for each privileged intent, and none for the others."""
    assert application_flags(0) == application_flags(UNPRIVILEGED) == 0
    assert application_flags(PRIVILEGED) == 1 << 13 | 1 << 15 | 1 << 19
