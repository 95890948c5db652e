"""Frames: what a message may cost who checks it, before anybody knows whether it is one."""

from __future__ import annotations

import json

import pytest

from bot.remote.messages import frames
from bot.remote.messages.event_messages import event_in
from bot.remote.messages.figure_messages import FiguresTold
from bot.remote.messages.frames import MOST_PARTS, Head, MalformedError, content_of, frame_of
from bot.remote.messages.room_messages import EventTold

# Each part of it is wrong.
FLOOD = "[" + ",".join(["1"] * (MOST_PARTS + 2)) + "]"


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
    with pytest.raises(MalformedError, match="wrong in 1000 places"):
        content_of(json.dumps({"series": [1] * 1000}), FiguresTold)
