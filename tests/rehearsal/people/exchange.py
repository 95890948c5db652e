"""Two or more DAVE members and the local Discord's delivery service, connected in memory.

`settle` delivers messages in order until none is left. Before that, a test can look at a transition that is announced
and not executed yet.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rehearsal.discord.dave.delivery import DeliveryService
from rehearsal.discord.dave.effects import DaveOpcode, SendBinary, SendJson
from rehearsal.people.dave import DaveMember, JsonMessage

if TYPE_CHECKING:
    from rehearsal.discord.dave.effects import DeliveryEffect
    from rehearsal.people.dave import GatewayMessage

CHANNEL = 600
# More messages than any test needs. Reaching this number means an endless exchange.
MOST_MESSAGES = 500


class Exchange:
    """A voice channel without sockets and without transport encryption."""

    def __init__(self) -> None:
        self.service = DeliveryService(CHANNEL)
        self.parties: dict[int, DaveMember] = {}
        self._queue: deque[tuple[int, DeliveryEffect]] = deque()
        # Delivered messages: (user id, opcode).
        self.delivered: list[tuple[int, int]] = []

    def join(self, user_id: int) -> DaveMember:
        """Connect a new member and deliver all messages."""
        party = self.parties[user_id] = DaveMember(user_id=user_id, channel_id=CHANNEL)
        self.take(self.service.connect(user_id))
        self.said(user_id, party.begin(self.service.version))
        self.settle()
        return party

    def leave(self, user_id: int) -> None:
        """Disconnect a member and deliver all messages."""
        del self.parties[user_id]
        self.take(self.service.disconnect(user_id))
        self.settle()

    def take(self, effects: list[DeliveryEffect]) -> None:
        """Queue the messages that the delivery service sends. Timers are not run."""
        self._queue.extend((effect.user_id, effect) for effect in effects if isinstance(effect, SendBinary | SendJson))

    def said(self, user_id: int, messages: list[GatewayMessage]) -> None:
        """Pass a member's answers to the delivery service."""
        for message in messages:
            if isinstance(message, JsonMessage):
                if message.op == DaveOpcode.READY_FOR_TRANSITION:
                    self.take(self.service.transition_ready(user_id, message.body["transition_id"]))
                else:
                    self.take(self.service.invalid_commit(user_id))
            elif message.op == DaveOpcode.KEY_PACKAGE:
                self.take(self.service.key_package(user_id, message.body))
            else:
                self.take(self.service.commit(user_id, message.body))

    def settle(self, *, damage: int | None = None) -> None:
        """Deliver messages until none is left. `damage`: the opcode whose next message is cut in half on its way."""
        while self._queue:
            user_id, effect = self._queue.popleft()
            party = self.parties.get(user_id)
            if party is None or not isinstance(effect, SendBinary | SendJson):
                continue
            self.delivered.append((user_id, effect.opcode))
            assert len(self.delivered) < MOST_MESSAGES, "the parties and the service talk in circles"
            if isinstance(effect, SendJson):
                answers = party.handle_json(effect.opcode, effect.data)
            else:
                body = effect.body
                if effect.opcode == damage:
                    body, damage = body[: len(body) // 2], None
                answers = party.handle_binary(effect.opcode, body, self.parties)
            self.said(user_id, answers)
