"""The operator is told once of what begins and of what is over, whatever their address does."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from bot.health import Actor, FaultKind, Health, HealthFault
from bot.monitoring.service_checks import LOOK_EVERY_S, MOST_WAITING, SEND_AGAIN_S, TOLD_AFTER_S, Alarms, post_message
from bot.room.rooms import DRAINING
from bot.texts.text import Text
from tests.fakes.clock import FakeClock

FULL = HealthFault(FaultKind.DISK, Text("The disk is full."))
MUTED = HealthFault(FaultKind.ROOM_MUTE, Text("I am muted."), acts=Actor.MEMBERS)
AWAY = HealthFault(FaultKind.DISCORD, Text("Discord is away."), acts=Actor.NOBODY)
SOON, LATE = TOLD_AFTER_S[Actor.OPERATOR] + LOOK_EVERY_S, TOLD_AFTER_S[Actor.NOBODY] + LOOK_EVERY_S


class Operator:
    """A process with faults (`found`) and its operator, whose address takes messages or does not (`takes`)."""

    def __init__(self) -> None:
        self.clock, self.found, self.takes = FakeClock(), list[HealthFault](), True
        self.got: list[str] = []
        health = Health(self.clock)
        health.started()
        health.add_check(lambda: self.found)
        self.alarms = Alarms(health, self.clock, self._send)

    async def _send(self, message: str) -> bool:
        self.got += [message] * self.takes
        return self.takes

    async def wait(self, seconds: float) -> list[str]:
        """Let time pass, with a look every few seconds; return the messages since."""
        begun = len(self.got)
        for _ in range(1 + round(seconds / LOOK_EVERY_S)):
            await self.alarms.look()
            self.clock.advance(LOOK_EVERY_S)
        return self.got[begun:]


@pytest.fixture
def operator() -> Operator:
    """An operator who was told nothing."""
    return Operator()


@pytest.mark.parametrize(
    ("fault", "after_s", "told"), [(FULL, SOON, True), (MUTED, LATE, False), (AWAY, SOON, False), (AWAY, LATE, True)]
)
async def test_what_the_operator_must_know_is_told_when_it_begins_and_ends(
    operator: Operator, fault: HealthFault, after_s: float, *, told: bool
) -> None:
    """Once each; nothing of what is over soon, and of what the members of a server mend."""
    operator.found = [fault]
    assert await operator.wait(LOOK_EVERY_S) == []
    assert [fault.what in each for each in await operator.wait(after_s)] == [True] * told
    assert await operator.wait(after_s) == []
    operator.found = []
    assert [fault.what in each for each in await operator.wait(after_s)] == [True] * told


async def test_the_end_of_the_process_is_not_the_end_of_a_fault(operator: Operator) -> None:
    """While the bot ends, that is the only fault there is."""
    operator.found = [FULL]
    assert len(await operator.wait(SOON)) == 1
    operator.found = [FULL, DRAINING]
    assert await operator.wait(SOON) == []


async def test_parts_that_fail_alike_are_told_apart(operator: Operator) -> None:
    """They have one sentence with their names. A number in it may change."""
    for free, parts in enumerate((["voice"], ["voice", "model"], ["model"])):
        operator.found = [
            HealthFault(FaultKind.MODELS, Text("My {part} fails, {free} left.", part=part, free=free)) for part in parts
        ]
        told = "".join(await operator.wait(SOON))
        assert ["voice" in told, "model" in told] == [free != 1, free == 1]


async def test_what_the_address_does_not_take_is_sent_later(operator: Operator) -> None:
    """In one message, with a pause between the tries; of very much the oldest goes."""
    operator.takes = False
    names = [f"Part {number} fails." for number in range(MOST_WAITING + 3)]
    since = operator.clock.monotonic() - 2 * SOON
    operator.found = [HealthFault(FaultKind.TOOLS, Text(each), since=since + at) for at, each in enumerate(names)]
    await operator.wait(SOON)
    operator.takes = True
    assert await operator.wait(LOOK_EVERY_S) == []
    (message,) = await operator.wait(SEND_AGAIN_S)
    assert (names[-1] in message, names[0] in message) == (True, False)


async def _take(request: web.Request) -> web.Response:
    body = await request.json()
    return web.Response(status=204 if body["content"] == body["text"] == "The disk is full." else 400)


async def test_a_webhook_on_this_machine_takes_a_message_or_is_tried_again() -> None:
    """One that answers with an error or is gone has not taken it."""
    app = web.Application()
    app.router.add_post("/hook", _take)
    async with TestServer(app) as server:
        address = SecretStr(str(server.make_url("/hook")))
        assert await post_message(address, "The disk is full.")
        assert not await post_message(address, "Something else.")
    assert not await post_message(address, "The disk is full.")
