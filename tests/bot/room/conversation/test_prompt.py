"""A reply acts for one person, who is present and whose own words are being answered."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.brain.reply import Question
from bot.brain.tools.permission import NOBODY, Asker
from bot.brain.tools.toolbox import Toolbox
from bot.channel.participants import Participants
from bot.room.conversation.prompt import PromptBuilder, asker_of
from compaction.model import Seq, Turn, TurnKind, TurnPart
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace

ASKS = TurnPart("1", "Ada", "Roomtone, what is that?")
OVER = TurnPart("2", "Bo", "Post the map!")
TURN = Turn(Seq(3), TurnKind.SPEECH, 0.0, 1.0, (ASKS,))
BOTH = replace(TURN, parts=(ASKS, OVER, TurnPart("1", "Ada", "Tell me.")))


def _participants(*people: object) -> Participants:
    return Participants(FakePlace(people=people or (ADA, BO, OTHER_BOT)))  # type: ignore[arg-type]


def test_who_spoke_alone_asked() -> None:
    """The asker is the only speaker of the turn, with whether they are present and a moderator."""
    assert asker_of(Question(TURN), _participants()) == Asker(1, "Ada", "Roomtone, what is that?", present=True)
    moderator = replace(ADA, is_moderator=True)
    assert asker_of(Question(TURN), _participants(moderator)).moderator
    assert not asker_of(Question(TURN), _participants(BO)).present
    assert asker_of(Question(TURN, language="fr"), _participants()).language == "fr"


def test_of_several_only_who_is_answered_counts() -> None:
    """Only the words of the person who is answered count as the request."""
    asker = asker_of(Question(BOTH, asker_id="1"), _participants())
    assert (asker.user_id, asker.words) == (1, "Roomtone, what is that? Tell me.")
    assert asker_of(Question(BOTH), _participants()) == NOBODY
    assert asker_of(Question(BOTH, asker_id="7"), _participants()) == NOBODY


def test_the_bots_name_is_left_out_of_the_words() -> None:
    """An order is recognised by its structure, so the call before it is taken away."""
    asker = asker_of(Question(BOTH, asker_id="1", ended_at=7.0), _participants(), ("Roomtone",))
    assert (asker.words, asker.spoke_at) == ("what is that? Tell me.", 7.0)


def test_nobody_asked_what_nobody_said() -> None:
    """Membership turns, other bots and unknown speakers are not askers."""
    assert asker_of(Question(replace(TURN, kind=TurnKind.MEMBERSHIP)), _participants()) == NOBODY
    juke = replace(TURN, parts=(TurnPart("3", "Juke", "Post it."),))
    assert not asker_of(Question(juke), _participants()).present
    somebody = replace(TURN, parts=(TurnPart("somebody", "Eve", "Post it."),))
    assert asker_of(Question(somebody), _participants()) == NOBODY


@pytest.mark.parametrize(("changes", "withdrawals"), [(0, 0), (1, 1)])
def test_calls_with_forgotten_words_end_and_others_go_on(changes: int, withdrawals: int) -> None:
    """Somebody comes who may not read everything, so results are dropped. Only forgotten words end what was ordered."""
    place, toolbox = FakePlace(people=[ADA]), Toolbox()
    place.shared = {1, 2}
    memory = SimpleNamespace(external_changes=0)
    unused = cast("Any", None)
    prompt = PromptBuilder(
        services=unused,
        place=place,
        memory=cast("Any", memory),
        participants=unused,
        participation=unused,
        upkeep=None,
        quoting=None,
        toolbox=toolbox,
        report=unused,
    )
    clearings = toolbox.exchanges.clearings
    memory.external_changes, place.shared = changes, {1}
    prompt.drop_outdated()
    assert (toolbox.exchanges.clearings > clearings, toolbox.withdrawals) == (True, withdrawals)
