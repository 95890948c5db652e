"""In a pause that may be the end of what somebody says, the memory is searched and a reply may begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from bot.channel.participants import Participants
from bot.room.conversation.reply_preparation import ReplyPreparation
from bot.room.conversation.turn_recorder import TurnRecorder
from tests.bot.room.conversation.test_turn_taking import ANSWER, SILENCE, spoken
from tests.compaction.rooms import Room
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, FakePlace

if TYPE_CHECKING:
    from bot.brain.decider import Decision
    from bot.brain.reply import Question
    from bot.events import SpokenText
    from compaction.model import Turn
    from compaction.session import SessionMemory


class Scene:
    """The preparation of replies between a room's real memory and what the test decides. `decision`: about everything
    that is said; `out`: who may not be heard; `busy`: an answer is in progress.
    """

    def __init__(self, memory: SessionMemory) -> None:
        self.decision = ANSWER
        self.out: set[int] = set()
        self.busy = False
        self.may_prepare = self.starts_early = True
        # Questions for which a reply is prepared, and turns searched ahead.
        self.prepared: list[Question] = []
        self.searched: list[Turn] = []
        self.memory = memory

    def preparation(self) -> ReplyPreparation:
        """Return the preparation. The scene stands for all that decides, searches and answers."""
        place, itself = FakePlace(people=[ADA, BO]), cast("Any", self)
        return ReplyPreparation(
            memory=self.memory,
            quoting=itself,
            participation=itself,
            turn_recorder=TurnRecorder(
                self.memory,
                place,
                Participants(place),
                own_name="Roomtone",
                clock=FakeClock(),
                observe=lambda _: None,
            ),
            replier=itself,
            preemptive_reply=itself,
            reply_language={ADA.id: "en"}.__getitem__,
            may_prepare=lambda: self.may_prepare,
            starts_early=self.starts_early,
        )

    def drops(self, user_id: int, *, started_at: float) -> bool:
        """Be the participation."""
        assert started_at == 98.0
        return user_id in self.out

    def preview_decision(self, _spoken: SpokenText) -> Decision:
        """Decide as about what is over."""
        return self.decision

    def start(self, question: Question) -> None:
        """Be the preemptive reply."""
        self.prepared.append(question)

    def prefetch(self, turn: Turn, memory: SessionMemory) -> None:
        """Be the search."""
        assert memory is self.memory
        self.searched.append(turn)


@pytest.mark.parametrize(
    ("text", "likely_finished", "change", "searched", "prepared"),
    [
        ("Roomtone, when is it?", True, {}, True, True),
        # Somebody who does not sound or read finished is only searched for.
        ("Roomtone, when is it?", False, {}, True, False),
        ("Roomtone, when is the", True, {}, True, False),
        ("Roomtone, when is it...", True, {}, True, False),
        # The bot still answers another question, or the operator wants no reply begun early.
        ("Roomtone, when is it?", True, {"busy": True}, True, False),
        ("Roomtone, when is it?", True, {"starts_early": False}, True, False),
        # Nothing will be answered.
        ("Roomtone, when is it?", True, {"decision": SILENCE}, False, False),
        ("Roomtone, when is it?", True, {"may_prepare": False}, False, False),
        ("Roomtone, when is it?", True, {"out": {ADA.id}}, False, False),
    ],
)
@pytest.mark.asyncio
async def test_what_is_prepared_in_a_pause(
    text: str, likely_finished: bool, change: dict[str, object], searched: bool, prepared: bool
) -> None:
    """The memory is searched for whoever will be answered; the reply begins only if they seem to have finished."""
    async with Room() as room:
        scene = Scene(room.memory)
        for name, value in change.items():
            setattr(scene, name, value)
        scene.preparation().on_tentative(spoken("one", ADA.id, text), likely_finished)
        assert (len(scene.searched), len(scene.prepared)) == (searched, prepared)
        assert scene.memory.turns == ()
        for question in scene.prepared:
            assert (question.turn.parts[0].text, question.asker_id) == (text, str(ADA.id))
