"""The charts of a room have its latest figures, and no more of them than they show."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from bot import events
from bot.dashboard.live_room import COST_EVERY_S, MEASURED, PROBLEMS, RoomCharts
from bot.dropped_sounds import OPTED_OUT
from bot.texts.text import Text
from tests.fakes.clock import FakeClock
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures


def shown(charts: RoomCharts, name: str) -> list[Any]:
    """Return one of the charts."""
    return cast("list[Any]", charts.as_json({})[name])


def answered(utterance_id: str | None) -> events.ReplySpoken:
    """Return the reply to an utterance that ended at 99.5, heard a second later."""
    return events.ReplySpoken(
        text="At nine.",
        answer_to=3,
        utterance_id=utterance_id,
        first_audio_at=100.5,
        ended_at=102.0,
        interrupted=False,
        model_first_token_ms=200.0,
        synthesis_first_audio_ms=350.0,
    )


def test_a_reply_has_the_stages_of_its_utterance() -> None:
    """For a reply to nobody, or to an utterance that is not known any more, nobody waited."""
    charts = RoomCharts(FakeClock())
    utterance = Utterance("one", 7, 98.0, 99.5, 99.8, np.zeros(0, np.int16))
    charts.remember_stages(
        events.SpokenText(utterance, Recognition("When?", "en", -0.2, 1.0, 0.0, 1.5, 0.1), 99.8, 100.0)
    )
    reply = charts.add_reply(answered("one"))
    assert reply is not None
    assert (reply["total"], reply["endpoint"], reply["model"], reply["voice"]) == (1000, 300, 200, 150)
    assert charts.add_reply(answered("another")) is None
    assert charts.add_reply(answered(None)) is None
    assert charts.as_json({})["replies"] == [reply]


def test_only_the_queues_of_speech_are_shown() -> None:
    """Each figure has its time, and the oldest make room for new ones."""
    clock = FakeClock()
    charts = RoomCharts(clock)
    queues = (QueueFigures("recognise", 2, 8), QueueFigures("something_else", 9, None))
    for _ in range(MEASURED + 1):
        figures = charts.add_queues(events.QueuesMeasured(queues, 0.0), unfolded=61)
    assert figures == {"at": clock.now(), "recognise": 2, "unfolded": 61}
    assert len(shown(charts, "queues")) == MEASURED


def test_a_cost_is_kept_once_a_minute() -> None:
    """The cost of now is the last point in any case."""
    charts = RoomCharts(FakeClock())
    kept = [charts.add_cost({"calls": at}, float(at)) for at in (0, 30, int(COST_EVERY_S))]
    assert kept == [True, False, True]
    assert charts.as_json({"calls": 99})["costs"] == [{"calls": 0}, {"calls": 60}, {"calls": 99}]


def test_what_was_dropped_and_what_failed_is_told() -> None:
    """Reasons are counted; of problems only the latest are kept."""
    charts = RoomCharts(FakeClock())
    charts.add_dropped(OPTED_OUT)
    told = charts.add_dropped(OPTED_OUT)
    assert "2" in told
    assert charts.as_json({})["dropped"] == told
    for number in range(PROBLEMS + 1):
        problem = charts.add_problem("store", Text("The disk is full ({number}).", number=number))
    assert shown(charts, "problems")[-1] == problem
    assert len(shown(charts, "problems")) == PROBLEMS
