"""Calls that wait for a press: only the asker's press counts, and exactly what was posted is carried out. Calls that
take long go on behind the talk, and are told.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from bot.brain.tools.frozen_calls import (
    PLACES,
    RUNS,
    STOPPED,
    TOO_LATE,
    TOO_MANY,
    TOO_MANY_OF_ONE,
    WAITS,
    WORDLESS,
    Effect,
    FrozenCall,
)
from bot.brain.tools.tool import Asker, OutcomeUnknownError, ToolError
from bot.brain.tools.toolbox import ToolExchange
from compaction.model import Seq
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import ADA, ADA_HERSELF, BO, Desk, a_call, kept_messages, told
from tests.fakes.loop_time import loop_turns
from tests.patience import PATIENCE_S

DECLINED = "It was not done: who asked has pressed Don't."
LAPSED_UNDONE = "It was not done: nobody pressed Do it in time. It has to be asked for again."


class ReportedCalls:
    """Keeps the calls whose results are told."""

    def __init__(self, desk: Desk) -> None:
        self.calls: list[FrozenCall] = []
        desk.toolbox.frozen.on_done = self._report

    async def _report(self, call: FrozenCall) -> None:
        self.calls.append(call)


async def known(desk: Desk) -> str:
    """Return what the model reads of the call of question 7 once nothing runs."""
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    return kept_messages(desk.toolbox, 7)[-1].content


async def frozen(desk: Desk) -> FrozenCall:
    """Have a call of Ada's question 7 posted."""
    use = desk.toolbox.for_asker(ADA)
    (call,) = results = await use.run_all([a_call("post")])
    assert isinstance(call, FrozenCall)
    use.record(Seq(7), [])
    assert results == (call,)
    return call


@pytest.fixture
def desk() -> Desk:
    """A room with a tool that asks first."""
    return Desk()


async def test_a_press_carries_out_the_call_that_was_posted(desk: Desk) -> None:
    """The chat shows all of it. It runs once, its result is told, and later questions read it."""
    reported = ReportedCalls(desk)
    call = await frozen(desk)
    (posted,) = desk.channel.calls
    request = posted.request
    assert (request.asker, request.tool, request.server, request.arguments) == ("Ada", "post", "", {"text": "hello"})
    assert (desk.called, call.result) == ([], WAITS)
    assert posted.press(ADA_HERSELF) is None
    assert posted.press(ADA_HERSELF) is not None, "it was pressed already"
    assert "You said hello" in await known(desk)
    assert (desk.called, reported.calls) == (["hello"], [call])
    assert posted.outcome is not None
    assert "I did this" in posted.outcome


@pytest.mark.parametrize("do_it", [True, False])
async def test_nobody_else_can_press(desk: Desk, do_it: bool) -> None:
    """Neither for it nor against it. Who presses reads whose question it was."""
    await frozen(desk)
    refused = desk.channel.calls[0].press(BO, do_it=do_it)
    assert refused is not None
    assert "Ada" in refused
    assert await known(desk) == LAPSED_UNDONE
    assert desk.called == []


async def test_a_no_ends_it(desk: Desk) -> None:
    """Nothing is told aloud: they know."""
    reported = ReportedCalls(desk)
    await frozen(desk)
    assert desk.channel.calls[0].press(ADA_HERSELF, do_it=False) is None
    assert await known(desk) == DECLINED
    assert (desk.called, reported.calls) == ([], [])


async def test_a_call_lapses() -> None:
    """A press that comes later does nothing and says so, whatever has become of the call."""
    desk = Desk(lapse_s=0.001)
    await frozen(desk)
    while desk.channel.calls[0].outcome is None:  # noqa: ASYNC110 - a message sets no event
        await asyncio.sleep(0.001)
    assert desk.channel.calls[0].press(ADA_HERSELF) == TOO_LATE
    assert await known(desk) == LAPSED_UNDONE
    assert desk.called == []


@pytest.mark.parametrize("change", ["left", "forbidden", "tool gone", "tool changed"])
async def test_rights_are_checked_at_the_press(desk: Desk, change: str) -> None:
    """Who has left or lost the right meanwhile has nothing done, nor does a tool that its server describes otherwise
    by then.
    """
    desk.more = [replace(desk.post, name="theirs", server="hub", title="post")]
    use = desk.toolbox.for_asker(ADA)
    await use.run_all([a_call("theirs")])
    match change:
        case "left":
            desk.channel.people = [BO]
        case "forbidden":
            desk.allowed = False
        case "tool gone":
            desk.more = []
        case _:
            desk.more = [replace(desk.more[0], description="Posts it everywhere.")]
    assert desk.channel.calls[0].press(ADA_HERSELF) is not None
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert desk.called == []


async def test_several_people_ask_at_once(desk: Desk) -> None:
    """Each presses for their own, in any order. There are only so many."""
    bo = desk.toolbox.for_asker(replace(ADA, user_id=2, name="Bo"))
    await desk.toolbox.for_asker(ADA).run_all([a_call("post", "hers"), a_call("post", "hers too")])
    await bo.run_all([a_call("post", "his")])
    *hers, his = desk.channel.calls
    assert his.press(BO) is None
    assert hers[1].press(ADA_HERSELF) is None
    while his.outcome is None or hers[1].outcome is None:  # noqa: ASYNC110 - a message sets no event
        await asyncio.sleep(0)
    for user_id, places in ((2, PLACES.of_one), (3, PLACES.most - PLACES.of_one)):
        one = desk.toolbox.for_asker(replace(ADA, user_id=user_id))
        told_them = await one.run_all([a_call("post")] * (PLACES.most + 1))
        refused = TOO_MANY_OF_ONE if user_id == 2 else TOO_MANY
        assert [refused in str(each) for each in told_them].count(False) in {places, places - 1}
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert sorted(desk.called) == ["hers too", "his"]


async def test_who_talks_over_the_bot_takes_nothing_back(desk: Desk) -> None:
    """A call that was posted waits on although its reply was cancelled, and later questions know of it."""
    use = desk.toolbox.for_asker(ADA)
    desk.goes_on.clear()
    running = asyncio.create_task(use.run_all([a_call("post"), a_call("echo")]))
    while not desk.channel.calls:  # noqa: ASYNC110 - a message sets no event
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})
    use.record(Seq(7), [])
    desk.goes_on.set()
    desk.channel.calls[0].press(ADA_HERSELF)
    assert "You said hello" in await known(desk)


@pytest.mark.parametrize(
    ("error", "effect", "told"),
    [
        (None, "done", "I did this"),
        (ToolError("No."), "failed", "failed"),
        (OutcomeUnknownError("Gone."), "not known", "do not know"),
    ],
)
async def test_words_withdrawn_from_a_call_that_runs_hide_its_result(
    desk: Desk, error: ToolError | None, effect: Effect, told: str
) -> None:
    """It was sent. What became of it is told truly, nothing of what the tool answered is, and nobody is asked to have
    it done again.
    """
    desk.goes_on.clear()
    desk.error = error
    reported = ReportedCalls(desk)
    call = await frozen(desk)
    desk.channel.calls[0].press(ADA_HERSELF)
    while call.running is None:  # noqa: ASYNC110 - it sets no event
        await asyncio.sleep(0)
    desk.toolbox.words.take_back(turns=True)
    desk.goes_on.set()
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert (desk.called, call.result, reported.calls) == (["hello"], WORDLESS[effect], [])
    assert told in str(desk.channel.calls[0].outcome)
    assert "I did not do it" not in str(desk.channel.calls[0].outcome)


@pytest.mark.parametrize(
    ("error", "told", "knowers"),
    [
        (None, "I did this", [1, 2, 3]),
        (ToolError("The disk is full."), "failed", [1]),
        (OutcomeUnknownError("It does not answer."), "do not know", [1]),
        (TimeoutError(), "do not know", [1, 2]),
        (RuntimeError(), "do not know", [1, 2]),
        (asyncio.CancelledError(), "do not know", [1, 2]),
    ],
)
async def test_what_became_of_a_call_is_told_truly(
    desk: Desk, error: BaseException | None, told: str, knowers: list[int]
) -> None:
    """In the chat, to the model, and aloud, to those who may know it. What is not known is said to be so, and not to be
    tried again.
    """
    reported = ReportedCalls(desk)
    desk.error = error
    call = await frozen(desk)
    desk.channel.calls[0].press(ADA_HERSELF)
    read = await known(desk)
    assert told in str(desk.channel.calls[0].outcome)
    assert ("not known" in read) is (told == "do not know")
    assert (read, reported.calls) == (call.result, [call])
    people = (ADA, Asker(2, present=True), Asker(3))
    assert [each.user_id for each in people if call.knows(each)] == knowers


async def test_a_room_that_ends_lets_nothing_wait(desk: Desk) -> None:
    """What waits lapses at once, what runs has a moment, and nothing new begins."""
    desk.goes_on.clear()
    async with aclosing(desk.toolbox.frozen):
        call, _ = await frozen(desk), await frozen(desk)
        desk.channel.calls[0].press(ADA_HERSELF)
        await desk.toolbox.frozen.finish(within_s=0.01)
        assert "do not know" in str(desk.channel.calls[0].outcome)
        assert not call.knows(Asker(3))
        assert "I did not do it" in str(desk.channel.calls[1].outcome)
        assert TOO_MANY in await told(desk.toolbox.for_asker(ADA), a_call("post"))
    assert desk.called == []


async def test_where_the_bot_cannot_write_nothing_waits(desk: Desk) -> None:
    """The model reads why, and nothing is recorded as waiting."""
    desk.channel.writable = False
    use = desk.toolbox.for_asker(ADA)
    assert await told(use, a_call("post")) == "No call here."
    use.record(Seq(7), [])
    assert desk.toolbox.exchanges.steps({7}) == {}


def slow_desk(reply_waits_s: float = 0.001) -> Desk:
    """Return a room with a tool that may take long, `fetch`."""
    desk = Desk(reply_waits_s=reply_waits_s)
    desk.more = [replace(desk.post, name="fetch", asks=False, slow=True)]
    return desk


async def behind(desk: Desk) -> FrozenCall:
    """Let Ada ask for something that takes longer than her reply waits."""
    desk.goes_on.clear()
    use = desk.toolbox.for_asker(ADA, answering=Seq(7))
    (call,) = results = await use.run_all([a_call("fetch")])
    assert isinstance(call, FrozenCall)
    use.record(Seq(7), [ToolExchange((a_call("fetch"),), results)])
    while not desk.channel.calls:  # noqa: ASYNC110 - a message sets no event
        await asyncio.sleep(0)
    return call


async def until_concluded(desk: Desk) -> str:
    """Return what people read at last of the call that was posted."""
    (posted,) = desk.channel.calls
    while posted.outcome is None:  # noqa: ASYNC110 - a message sets no event
        await asyncio.sleep(0)
    return str(posted.outcome)


async def test_a_slow_tool_that_is_quick_is_waited_for() -> None:
    """Its result is that of the reply, nothing is posted, and nothing is told twice."""
    desk = slow_desk(PATIENCE_S)
    reported = ReportedCalls(desk)
    use = desk.toolbox.for_asker(ADA)
    assert "You said hello" in await told(use, a_call("fetch"))
    desk.error = ToolError("The sea is gone.")
    assert "The sea is gone." in await told(use, a_call("fetch"))
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert (desk.channel.calls, reported.calls) == ([], [])


async def test_what_takes_long_goes_on_behind_the_talk() -> None:
    """The reply goes on at once. People read that it runs, not with what; its result is told, and later questions read
    it, also when the question itself is forgotten.
    """
    desk = slow_desk()
    reported = ReportedCalls(desk)
    call = await behind(desk)
    (posted,) = desk.channel.calls
    assert (posted.request.asker, posted.request.tool, posted.request.arguments) == ("Ada", "fetch", None)
    assert (call.result, reported.calls) == (RUNS, [])
    for turn in range(20, 40):
        desk.toolbox.exchanges.record(Seq(turn), [ToolExchange((a_call("echo"),), ("You said so.",))])
    desk.goes_on.set()
    assert "I did this" in await until_concluded(desk)
    assert reported.calls == [call]
    teller = desk.toolbox.for_asker(ADA, answering=Seq(50), result_of=call)
    (*_, read) = teller.earlier({50})[50]
    assert "You said hello" in read.content
    desk.allowed = False
    assert desk.toolbox.for_asker(ADA, answering=Seq(51), result_of=call).earlier({51}) == {}


@pytest.mark.parametrize("by", ["button", "word"])
async def test_who_asked_can_stop_it(by: str) -> None:
    """By the button, or by saying so: the model has a tool for that while something runs for them. Nobody else can."""
    desk = slow_desk()
    reported = ReportedCalls(desk)
    call = await behind(desk)
    (posted,) = desk.channel.calls
    assert posted.press(BO) is not None
    assert "stop" not in {offer.name for offer in desk.toolbox.for_asker(replace(ADA, user_id=2, name="Bo")).offers}
    if by == "button":
        assert posted.press(ADA_HERSELF, do_it=False) is None
    else:
        assert "fetch" in await told(desk.toolbox.for_asker(ADA), MessageToolCall("c", "stop", "{}"))
    assert "I stopped this" in await until_concluded(desk)
    assert posted.press(ADA_HERSELF, do_it=False) == TOO_LATE
    assert "stop" not in {offer.name for offer in desk.toolbox.for_asker(ADA).offers}
    assert (desk.called, reported.calls, call.result) == ([], [], STOPPED)


@pytest.mark.parametrize(("how", "why"), [("words withdrawn", "no longer wants"), ("room over", "session is over")])
async def test_what_runs_behind_the_talk_ends_with_its_words_and_its_room(how: str, why: str) -> None:
    """The words may be in its arguments, and the room does not wait. People read that it ended, and why."""
    desk = slow_desk()
    reported = ReportedCalls(desk)
    await behind(desk)
    if how == "room over":
        await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    else:
        desk.toolbox.words.take_back(turns=True)
    assert why in await until_concluded(desk)
    assert (desk.called, reported.calls) == ([], [])
    assert bool(desk.toolbox.exchanges.steps({7})) is (how == "room over")


async def test_who_talks_over_the_bot_ends_what_its_reply_still_waits_for() -> None:
    """What goes on behind the talk already stays. Only so many go on at a time."""
    desk = slow_desk(PATIENCE_S)
    desk.goes_on.clear()
    use = desk.toolbox.for_asker(ADA)
    running = asyncio.create_task(use.run_all([a_call("fetch")] * (PLACES.most + 1)))
    await loop_turns()
    assert TOO_MANY_OF_ONE in await told(desk.toolbox.for_asker(ADA), a_call("fetch"))
    running.cancel()
    await asyncio.wait({running})
    use.record(Seq(7), [])
    desk.goes_on.set()
    await desk.toolbox.frozen.finish(within_s=PATIENCE_S)
    assert (desk.called, desk.channel.calls, desk.toolbox.exchanges.steps({7})) == ([], [], {})


async def test_where_the_bot_cannot_write_a_long_call_goes_on_all_the_same() -> None:
    """It is told, and can be stopped by saying so."""
    desk = slow_desk()
    desk.channel.writable = False
    reported = ReportedCalls(desk)
    desk.goes_on.clear()
    (call,) = await desk.toolbox.for_asker(ADA).run_all([a_call("fetch")])
    assert "stop" in {offer.name for offer in desk.toolbox.for_asker(ADA).offers}
    desk.goes_on.set()
    while not reported.calls:  # noqa: ASYNC110 - it sets no event
        await asyncio.sleep(0)
    assert reported.calls == [call]
