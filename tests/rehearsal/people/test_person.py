"""People in the local Discord: they speak, hear, and stay in the call through what goes wrong.

These run against real sockets on 127.0.0.1; clips are half a second long.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from rehearsal.discord.guild import GuildSpec, Member
from rehearsal.discord.network import Network
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.person import Person
from tests.rehearsal.people.sounds import clip_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from rehearsal.people.clip import Clip

ADA, BEN, CLEO = 41_001, 41_002, 41_003


class Room:
    """A local Discord and the way into it."""

    def __init__(self, discord: LocalDiscord) -> None:
        self.discord = discord
        self._tls = ssl.create_default_context(cafile=str(discord.certificate_path))

    def person(self, user_id: int) -> Person:
        """Return somebody who has not joined yet."""

        async def join() -> Mapping[str, Any]:
            return (await self.discord.join(user_id)).as_dict()

        async def leave() -> None:
            await self.discord.leave(user_id)

        return Person(user_id=user_id, name=str(user_id), join=join, leave=leave, tls=self._tls)

    @contextlib.asynccontextmanager
    async def two(self) -> AsyncIterator[tuple[Person, Person]]:
        """Let Ada and Ben in and wait until they share keys."""
        async with self.person(ADA) as ada, self.person(BEN) as ben:
            await ada.meet(BEN)
            await ben.meet(ADA)
            yield ada, ben


@pytest_asyncio.fixture
async def room() -> AsyncIterator[Room]:
    """Open a local Discord with three members."""
    people = tuple(Member(user_id, name) for user_id, name in ((ADA, "Ada"), (BEN, "Ben"), (CLEO, "Cleo")))
    async with LocalDiscord(guild=GuildSpec(people=people)) as discord:
        yield Room(discord)


@pytest.fixture
def clip(tmp_path: Path) -> Clip:
    """Return half a second of voice between two tenths of silence."""
    return clip_of(tmp_path)


async def heard_all(listener: Person, speaker: Person, clip: Clip) -> float:
    """Let one speak; return what share of the packets the other heard."""
    before = len(listener.heard(speaker.user_id))
    began_at = time.monotonic()
    said = await speaker.say(clip)
    await listener.wait_for_sound(speaker.user_id, since=began_at, timeout_s=5)
    await listener.wait_for_quiet(speaker.user_id, quiet_s=0.1, timeout_s=5)
    heard = listener.heard(speaker.user_id)
    first = heard.first_voiced_at(since=began_at)
    assert first is not None
    assert first >= said.speech_started_at
    return (len(heard) - before) / (len(clip.packets) + 5)


@pytest.mark.asyncio
async def test_two_people_hear_each_other(room: Room, clip: Clip) -> None:
    """Every packet arrives and decrypts, both ways."""
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.counts.dave_failures == ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_what_was_said_is_told_in_order(room: Room, clip: Clip) -> None:
    """The times of the voice lie inside the times of the clip, and nothing stayed unsent."""
    async with room.two() as (ada, _):
        said = await ada.say(clip)
        assert said.started_at < said.speech_started_at < said.speech_ended_at
        assert (said.sent_packets, said.unsent_packets) == (len(clip.packets), 0)


@pytest.mark.asyncio
async def test_padding_and_reordering_lose_nothing(room: Room, clip: Clip) -> None:
    """What the network does to packets is undone: all of them are heard."""
    room.discord.network.update(Network(padding=0.3, reorder=0.3).as_dict())
    async with room.two() as (ada, ben):
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_somebody_joins_in_mid_speech(room: Room, clip: Clip) -> None:
    """A new member re-keys the call while Ada speaks; Ben misses nothing, and Cleo hears the next words."""
    async with room.two() as (ada, ben), asyncio.TaskGroup() as tasks:
        talk = tasks.create_task(heard_all(ben, ada, clip))
        async with room.person(CLEO) as cleo:
            await cleo.meet(ADA)
            assert await talk == 1
            assert await heard_all(cleo, ada, clip) == 1
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_a_broken_websocket_is_resumed(room: Room, clip: Clip) -> None:
    """The session survives: no new one, the same SSRC, and the next words are heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert (ada.sessions, ada.resumes) == (1, 1)


@pytest.mark.asyncio
@pytest.mark.parametrize("close_code", [4006, 4009, 4014, 4015])
async def test_a_closed_session_is_made_anew(room: Room, clip: Clip, close_code: int) -> None:
    """Whatever code the server closes with, the person comes back and is heard."""
    async with room.two() as (ada, ben):
        await room.discord.fault("kill_voice_websocket", user_id=ADA, close_code=close_code)
        await ben.say(clip)
        await ada.meet(BEN)
        await ben.meet(ADA)
        assert await heard_all(ben, ada, clip) == 1
        assert ada.sessions + ada.resumes == 2


@pytest.mark.asyncio
async def test_a_move_to_another_endpoint(room: Room, clip: Clip) -> None:
    """A VOICE_SERVER_UPDATE in mid-call changes the server; a new session speaks and hears."""
    async with room.two() as (ada, ben):
        told = await room.discord.fault("migrate", user_id=ADA)
        await ada.move(told["servers"][str(ADA)])
        await ben.say(clip)
        await ada.meet(BEN)
        await ben.meet(ADA)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.sessions == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", ["malformed_proposals", "invalid_commit"])
async def test_garbage_from_the_group_is_survived(room: Room, clip: Clip, fault: str) -> None:
    """What MLS refuses makes a person leave the group and come back, without losing the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault(fault, user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1
        assert await heard_all(ada, ben, clip) == 1
        assert ada.sessions == 1


@pytest.mark.asyncio
async def test_a_downgrade_and_an_upgrade(room: Room, clip: Clip) -> None:
    """Without end-to-end encryption people are heard, and with it again."""
    async with room.two() as (ada, ben):
        await room.discord.fault("downgrade", user_id=ADA)
        await ben.say(clip)
        assert (ada.dave_version, ben.dave_version) == (0, 0)
        assert await heard_all(ben, ada, clip) == 1
        await room.discord.fault("upgrade", user_id=ADA)
        await ben.say(clip)
        assert (ada.dave_version, ben.dave_version) == (1, 1)
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.dave_failures == 0


@pytest.mark.asyncio
async def test_a_new_group_is_joined(room: Room, clip: Clip) -> None:
    """Op 24 with epoch 1 in the middle of a call costs no one the call."""
    async with room.two() as (ada, ben):
        await room.discord.fault("request_reset", user_id=ADA)
        await ben.say(clip)
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_other_packets_are_not_heard(room: Room, clip: Clip) -> None:
    """RTCP and video on the same socket are counted as foreign and reach no ear."""
    async with room.two() as (ada, ben):
        await room.discord.fault("rtcp", user_id=BEN)
        await room.discord.fault("video", user_id=BEN)
        assert await heard_all(ben, ada, clip) == 1
        assert ben.counts.foreign == 40


@pytest.mark.asyncio
async def test_a_late_op_5_costs_no_packet(room: Room, clip: Clip) -> None:
    """The sender's key tells who speaks before op 5 does."""
    async with room.two() as (ada, ben):
        await room.discord.fault("late_speaking", user_id=ADA, delay_s=5.0)
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_nobody_can_speak_to_an_empty_room(room: Room, clip: Clip) -> None:
    """Alone there are no keys; that is a plain sentence, not a hang."""
    async with room.person(ADA) as ada:
        with pytest.raises(PersonError, match="no keys to speak with"):
            await ada.say(clip, ready_timeout_s=0.05)


@pytest.mark.asyncio
async def test_silence_of_another_is_told(room: Room) -> None:
    """Waiting for somebody who says nothing ends with their number in a sentence."""
    async with room.two() as (ada, _):
        with pytest.raises(PersonError, match=f"heard nothing of member {BEN}"):
            await ada.wait_for_sound(BEN, since=time.monotonic(), timeout_s=0.05)


@pytest.mark.asyncio
async def test_a_cancelled_clip_leaves_the_person_able(room: Room, clip: Clip) -> None:
    """Stopped in mid-word, the person can speak again at once."""
    async with room.two() as (ada, ben):
        talk = asyncio.create_task(ada.say(clip))
        await ben.wait_for_sound(ADA, since=0.0, timeout_s=5)
        talk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talk
        assert await heard_all(ben, ada, clip) == 1


@pytest.mark.asyncio
async def test_who_leaves_is_gone(room: Room) -> None:
    """After leaving nobody is in the channel, and no task or socket is left."""
    async with room.two():
        pass
    assert room.discord.status()["voice_states"] == []
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("person-")] == []


@pytest.mark.asyncio
async def test_a_closed_door_is_told(room: Room) -> None:
    """A token that does not fit ends in one sentence, after a few tries."""

    async def join() -> Mapping[str, Any]:
        admission = (await room.discord.join(ADA)).as_dict()
        return {**admission, "server": {**admission["server"], "token": "wrong"}}

    stranger = Person(user_id=ADA, name="Ada", join=join, tls=room._tls)
    with pytest.raises(PersonError, match="Member 41001"):
        await stranger.__aenter__()
