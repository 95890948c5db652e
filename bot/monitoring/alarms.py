"""Tells the operator which faults begin and which are over: in the log, and by a message to the address of
`monitoring.alarm_url`. A fault has no name and no word of anybody (`bot.health`), so a message has none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import BotError
from bot.health import Actor, FaultKind, Health, HealthFault, ToldFaults, without_repeats
from bot.outgoing_address import DeliveryError, post
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pydantic import SecretStr

    from bot.clock import Clock

log = structlog.get_logger()

LOOK_EVERY_S: Final = 5.0
# A fault for the operator that is over sooner is none. Most that pass by themselves do so within minutes, like a lost
# connection. Faults for the members of a server are none of the operator's.
TOLD_AFTER_S: Final = {Actor.OPERATOR: 30.0, Actor.NOBODY: 900.0}
# What the address did not take is sent again, with what has come since. Of more sentences the oldest are dropped.
SEND_AGAIN_S: Final = 60.0
MOST_WAITING: Final = 20
SEND_TIMEOUT_S: Final = 10.0
# Discord takes 2,000.
MESSAGE_CHARS: Final = 1_900


def alarming(faults: Iterable[HealthFault], now: float) -> list[HealthFault]:
    """Return the faults that the operator is told, with what they are told afterwards. `now`: monotonic seconds."""
    return [
        replace(fault, over=Text("This problem is over: {what}", what=fault.what))
        for fault in without_repeats(faults)
        if fault.since is not None and now - fault.since >= TOLD_AFTER_S.get(fault.acts, float("inf"))
    ]


class Alarms:
    """The alarms of one process. `send`: sends a message, and returns whether it was taken; None: there is no address.

    *Ownership*: the bot runs `run` in a task.
    """

    def __init__(self, health: Health, clock: Clock, send: Callable[[str], Awaitable[bool]] | None) -> None:
        self._health = health
        self._clock = clock
        self._send = send
        self._told = ToldFaults()
        self._waiting: list[str] = []
        self._send_at = float("-inf")

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Tell once what has begun and what is over."""
        now, faults = self._health.now(), self._health.faults()
        if any(fault.kind is FaultKind.DRAINING for fault in faults):
            # It hides the others, which are not over.
            return
        for sentence in self._told.news(alarming(faults, now), now):
            log.warning("alarm_told", problem=BotError(sentence))
            self._waiting = [*self._waiting, str(sentence)][-MOST_WAITING:]
        if self._send is None:
            self._waiting.clear()
        elif self._waiting and now >= self._send_at:
            if await self._send("\n".join(self._waiting)[:MESSAGE_CHARS]):
                self._waiting.clear()
            else:
                self._send_at = now + SEND_AGAIN_S


async def post_message(address: SecretStr, message: str) -> bool:
    """Send a message to a webhook: Discord reads `content`, Slack and Mattermost `text`. Return whether it was taken.
    Never raises.
    """
    body = json.dumps({"content": message, "text": message, "allowed_mentions": {"parse": []}})
    try:
        # The operator may mean their own network.
        await post(address.get_secret_value(), body.encode(), {}, private=True, within_s=SEND_TIMEOUT_S)
    except DeliveryError as error:
        log.warning("alarm_not_sent", problem=error, remedy="Check monitoring.alarm_url. It is sent again in a minute.")
        return False
    return True
