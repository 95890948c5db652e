"""Discord's answers for rooms in other processes: who is told them, who may ask, and what a room is told late."""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from bot.remote.gateway_side.served_place import ServedPlaces
from bot.remote.messages.voice_messages import RequestVoiceState
from bot.remote.room_side.remote_gateway import QUIET_S, renewal_within_s
from bot.remote.room_side.remote_place import RemotePlace
from bot.texts.text import in_language, sentence_of
from tests.bot.remote.peers import linked, until
from tests.bot.remote.room_side.test_remote_place import FakeMainGateway
from tests.fakes.clock import FakeClock
from tests.fakes.place import FakePlace
from voice.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.link.message_link import MessageLink
    from bot.remote.room_side.remote_gateway import RemoteMainGateway
    from tests.bot.remote.peers import Ends

STATE = {"channel_id": "20", "session_id": "s", "user_id": "99"}
SERVER = {"guild_id": "10", "token": "t", "endpoint": "voice.example:443"}
# Nobody opens a websocket to a voice server here.
SESSION: Any = object()


class Told:
    """A voice connection that records Discord's answers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    async def on_voice_state_update(self, data: Any, /) -> None:
        """Record it."""
        self.told.append(("state", data))

    async def on_voice_server_update(self, data: Any, /) -> None:
        """Record it."""
        self.told.append(("server", data))


class Process:
    """The gateway process, with one channel of Discord. `claim`: the newest one in the database; None: it is away."""

    def __init__(self) -> None:
        self.discord = FakeMainGateway()
        self.claim: int | None = None
        self.database_answers = asyncio.Event()
        self.database_answers.set()
        self.places = ServedPlaces(lambda _: self.discord, self.newest_claim, clock=FakeClock())

    async def newest_claim(self, _: int) -> int | None:
        """Return what the database says."""
        await self.database_answers.wait()
        return self.claim

    async def answers(self, kind: str, data: Any) -> None:
        """Let Discord answer."""
        assert self.discord.updates is not None
        if kind == "state":
            await self.discord.updates.on_voice_state_update(data)
        else:
            await self.discord.updates.on_voice_server_update(data)


class Room:
    """A room's end."""

    def __init__(self, ends: Ends, place: RemotePlace) -> None:
        self.ends = ends
        self.place = place
        self.connection = Told()

    @property
    def gateway(self) -> RemoteMainGateway:
        """Return the room's gateway."""
        return self.place._gateway


@asynccontextmanager
async def room(*processes: Process, claim: int, quiet_s: float = 0.0) -> AsyncIterator[Room]:
    """Yield a room's process whose voice connection is served: by the first process, and by the next one whenever its
    link is opened again, if there is one.
    """
    serving = iter(processes)
    now = [next(serving)]
    made: list[RemotePlace] = []
    fake = FakePlace()

    def serve(link: MessageLink) -> None:
        block = ExitStack()
        block.enter_context(now[0].places.serve(fake, link))
        link.on_closed(block.close)
        now[0] = next(serving, now[0])

    async with linked(gateway=serve, room=lambda link: made.append(RemotePlace(link))) as ends:
        (place,) = made
        await place.begin(10, 20)
        async with place._gateway.serving(SESSION, claim=claim, is_owner=None, quiet_s=lambda: quiet_s):
            yield Room(ends, place)


async def joined(process: Process, here: Room) -> None:
    """Let the room come in as the first one does."""
    await here.gateway.attach(here.connection)
    assert here.gateway.attached
    assert await here.gateway.request(20)
    await process.answers("state", STATE)
    await process.answers("server", SERVER)
    await until(lambda: len(here.connection.told) == 2)
    assert here.connection.told == [("state", STATE), ("server", SERVER)]


@pytest.mark.asyncio
async def test_the_next_process_gets_the_credentials() -> None:
    """It asks Discord nothing, once. The bot is in the channel, and its connection was not said goodbye to."""
    process = Process()
    async with room(process, claim=1) as first:
        await joined(process, first)
    async with room(process, claim=2) as second:
        await second.gateway.attach(second.connection)
        assert await second.gateway.request(20)
        assert second.connection.told == [("state", STATE), ("server", SERVER)]
        assert process.discord.asked == [20]
        assert second.gateway.took_over
        assert await second.gateway.request(20)
        assert process.discord.asked == [20, 20]
        assert not second.gateway.took_over


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("state", {**STATE, "channel_id": None}),
        ("state", {**STATE, "channel_id": "21"}),
        ("server", {**SERVER, "endpoint": None}),
    ],
)
@pytest.mark.asyncio
async def test_credentials_that_let_nobody_in_are_not_given(kind: str, data: Any) -> None:
    """Somebody took the bot out of the channel or moved it, or its voice server is gone."""
    process = Process()
    async with room(process, claim=1) as first:
        await joined(process, first)
        await process.answers(kind, data)
    async with room(process, claim=2) as second:
        await second.gateway.attach(second.connection)
        assert await second.gateway.request(20)
        assert process.discord.asked == [20, 20]
        assert second.connection.told == []


@pytest.mark.asyncio
async def test_a_room_that_another_gateway_process_has_keeps_the_bot() -> None:
    """Discord is asked for nothing, and the client forgets the connection, or it would leave when it is closed."""
    process = Process()
    async with room(process, claim=1) as first:
        await joined(process, first)
        await first.ends.drop()
    await process.places.leave_channel(10, taken_over=True)
    assert process.discord.asked == [20]
    assert not process.discord.attached


@pytest.mark.asyncio
async def test_nothing_is_left_of_a_room_that_has_left() -> None:
    """Its credentials are forgotten, and the next room comes in the usual way."""
    process = Process()
    async with room(process, claim=1) as first:
        await joined(process, first)
        assert await first.gateway.request(None)
        first.gateway.detach()
        await until(lambda: not process.discord.attached)
    async with room(process, claim=2) as second:
        await second.gateway.attach(second.connection)
        assert await second.gateway.request(20)
        assert process.discord.asked == [20, None, 20]
    await process.places.leave_channel(10, taken_over=False)
    assert process.discord.asked[3:] == [None]
    assert not process.discord.attached
    await process.places.leave_channel(10, taken_over=False)
    assert len(process.discord.asked) == 4


@pytest.mark.asyncio
async def test_a_new_main_session_makes_credentials_void() -> None:
    """Discord has dropped the connection, so its answers are of no use to the next process."""
    process = Process()
    async with room(process, claim=1) as first:
        await joined(process, first)
    process.discord.detach()
    async with room(process, claim=2) as second:
        await second.gateway.attach(second.connection)
        assert process.discord.attached
        assert await second.gateway.request(20)
        assert process.discord.asked == [20, 20]


@pytest.mark.asyncio
async def test_a_room_that_was_cut_off_is_told_what_it_missed() -> None:
    """Only that, and once. Its connection has gone on meanwhile."""
    process = Process()
    moved = {**SERVER, "endpoint": "other.example:443"}
    async with room(process, claim=1) as here:
        await joined(process, here)
        here.ends.gateway.close()
        await until(lambda: not here.ends.room.is_open)
        assert not here.gateway.is_open
        assert not here.gateway.attached
        assert not here.gateway.forgotten
        await process.answers("server", moved)
        await until(lambda: here.gateway.attached)
        await until(lambda: len(here.connection.told) > 2)
        assert here.connection.told[2:] == [("server", moved)]
        await here.ends.drop()
        await until(lambda: here.gateway.attached)
        await process.answers("state", STATE)
        await until(lambda: len(here.connection.told) > 3)
        assert here.connection.told[3:] == [("state", STATE)]
        assert process.discord.asked == [20]


@pytest.mark.asyncio
async def test_a_room_that_cannot_attach_again_makes_its_connection_anew() -> None:
    """Somebody has its server now, so the connection is told nothing any more and counts as forgotten."""
    process = Process()
    async with room(process, claim=1) as here:
        await joined(process, here)
        process.claim = 9
        process.places._gateways.of(10)._claim = 9
        await here.ends.drop()
        await until(lambda: here.gateway.forgotten)
        with pytest.raises(LinkError, match="Another process of this bot") as refused:
            await here.gateway.attach(here.connection)
        assert in_language(sentence_of(refused.value), "de").startswith("Ein anderer Prozess")


@pytest.mark.asyncio
async def test_a_link_that_is_lost_again_at_once_does_not_end_the_connection() -> None:
    """It was lost before the room was attached again; with the next one it is."""
    process = Process()
    async with room(process, claim=1) as here:
        await joined(process, here)
        served = process.places._gateways.of(10)
        attach, dropped = served._attach, asyncio.Event()

        async def lost(link: MessageLink, *_: object) -> Any:
            link.close()
            dropped.set()
            await asyncio.Event().wait()

        served._attach = lost  # type: ignore[assignment]
        here.ends.gateway.close()
        await dropped.wait()
        served._attach = attach  # type: ignore[method-assign]
        await until(lambda: here.gateway.attached)
        assert not here.gateway.forgotten
        assert process.discord.asked == [20]


@pytest.mark.asyncio
async def test_an_older_claim_asks_nothing() -> None:
    """Neither to come in, nor to leave."""
    process = Process()
    async with room(process, claim=5) as newer, room(process, claim=4) as older:
        await joined(process, newer)
        with pytest.raises(LinkError, match="Another process of this bot"):
            await older.gateway.attach(older.connection)
        assert await older.gateway.request(None) is False
        assert await older.gateway.request(20) is False
        older.gateway.detach()
        await process.answers("state", STATE)
        await until(lambda: len(newer.connection.told) == 3)
        assert process.discord.asked == [20]


@pytest.mark.asyncio
async def test_a_claim_that_nobody_was_given_asks_nothing_and_shuts_nobody_out() -> None:
    """A machine that somebody has taken over makes one up. The server's next room comes in all the same."""
    process = Process()
    process.claim = 1
    async with room(process, claim=2**62) as made_up:
        with pytest.raises(LinkError, match="Another process of this bot"):
            await made_up.gateway.attach(made_up.connection)
        assert await made_up.gateway.request(20) is False
        assert process.discord.asked == []
    process.claim = 2
    async with room(process, claim=2) as honest:
        await joined(process, honest)


@pytest.mark.asyncio
async def test_a_claim_that_the_database_could_not_check_is_checked_before_it_shuts_somebody_out() -> None:
    """While the database is away the highest claim has the server, whoever has told it."""
    process = Process()
    async with room(process, claim=2**62) as made_up:
        await made_up.gateway.attach(made_up.connection)
        async with room(process, claim=2) as honest:
            with pytest.raises(LinkError, match="Another process of this bot"):
                await honest.gateway.attach(honest.connection)
            process.claim = 2
            await joined(process, honest)
        assert await made_up.gateway.request(None) is False
    assert process.discord.asked == [20]


@pytest.mark.asyncio
async def test_a_database_that_hangs_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room waits for the bot's voice for so long only."""
    monkeypatch.setattr("bot.remote.gateway_side.served_gateway.CLAIM_WITHIN_S", 0.0)
    process = Process()
    process.database_answers.clear()
    async with room(process, claim=1) as here:
        await joined(process, here)


@pytest.mark.asyncio
async def test_a_room_whose_claim_is_stale_asks_nobody() -> None:
    """What its own process knows comes first."""
    process = Process()

    async def stale() -> bool:
        return False

    async with room(process, claim=1) as here:
        await joined(process, here)
        here.gateway._is_owner = stale
        assert await here.gateway.request(None) is False
        assert process.discord.asked == [20]


@pytest.mark.asyncio
async def test_without_a_link_nothing_can_be_asked() -> None:
    """Joining fails with a sentence, leaving asks nobody, and an unknown answer counts as being in the channel."""
    process = Process()
    async with room(process, claim=1) as here:
        await joined(process, here)
    with pytest.raises(LinkError, match="not there at the moment") as failed:
        await here.gateway.request(20)
    assert failed.value.retryable
    assert await here.gateway.request(None) is False
    process.discord.inside = False
    assert await here.gateway.is_in_channel()


@pytest.mark.asyncio
async def test_a_broken_main_gateway_is_told() -> None:
    """Discord's connection may break while it is asked."""
    process = Process()

    async def broken(*_: Any, **__: Any) -> bool:
        raise ConnectionResetError

    async with room(process, claim=1) as here:
        await here.gateway.attach(here.connection)
        process.discord.request = broken  # type: ignore[method-assign]
        with pytest.raises(LinkError, match="Discord cannot be reached"):
            await here.gateway.request(20)


@pytest.mark.asyncio
async def test_the_facts_of_a_connection_are_told() -> None:
    """Whether the bot may enter, and whether Discord is there; a question is answered by Discord."""
    process = Process()
    async with room(process, claim=1) as here:
        gateway = here.gateway
        assert (gateway.user_id, gateway.channel_name, gateway.guild_name) == (99, "Lounge", "The Lantern Society")
        assert (gateway.bitrate_bps, gateway.is_open, gateway.guild_id, gateway.channel_id) == (64_000, True, 10, 20)
        gateway.check_entry()
        process.discord.refused = LinkError("The voice channel {channel} is gone.", channel="Lounge", retryable=False)
        process.discord.is_open = process.discord.inside = False
        process.places.on_change(10, at_once=True)
        assert not await gateway.is_in_channel()
        assert not gateway.is_open
        with pytest.raises(LinkError, match="Lounge is gone") as refused:
            gateway.check_entry()
        assert not refused.value.retryable
        with pytest.raises(LinkError, match="Lounge is gone"):
            await gateway.attach(here.connection)


@pytest.mark.asyncio
async def test_a_room_goes_on_with_the_next_gateway_process_and_brings_its_credentials() -> None:
    """It is told nothing that it knows, and Discord is asked nothing. If the room's process is killed then, the next
    one comes in with what the room has brought.
    """
    process, again = Process(), Process()
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        await again.answers("server", {**SERVER, "token": "u"})
        await until(lambda: len(here.connection.told) > 2)
        assert here.connection.told[2:] == [("server", {**SERVER, "token": "u"})]
    async with room(again, claim=2) as second:
        await second.gateway.attach(second.connection)
        assert await second.gateway.request(20)
        assert second.connection.told == [("state", STATE), ("server", {**SERVER, "token": "u"})]
    assert again.discord.asked == []


@pytest.mark.asyncio
async def test_a_voice_session_that_ends_with_the_main_session_before_is_renewed() -> None:
    """Discord takes the bot out once it gives up the main session of the killed process. The room only hears of another
    voice server. The next time it is somebody who takes the bot out.
    """
    process, again = Process(), Process()
    gone, renewed = {**STATE, "channel_id": None}, {**STATE, "session_id": "t"}
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        await again.answers("state", gone)
        assert again.discord.asked == [20]
        await again.answers("state", renewed)
        await again.answers("state", {**renewed, "channel_id": None})
        await until(lambda: len(here.connection.told) > 3)
        assert here.connection.told[2:] == [("state", renewed), ("state", {**renewed, "channel_id": None})]
        assert again.discord.asked == [20]


@pytest.mark.parametrize("outcome", [False, ConnectionResetError(), RuntimeError(), asyncio.CancelledError()])
@pytest.mark.parametrize("by_room", [False, True])
@pytest.mark.asyncio
async def test_a_voice_session_is_renewed_after_a_request_that_came_to_nothing(outcome: Any, *, by_room: bool) -> None:
    """Whoever asked, and however it failed. Otherwise Discord's answer would be waited for that never comes, and the
    next end of the voice session would not be noticed.
    """
    process, again = Process(), Process()
    gone = {**STATE, "channel_id": None}
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        request = again.discord.request
        failing = AsyncMock(side_effect=[outcome])
        again.discord.request = failing  # type: ignore[method-assign]
        with suppress(RuntimeError, asyncio.CancelledError):
            if by_room:
                asked = RequestVoiceState(1, 20, self_mute=False, self_deaf=False)
                with suppress(LinkError):
                    await again.places._gateways.of(10)._request(here.ends.gateway, again.discord, asked)
            else:
                await again.answers("state", gone)
        assert failing.await_count == 1
        again.discord.request = request  # type: ignore[method-assign]
        await again.answers("state", gone)
        assert again.discord.asked == [20]


@pytest.mark.asyncio
async def test_a_voice_session_that_the_room_has_asked_for_anew_belongs_to_the_new_process() -> None:
    """So nobody but a person takes the bot out."""
    process, again = Process(), Process()
    renewed = {**STATE, "session_id": "t"}
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        assert await here.gateway.request(20)
        await again.answers("state", renewed)
        await again.answers("state", {**renewed, "channel_id": None})
        await until(lambda: len(here.connection.told) > 3)
        assert here.connection.told[2:] == [("state", renewed), ("state", {**renewed, "channel_id": None})]
        assert again.discord.asked == [20]


@pytest.mark.asyncio
async def test_a_voice_session_may_end_just_before_discord_answers_the_request_for_the_next() -> None:
    """Then nobody has taken the bot out: the room does not hear of it, and Discord is not asked twice."""
    process, again = Process(), Process()
    renewed = {**STATE, "session_id": "t"}
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        assert await here.gateway.request(20)
        await again.answers("state", {**STATE, "channel_id": None})
        await again.answers("state", renewed)
        await until(lambda: len(here.connection.told) > 2)
        assert here.connection.told[2:] == [("state", renewed)]
        assert again.discord.asked == [20]


@pytest.mark.asyncio
async def test_the_voice_session_is_renewed_at_a_pause_in_speech() -> None:
    """Then Discord has nothing to end with the main session of the killed process."""
    process, again = Process(), Process()
    async with room(process, again, claim=1, quiet_s=QUIET_S) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: again.discord.asked == [20])
        await again.answers("state", {**STATE, "session_id": "t"})
        await until(lambda: len(here.connection.told) > 2)
        assert here.connection.told[2:] == [("state", {**STATE, "session_id": "t"})]


@pytest.mark.parametrize(("away_s", "within_s"), [(0.0, 25.0), (9.0, 16.0), (17.0, 8.0), (60.0, 8.0)])
def test_a_pause_is_waited_for_while_discord_is_likely_to_keep_the_former_main_session(
    away_s: float, within_s: float
) -> None:
    """And for some seconds where the next gateway process came late."""
    assert renewal_within_s(away_s) == within_s


@pytest.mark.asyncio
async def test_a_voice_session_that_discord_has_ended_is_not_renewed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody stops speaking; Discord is quicker than the time for that."""
    process, again = Process(), Process()
    needed_s = math.inf
    monkeypatch.setattr("bot.remote.room_side.remote_gateway.pause_needed_s", lambda *_, **__: needed_s)
    async with room(process, again, claim=1) as here:
        await joined(process, here)
        await here.ends.drop()
        await until(lambda: here.gateway.attached and again.discord.attached)
        await again.answers("state", {**STATE, "channel_id": None})
        await again.answers("state", {**STATE, "session_id": "t"})
        await until(lambda: len(here.connection.told) > 2)
        needed_s = 0.0
        await until(lambda: not here.gateway._tasks)
        assert again.discord.asked == [20]
