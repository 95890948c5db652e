"""What /status says about a room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bot.guild import VoiceMode
from bot.participation.statistics import mode_sentence
from bot.room.room_status import memory_sentence, summary_sentence
from compaction.model import Mode
from tests.bot.room.room_scene import a_house, living
from tests.compaction.rooms import Room, fold_until
from tests.compaction.turn_store_contract import segment
from tests.fakes.hearing import speech
from tests.fakes.place import ADA, BO

if TYPE_CHECKING:
    from pathlib import Path

    from compaction.model import Segment


@pytest.mark.asyncio
async def test_the_state_is_told_in_sentences(tmp_path: Path) -> None:
    """The status says where the bot is, for how long, with how many people, what it remembers and what it left out."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        assert room.status().startswith("I have been in Lounge for less than a minute, with 2 people.")
        await house.say(ADA.id, "The first thing that was said.")
        await house.pass_time(57.0, step_s=1.0)
        assert room.status() == (
            "I have been in Lounge for 1 minute, with 2 people.\nI remember 1 turn of this session.\n"
            "This call is end-to-end encrypted; compare its privacy code with yours: 12345 67890.\n"
            "I answer with what I heard.\nI kept silent 1 time (not meant for me: 1).\n"
            f"{mode_sentence(VoiceMode.ENGAGED)}"
        )
        house.place.links[-1].hear(speech(BO.id, at=house.clock.monotonic(), seconds=0.1))
        await house.pass_time(2.0)
        assert "I left out 1 sound (1 too short).\nThis call is end-to-end encrypted" in room.status()
        house.place.links[-1].privacy_code = ""
        assert "(1 too short).\nThis call is not end-to-end encrypted, so Discord's servers could" in room.status()
        house.ailing = "The voice kokoro has not worked for 3 minutes; the embedded voice speaks."
        assert room.status().endswith(f"\n{house.ailing}")


_WRITTEN = replace(
    segment(0, 10), summariser="llm ledger.v8", degraded=False, paragraph="Ada counts.", paragraph_problem=""
)
# The model's paragraph had a fault, its answer was of no use, it failed, and its turns were made a segment again later.
_FAULTY = replace(_WRITTEN, paragraph="", paragraph_problem="names nobody said")
_COPIED = replace(_WRITTEN, summariser="extractive", paragraph="", paragraph_problem="only copied words")
_AWAY = replace(_WRITTEN, summariser="extractive", paragraph="", degraded=True)
_REWRITTEN_BY_CODE = replace(_WRITTEN, summariser="extractive recursive", degraded=True)
_REPAIRED = replace(_WRITTEN, paragraph="")
# No model was asked: none is configured, or nothing of the batch may be told.
_BY_RULE = replace(_WRITTEN, summariser="extractive", paragraph="")
_PARAGRAPH_BY_RULE = replace(_WRITTEN, summariser="extractive recursive")


@pytest.mark.parametrize(
    ("segments", "sentence"),
    [
        ((), ""),
        ((_BY_RULE, _PARAGRAPH_BY_RULE), ""),
        ((_WRITTEN, _BY_RULE), "The language model wrote it."),
        ((_WRITTEN, _WRITTEN), "The language model wrote each of its 2 versions."),
        ((_FAULTY,), "The language model could not write it, so I made it from what was said."),
        *(
            (
                (_WRITTEN, other, _WRITTEN),
                "The language model wrote 2 of its 3 versions; I made the others from what was said.",
            )
            for other in (_FAULTY, _COPIED, _AWAY, _REWRITTEN_BY_CODE, _REPAIRED)
        ),
    ],
)
def test_the_status_says_how_often_the_model_wrote_the_summary(segments: tuple[Segment, ...], sentence: str) -> None:
    """Whoever runs a small model sees how often its text was of no use. Without a model there is nothing to say."""
    assert summary_sentence(segments) == sentence


@pytest.mark.asyncio
async def test_the_status_tells_what_is_sent_in_the_mode_off() -> None:
    """In the mode `off` no prompt has the summary that an earlier mode has made, nor turns beyond the window."""
    async with Room() as room:
        await fold_until(room, 61)
        assert memory_sentence(room.memory) == (
            "I remember 61 turns of this session, the first 10 of them as a summary. The language model wrote it."
        )
        await room.memory.set_mode(Mode.OFF)
        assert memory_sentence(room.memory) == (
            "This session has 61 turns. I see the last 50, and older ones only where memory search finds them."
        )
    async with Room(mode=Mode.OFF) as room:
        await room.talk(50)
        assert memory_sentence(room.memory) == "I remember 50 turns of this session."


@pytest.mark.asyncio
async def test_a_broken_connection_is_told(tmp_path: Path) -> None:
    """The status says since when nobody is heard, and nothing of it once the connection is back."""
    async with a_house(tmp_path) as house, living(house) as (room, _):
        link = house.place.links[-1]
        link.down_since = house.clock.monotonic()
        await house.pass_time(4.0, step_s=1.0)
        assert "My voice connection broke 4 s ago and is being made anew; until then I hear nobody." in room.status()
        link.down_since = None
        assert "broke" not in room.status()
        link.round_trip_s = 0.021
        assert "The voice server answers in 21 ms." in room.status()


@pytest.mark.asyncio
async def test_a_room_says_that_it_has_not_joined_yet(tmp_path: Path) -> None:
    """Before the room is open there is nothing else to tell."""
    async with a_house(tmp_path) as house:
        assert house.room().status() == "I am coming to Lounge."
