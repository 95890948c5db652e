"""What changed in a server's voice channels since the rooms were told, and who took the bot out of one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from bot.channel.port import Person
from bot.discord.voice_presence import Move, VoicePresence, VoiceRequests

GUILD, BOT = 500, 1001
ADA, BEN, CHLOE = (
    Person(number, name, is_bot=False) for number, name in ((2001, "Ada"), (2002, "Ben"), (2003, "Chloe"))
)
EVENING, SIDE_ROOM, STAGE = 600, 602, 604


def guild(*, unknown: frozenset[int] = frozenset(), **channels: tuple[Person, ...]) -> Any:
    """Return a server with these people in its channels. discord.py has no member for those in `unknown`."""
    ids = {"evening": EVENING, "side": SIDE_ROOM, "stage": STAGE}
    members = {
        each.id: SimpleNamespace(id=each.id, display_name=each.name, bot=each.is_bot, roles=())
        for inside in channels.values()
        for each in inside
    }

    def channel(name: str) -> Any:
        states = {person.id: None for person in channels.get(name, ())}
        return SimpleNamespace(id=ids[name], voice_states={**states, BOT: None} if name == "evening" else states)

    return SimpleNamespace(
        id=GUILD,
        me=SimpleNamespace(id=BOT),
        voice_channels=[channel("evening"), channel("side")],
        stage_channels=[channel("stage")],
        get_member=lambda number: None if number in unknown else members.get(number, SimpleNamespace(id=number)),
    )


@pytest.fixture
def watched() -> VoicePresence:
    return VoicePresence()


def test_a_move_before_the_first_look_makes_nobody_new(watched: VoicePresence) -> None:
    """At the start discord.py tells of moves before it shows the server. The bot does not come to who was there: nobody
    has arrived.
    """
    watched.note(GUILD, Move(BEN, SIDE_ROOM, None))
    watched.note(GUILD, Move(CHLOE, None, STAGE))
    assert watched.look(guild(evening=(ADA,), stage=(CHLOE,))) == ()
    assert watched.look(guild(evening=(ADA, BEN), stage=(CHLOE,))) == (Move(BEN, None, EVENING),)


def test_a_later_look_tells_what_changed(watched: VoicePresence) -> None:
    """Who left, who went elsewhere, and who came; the bot itself is left out, and nothing is told twice."""
    watched.look(guild(evening=(ADA, BEN)))
    now = guild(side=(BEN,), stage=(CHLOE,))
    assert watched.look(now) == (Move(ADA, EVENING, None), Move(BEN, EVENING, SIDE_ROOM), Move(CHLOE, None, STAGE))
    assert watched.look(now) == ()


def test_what_the_rooms_were_told_is_no_news(watched: VoicePresence) -> None:
    """Moves that discord.py has told of are noted."""
    watched.look(guild(evening=(ADA,)))
    watched.note(GUILD, Move(ADA, EVENING, None))
    watched.note(GUILD, Move(BEN, None, SIDE_ROOM))
    watched.note(GUILD, Move(CHLOE, None, None))
    assert watched.look(guild(side=(BEN,))) == ()


def test_somebody_whom_discord_does_not_describe_has_not_left(watched: VoicePresence) -> None:
    """Who was known stays; who was not cannot be told of."""
    watched.look(guild(evening=(ADA,)))
    assert watched.look(guild(evening=(ADA, BEN), unknown=frozenset({ADA.id, BEN.id}))) == ()


def test_a_server_that_the_bot_left_is_forgotten(watched: VoicePresence) -> None:
    """The next look at it is the first again."""
    watched.look(guild(evening=(ADA,)))
    watched.forget(GUILD)
    assert watched.look(guild()) == ()


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
