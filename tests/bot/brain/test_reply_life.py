"""What may happen to a reply, and what becomes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.reply_life import (
    Asked,
    Fate,
    MaySound,
    Ready,
    ReplyAct,
    ReplyEvent,
    ReplyLife,
    ReplyStage,
    Stop,
    Stopped,
    WasHeard,
    Withdrawn,
    step,
)

READY, RELEASED, ASKED, WITHDRAWN, SOUND, SENTENCE = (
    Ready(), MaySound(), Asked(), Withdrawn(), WasHeard(), WasHeard(1),
)  # fmt: skip
WENT_ON, TALKED_OVER, INTERRUPTED, SILENCED = map(Stopped, Stop)


def lived(*events: ReplyEvent) -> tuple[ReplyLife, list[ReplyAct]]:
    """Return a life after events, and what was to be done on the way."""
    life, acts = ReplyLife(), []
    for event in events:
        life, act = step(life, event)
        if act is not None:
            acts.append(act)
    return life, acts


@pytest.mark.parametrize(
    ("events", "fate"),
    [
        # It is played to its end, or nobody cares whether it is.
        ((ASKED, SOUND, SENTENCE), Fate.RECORDED),
        ((READY, RELEASED, SOUND, ASKED, SENTENCE), Fate.RECORDED),
        ((ASKED, SOUND, INTERRUPTED), Fate.RECORDED),
        ((ASKED, SOUND, SILENCED), Fate.RECORDED),
        # Before a whole sentence was heard.
        ((READY, RELEASED, SOUND, ASKED, WENT_ON), Fate.GAVE_WAY),
        ((READY, RELEASED, SOUND, WENT_ON, ASKED), Fate.GAVE_WAY),
        ((ASKED, WENT_ON), Fate.GAVE_WAY),
        ((ASKED, SOUND, TALKED_OVER), Fate.OWED),
        # After it. How much was heard may be known only after the stop.
        ((ASKED, SOUND, SENTENCE, WENT_ON), Fate.RECORDED),
        ((ASKED, SOUND, WENT_ON, SENTENCE), Fate.RECORDED),
        ((ASKED, SOUND, TALKED_OVER, SENTENCE), Fate.RECORDED),
        # The first stop counts, and a wish for silence counts more.
        ((ASKED, SOUND, WENT_ON, TALKED_OVER), Fate.GAVE_WAY),
        ((ASKED, SOUND, TALKED_OVER, SILENCED), Fate.RECORDED),
    ],
)
def test_what_becomes_of_a_reply(events: tuple[ReplyEvent, ...], fate: Fate) -> None:
    """What was heard counts from a whole sentence on. Whoever was stopped by others gets the answer later."""
    life, _ = lived(*events)
    assert (life.asked, life.fate) == (True, fate)


@pytest.mark.parametrize(
    ("events", "acts", "stage"),
    [
        ((READY,), [], ReplyStage.READY),
        ((READY, SOUND), [], ReplyStage.READY),
        ((READY, RELEASED, RELEASED), [ReplyAct.PLAY], ReplyStage.RELEASED),
        ((ASKED, RELEASED), [ReplyAct.PLAY], ReplyStage.RELEASED),
        ((READY, WITHDRAWN, ASKED, RELEASED), [ReplyAct.DROP], ReplyStage.WITHDRAWN),
        ((READY, SILENCED), [ReplyAct.DROP], ReplyStage.WITHDRAWN),
        ((READY, RELEASED, SOUND, WITHDRAWN), [ReplyAct.PLAY, ReplyAct.DROP], ReplyStage.WITHDRAWN),
        # A recorded question cannot be taken back.
        ((ASKED, SOUND, WITHDRAWN), [ReplyAct.PLAY], ReplyStage.HEARD),
        ((ASKED, INTERRUPTED, SILENCED), [ReplyAct.PLAY, ReplyAct.SILENCE], ReplyStage.STOPPED),
    ],
)
def test_what_is_done_on_the_way(events: tuple[ReplyEvent, ...], acts: list[ReplyAct], stage: ReplyStage) -> None:
    life, done = lived(*events)
    assert (life.stage, done) == (stage, acts)


EVENTS = st.lists(
    st.one_of(
        st.sampled_from([READY, RELEASED, ASKED, WITHDRAWN]),
        st.builds(WasHeard, st.integers(0, 3)),
        st.builds(Stopped, st.sampled_from(Stop)),
    ),
    max_size=12,
)


@given(EVENTS)
def test_in_any_order_nothing_sounds_that_must_not_and_no_answer_is_lost(events: list[ReplyEvent]) -> None:
    """Nothing plays before the release, twice, or after an end. A recorded question is answered, goes on, or is owed.
    Only what nobody asked for, or somebody wants silent, is no answer.
    """
    life, acts = lived(*events)
    assert acts in [
        [],
        [ReplyAct.PLAY],
        [ReplyAct.DROP],
        [ReplyAct.PLAY, ReplyAct.DROP],
        [ReplyAct.PLAY, ReplyAct.SILENCE],
        [ReplyAct.PLAY, ReplyAct.SILENCE, ReplyAct.DROP],
    ]
    assert life.held is not (ReplyAct.PLAY in acts or ReplyAct.DROP in acts)
    if ReplyAct.DROP in acts:
        assert (life.stage, life.asked) == (ReplyStage.WITHDRAWN, False)
        return
    stops = [event.by for event in events if isinstance(event, Stopped)]
    if life.fate is not Fate.RECORDED:
        assert life.sentences == 0
        assert Stop.SILENCED not in stops[stops.index(life.stop or Stop.SILENCED) :]
    elif not life.sentences:
        assert life.stop in {None, Stop.INTERRUPTED, Stop.SILENCED}
