"""A reply acts for one person, who is present and whose own words are being answered."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import AsyncMock

from bot.brain.decider import Reason
from bot.brain.question import CallResult, Remark
from bot.brain.tools.frozen_calls import FrozenCall
from bot.brain.tools.tool import NOBODY, Asker, RoomTool, anybody
from bot.channel.participants import Participants
from bot.conversation.prompt import asker_of
from bot.words import Words
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.fakes.questions import asked
from tests.fakes.room_channel import ADA, BO, OTHER_BOT, FakeRoomChannel

ASKS = TurnPart("1", "Ada", "Roomtone, what is that?")
OVER = TurnPart("2", "Bo", "Post the map!")
TURN = Turn(Seq(3), TurnKind.SPEECH, 0.0, 1.0, (ASKS,))
BOTH = replace(TURN, parts=(ASKS, OVER, TurnPart("1", "Ada", "Tell me.")))


def _participants(*people: object) -> Participants:
    return Participants(FakeRoomChannel(people=people or (ADA, BO, OTHER_BOT)), Words())  # type: ignore[arg-type]


def test_who_spoke_alone_asked() -> None:
    """The asker is the only speaker of the turn, with whether they are present, and their roles."""
    assert asker_of(asked(TURN), _participants()) == Asker(1, "Ada", present=True)
    with_role = replace(ADA, roles=frozenset({7}))
    assert asker_of(asked(TURN), _participants(with_role)).roles == {7}
    assert not asker_of(asked(TURN), _participants(BO)).present


def test_of_several_only_who_is_answered_counts() -> None:
    """What others said in the same turn gives them no rights in the answer."""
    assert asker_of(asked(BOTH), _participants()).user_id == 1
    assert asker_of(asked(BOTH, asker_id=7), _participants()) == NOBODY


async def test_whose_press_is_told_asks() -> None:
    """The last turn may be somebody else's by then; the tools that may follow are those of who has pressed."""
    tool = RoomTool("post", "", {"type": "object"}, AsyncMock())
    pressed = FrozenCall(tool, {}, Asker(1, "Ada", present=True), anybody, Words().lease({1}, since=None))
    last = replace(TURN, parts=(OVER,))
    assert asker_of(CallResult(last, pressed), _participants()).user_id == 1
    assert not asker_of(CallResult(last, pressed), _participants(BO)).present


def test_nobody_asked_what_nobody_said() -> None:
    """Remarks have no asker, and other bots have no rights."""
    assert asker_of(Remark(TURN, Reason.QUIET_ROOM), _participants()) == NOBODY
    juke = replace(TURN, parts=(TurnPart("3", "Juke", "Post it."),))
    assert not asker_of(asked(juke, asker_id=3), _participants()).present
