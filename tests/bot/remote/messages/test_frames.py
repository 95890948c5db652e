"""Frames: what a message may cost who checks it, before anybody knows whether it is one."""

from __future__ import annotations

import json

import pytest

from bot.guild import Silence, VoiceMode
from bot.participation.costs import Cost
from bot.remote.messages import frames
from bot.remote.messages.event_messages import event_in
from bot.remote.messages.figure_messages import FiguresTold
from bot.remote.messages.frames import MOST_NUMBER, MOST_PARTS, Head, MalformedError, content_of, frame_of, head_of
from bot.remote.messages.participation_state import ParticipationState
from bot.remote.messages.room_messages import CostTold, EventTold, RoomReport, StoreSilence
from bot.store.number_range import LARGEST_NUMBER

# Each part of it is wrong.
FLOOD = "[" + ",".join(["1"] * (MOST_PARTS + 2)) + "]"

REPORT = RoomReport(
    session_id="s",
    listens_only=False,
    participation=ParticipationState(
        VoiceMode.NAME, (), Silence(), frozenset(), asks=False, agreed=frozenset(), consented_in=None
    ),
    unsaved_silence_by=0,
    costs=((3.5, Cost(calls=1)),),
    members=(),
    shows_listening=False,
)


def test_a_message_of_very_many_parts_is_refused_before_they_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic keeps 500 bytes for each part that is wrong: 16 MiB of them would take 7 GB and ten seconds."""
    monkeypatch.setattr(frames, "adapter_of", lambda _: pytest.fail("it is checked"))
    with pytest.raises(MalformedError, match="too many parts"):
        content_of(f'{{"series":{FLOOD}}}', FiguresTold)


def test_an_event_of_very_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JSON is a text in the message, where a comma can be written in another way."""
    monkeypatch.setattr("bot.remote.messages.event_messages._adapter", lambda _: pytest.fail("it is checked"))
    with pytest.raises(MalformedError, match="too many parts"):
        event_in(EventTold("QueuesMeasured", f'{{"queues":{FLOOD}}}'))


def test_a_message_of_very_many_parts_is_not_sent() -> None:
    """The other side would refuse it, and end the link after some of them."""
    with pytest.raises(MalformedError, match="too many parts"):
        frame_of(Head("tell"), list(range(MOST_PARTS + 2)), list[int])


def test_many_wrong_values_are_counted_and_few_are_named() -> None:
    """To describe each of them takes six times as long as to find them."""
    with pytest.raises(MalformedError, match=r"wrong in: series\.0, series\.1$"):
        content_of('{"series":[1,1]}', FiguresTold)
    with pytest.raises(MalformedError, match=r"wrong in 1000 places"):
        content_of(json.dumps({"series": [1] * 1000}), FiguresTold)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e308", "-1e308", "9007199254740994.0"])
def test_a_number_that_no_sum_survives_is_refused_wherever_it_is(number: str) -> None:
    """A sum that it is added to stays so: a server would have no limit of its costs any more, or no reply. Two that are
    finite and very large do the same.
    """
    with pytest.raises(MalformedError, match=r"wrong in: cost\.spoken_s$"):
        content_of(f'{{"cost":{{"calls":1,"tokens":20,"spoken_s":{number}}}}}', CostTold)
    with pytest.raises(MalformedError, match=r"wrong in: series\.0\.values\.0$"):
        content_of(f'{{"series":[{{"metric":"a","labels":[],"values":[{number}]}}]}}', FiguresTold)
    with pytest.raises(MalformedError, match=r"wrong in: all of it$"):
        content_of(number, float)
    with pytest.raises(MalformedError, match=r"SoundReceived has 1 wrong values"):
        event_in(EventTold("SoundReceived", f'{{"delay_s":{number},"at":1.0}}'))
    assert content_of(str(MOST_NUMBER), float) == MOST_NUMBER


def test_a_whole_number_that_no_database_takes_is_refused() -> None:
    """A choice of somebody whose id cannot be stored would wait, and be tried again, for good."""
    silence = '{"silence":{"always":true,"session_id":null,"until":null},"by":%d}'
    assert content_of(silence % LARGEST_NUMBER, StoreSilence).by == LARGEST_NUMBER
    for by in (LARGEST_NUMBER + 1, -LARGEST_NUMBER - 1, 10**400):
        with pytest.raises(MalformedError, match=r"StoreSilence is wrong in: by$"):
            content_of(silence % by, StoreSilence)
        with pytest.raises(MalformedError, match=r"ContextBuilt has 1 wrong values"):
            event_in(EventTold("ContextBuilt", f'{{"parts":[],"answer_to":{by},"at":1.0}}'))


@pytest.mark.parametrize("wrong", ['"calls":-1', '"tokens":-20', '"spoken_s":-0.5', '"spoken_s":1e10'])
def test_a_cost_that_no_reply_has_is_refused(wrong: str) -> None:
    """One below zero would give a server back what it has used of its hour."""
    with pytest.raises(MalformedError, match=r"wrong in: cost$"):
        content_of(f'{{"cost":{{{wrong}}}}}', CostTold)


@pytest.mark.parametrize("age_s", ["-1e12", "NaN"])
def test_a_cost_of_the_future_is_refused(age_s: str) -> None:
    """Its hour would not end."""
    head, body = head_of(frame_of(Head("answer"), REPORT, RoomReport))
    assert (head.kind, content_of(body, RoomReport)) == ("answer", REPORT)
    with pytest.raises(MalformedError, match=r"costs\.0\.0$"):
        content_of(body.replace("3.5", age_s), RoomReport)
