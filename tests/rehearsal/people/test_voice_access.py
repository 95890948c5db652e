"""The answer to a join is checked before anything connects."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.errors import PersonError
from rehearsal.people.voice_access import VoiceServerAccess

ANSWER: dict[str, Any] = {
    "state": {"user_id": "41", "channel_id": "600", "session_id": "abc", "guild_id": "500"},
    "server": {"guild_id": "500", "endpoint": "127.0.0.1:4444", "token": "very-secret"},
}


def test_the_two_events_make_credentials() -> None:
    """Ids become numbers. The other values are unchanged."""
    found = VoiceServerAccess.parse(ANSWER)
    assert (found.user_id, found.guild_id, found.channel_id) == (41, 500, 600)
    assert (found.session_id, found.endpoint, found.token) == ("abc", "127.0.0.1:4444", "very-secret")


def test_the_token_is_never_shown() -> None:
    """Neither repr nor str of credentials holds the token."""
    assert "very-secret" not in f"{VoiceServerAccess.parse(ANSWER)!r} {VoiceServerAccess.parse(ANSWER)}"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"state": ANSWER["state"], "server": None},
        {"state": ANSWER["state"], "server": {**ANSWER["server"], "endpoint": None}},
        {"state": {**ANSWER["state"], "channel_id": None}, "server": ANSWER["server"]},
    ],
    ids=["empty", "no server", "no endpoint yet", "not in a channel"],
)
def test_an_incomplete_answer_is_refused(broken: dict[str, Any]) -> None:
    """The error for an incomplete answer names the missing field and does not contain the token."""
    with pytest.raises(PersonError, match="lacks a field") as caught:
        VoiceServerAccess.parse(broken)
    assert "very-secret" not in str(caught.value)
