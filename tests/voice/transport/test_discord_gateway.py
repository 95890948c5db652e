"""A channel that the bot cannot enter is refused before Discord would keep silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.voice.transport.link_scene import BOT
from voice.errors import LinkError
from voice.transport.discord_gateway import DiscordMainGateway, check_entry


def _channel(**changed: Any) -> Any:
    """Return a stand-in for a channel, with the fields that the permission checks read."""
    rights = SimpleNamespace(view_channel=True, connect=True, move_members=False)
    made = SimpleNamespace(
        id=600,
        name="Evening",
        user_limit=0,
        members=[SimpleNamespace(id=1), SimpleNamespace(id=2)],
        permissions_for=lambda _: rights,
        guild=SimpleNamespace(id=5, name="Guild", me=SimpleNamespace(id=BOT), get_channel=lambda _: True),
    )
    for name, value in changed.items():
        setattr(rights if hasattr(rights, name) else made, name, value)
    return made


@pytest.mark.parametrize(
    ("changed", "sentence", "retryable"),
    [
        ({"connect": False}, "permissions there: Connect", False),
        ({"view_channel": False, "connect": False}, "View Channel, Connect", False),
        ({"user_limit": 2}, "is full: its limit is 2", True),
    ],
)
def test_forbidden_channels_are_refused_before_discord_keeps_silent(
    changed: dict[str, object], sentence: str, retryable: bool
) -> None:
    with pytest.raises(LinkError, match=sentence) as refused:
        check_entry(_channel(**changed))
    assert refused.value.retryable is retryable


def test_a_channel_that_is_gone_is_not_entered() -> None:
    channel = _channel()
    channel.guild.get_channel = lambda _: None
    with pytest.raises(LinkError, match="is gone"):
        check_entry(channel)


@pytest.mark.parametrize(
    ("guild", "sentence", "retryable"),
    [
        (SimpleNamespace(unavailable=True), "does not show Guild at the moment", True),
        (SimpleNamespace(unavailable=False, get_channel=lambda _: None), "Evening is gone", False),
        (None, "Evening is gone", False),
    ],
)
async def test_a_channel_that_discord_does_not_show_is_not_entered_anew(
    guild: object, sentence: str, retryable: bool
) -> None:
    """If Discord does not show the guild at the moment, the link may try again. If the guild or the channel is gone, it
    may not.
    """
    client: Any = SimpleNamespace(get_guild=lambda _: guild)
    with pytest.raises(LinkError, match=sentence) as refused:
        DiscordMainGateway(client, _channel()).check_entry()
    assert refused.value.retryable is retryable
