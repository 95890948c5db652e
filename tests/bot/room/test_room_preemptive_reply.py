"""A preemptive reply in a whole room: it is used if the turn has ended, and never heard before the end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from tests.bot.room.room_scene import House, a_house, living, settle
from tests.fakes.brain import ScriptedResponder
from tests.fakes.hearing import speech
from tests.fakes.place import ADA

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from bot.room.services import RoomServices
    from voice.audio import Pcm


class Judge:
    """A turn-end detector that takes every pause for the end."""

    async def judge(self, pcm: Pcm) -> float | None:
        """See `TurnEndDetector.judge`."""
        return 0.9


@asynccontextmanager
async def a_judged_house(
    folder: Path,
) -> AsyncIterator[tuple[House, ScriptedResponder]]:
    """Open the services with a turn-end detector and a model that always gives the same answer."""
    async with a_house(folder) as house:
        responder = ScriptedResponder("Bo brings it.")
        house.new_responder, house.can_skip = lambda: responder, True
        plain = house.services

        def services() -> RoomServices:
            usual = plain()
            speech = replace(usual.speech, turn_end_detector=Judge())
            return replace(usual, speech=speech)

        house.services = services  # type: ignore[method-assign]
        yield house, responder


def _told(logs: Sequence[Mapping[str, object]]) -> list[object]:
    return [line["event"] for line in logs if str(line["event"]).startswith("preemptive_reply")]


async def test_the_answer_has_begun_when_the_end_is_sure(tmp_path: Path) -> None:
    """The model is asked once, before the turn is recorded, and nothing is spoken until the turn has ended."""
    async with a_judged_house(tmp_path) as (house, responder), living(house):
        house.recogniser.texts.append("Roomtone, who brings the lantern?")
        with capture_logs() as logs:
            await house.pass_time(2.0)
            house.place.links[-1].hear(speech(ADA.id, at=house.clock.monotonic() - 2.0))
            await house.pass_time(0.4)
            await settle(lambda: bool(house.voice.spoken))
            # The first sound is ready, and none of it is played.
            assert house.turns == []
            assert house.place.links[-1].frames_sent == 0
            await house.pass_time(1.2)
            reply = await house.reply(1)
        assert reply.text == "Bo brings it."
        assert house.voice.spoken == ["Bo brings it."]
        assert _told(logs) == ["preemptive_reply_used"]
        assert len(responder.contexts) == 1
        assert responder.contexts[0].current.parts == house.turns[0].parts
        assert [turn.seq for turn in house.turns] == [0, 1]
