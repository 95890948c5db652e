"""Whether the bot has left a voice channel by itself, or somebody took it out."""

from __future__ import annotations

from typing import Literal

import pytest

from bot.discord.voice_presence import VoiceRequests

Step = Literal["asks in", "asks out", "entered", "left", "taken out"]


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(["asks in", "entered", "taken out"], id="by somebody"),
        pytest.param(["asks in", "entered", "asks out", "left"], id="by itself"),
        pytest.param(["left"], id="a process before this one was in"),
        pytest.param(["asks in", "entered", "taken out", "left"], id="counted once"),
        pytest.param(["asks in", "entered", "asks out", "asks in", "left", "entered", "taken out"], id="rejoined"),
        pytest.param(
            ["asks in", "entered", "taken out", "asks out", "asks in", "entered", "taken out"],
            id="it asked to leave a channel that it was not in any more",
        ),
    ],
)
def test_who_takes_the_bot_out_is_told_from_the_bot_that_leaves(steps: list[Step]) -> None:
    """Discord says the same of both. `left` and `taken out` are the same event, by whom it was caused."""
    requests = VoiceRequests()
    requests.on_request(11, 21)
    for step in steps:
        match step:
            case "asks in":
                requests.on_request(10, 20)
            case "asks out":
                requests.on_request(10, None)
            case "entered":
                requests.on_entered(10)
            case "left" | "taken out":
                assert requests.on_left(10) == (step == "taken out"), steps
    assert requests.on_left(11)


def test_nothing_is_left_of_a_server_that_the_bot_has_left() -> None:
    """Neither what it wanted there nor that it was leaving."""
    requests = VoiceRequests()
    requests.on_request(10, 20)
    requests.forget(10)
    assert not requests.on_left(10)
    requests.on_request(10, None)
    requests.forget(10)
    requests.on_request(10, 20)
    assert requests.on_left(10)
