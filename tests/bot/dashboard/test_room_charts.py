"""The charts of a room have its latest figures, and no more of them than they show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bot import events
from bot.cost import NOTHING
from bot.dashboard.access import Json
from bot.dashboard.live_room import CHARTS, LiveRoom
from bot.dropped_sounds import OPTED_OUT
from bot.guild import VoiceMode
from bot.health import FaultKind, HealthFault
from bot.participation.costs import CostLedger
from bot.participation.guild_state import GuildState
from bot.server_settings import no_server_settings
from bot.texts.text import Text
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def room(clock: FakeClock) -> LiveRoom:
    """A room of which nobody looks at a page."""
    timeline: Any = SimpleNamespace(total_turns=1, window=(None,) * 61, allowed_part=lambda turn: turn)
    guild = GuildState(1, no_server_settings(), VoiceMode.ENGAGED, (), CostLedger(NOTHING), FakeClock())
    channel = FakeRoomChannel(channel_id=600)
    return LiveRoom(SessionId("s"), channel, timeline, guild, clock=clock, publish=lambda *_: None)


def shown(room: LiveRoom, name: str) -> list[Json]:
    """Return one of the charts."""
    return cast("list[Json]", room.figures()[name])


def test_a_reply_has_the_stages_of_its_utterance(room: LiveRoom) -> None:
    """For a reply to nobody, or to an utterance that is not known any more, nobody waited."""
    utterance = Utterance("one", 7, 98.0, 99.5, 99.8, np.zeros(0, np.int16))
    spoken = events.SpokenText(utterance, Recognition("When?", "en", -0.2, 1.0, 0.0, 1.5, 0.1), 99.8, 100.0)
    turn = Turn(Seq(3), TurnKind.SPEECH, 98.0, 99.5, (TurnPart("7", "Ada", "When?"),))
    room.observe(events.TurnRecorded(turn, 100.0, (spoken,)))
    for utterance_id in ("one", "another", None):
        room.observe(events.ReplySpoken("At nine.", 3, utterance_id, 100.5, 102.0, False, 200.0, 350.0))
    (reply,) = shown(room, "replies")
    assert (reply["total"], reply["endpoint"], reply["model"], reply["voice"]) == (1000, 300, 200, 150)


def test_only_the_queues_of_speech_are_shown(room: LiveRoom, clock: FakeClock) -> None:
    """Each figure has its time, and the oldest make room for new ones."""
    queues = (QueueFigures("recognise", 2, 8), QueueFigures("something_else", 9, None))
    for _ in range(CHARTS["queues"] + 1):
        room.observe(events.QueuesMeasured(queues, 0.0))
    assert shown(room, "queues") == [{"at": clock.now(), "recognise": 2, "unfolded": 61}] * CHARTS["queues"]


def test_what_was_dropped_and_what_failed_is_told(room: LiveRoom) -> None:
    """Reasons are counted; of problems only the latest are kept."""
    for _ in range(2):
        room.observe(events.SpeechDropped("u", 7, OPTED_OUT, "", 0.0, 1.0, 2.0))
    assert "2" in str(room.figures()["dropped"])
    for number in range(CHARTS["problems"] + 1):
        room.observe(events.Problem("store", Text("The disk is full ({number}).", number=number), 0.0))
    problems = shown(room, "problems")
    assert (len(problems), problems[-1]["sentence"]) == (5, "The disk is full (5).")


def test_what_is_wrong_now_is_shown_with_since_when(room: LiveRoom, clock: FakeClock) -> None:
    """The last list counts, so what is over is gone."""
    full = HealthFault(FaultKind.DISK, Text("The disk is full."), since=clock.monotonic() - 60.0)
    room.observe(events.FaultsFound((full,), 0.0))
    assert room.figures()["faults"] == [{"since": clock.now() - 60.0, "sentence": full.sentence}]
    room.observe(events.FaultsFound((), 0.0))
    assert room.figures()["faults"] == []
