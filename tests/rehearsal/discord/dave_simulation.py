"""A simulated voice channel in memory: the DAVE delivery service and davey clients, which receive messages in any
order.

Each client has an inbox and an outbox. Both are ordered, like a websocket. A seeded random generator decides which
client moves next. Nothing sleeps: timers are kept in a list.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import davey

from rehearsal.discord.dave.delivery import DeliveryService
from rehearsal.discord.dave.group import (
    DaveOpcode,
    DeliveryEffect,
    SendBinary,
    SendJson,
    StartTimer,
)

CHANNEL = 42
_MAX_MOVES = 20_000


@dataclass
class Client:
    """A client that behaves like discord.py: it processes its messages in order."""

    user_id: int
    session: Any
    inbox: deque[SendBinary | SendJson] = field(default_factory=deque)
    outbox: deque[tuple[DaveOpcode, Any]] = field(default_factory=deque)
    # How many proposals this client could not process. One is enough to kill an unmodified discord.py client.
    refused_proposals: int = 0

    def offer(self) -> None:
        """Send a key package."""
        self.outbox.append((DaveOpcode.KEY_PACKAGE, bytes(self.session.get_serialized_key_package())))

    def start_anew(self) -> None:
        """Forget the group and send a new key package."""
        self.session.reinit(1, self.user_id, CHANNEL)
        self.offer()

    def report(self, transition_id: int) -> None:
        """Report an unusable message (op 31) and join with a new key package."""
        self.outbox.append((DaveOpcode.INVALID_COMMIT_WELCOME, transition_id))
        self.start_anew()

    def receive(self) -> None:
        """Process the next message of the inbox."""
        message = self.inbox.popleft()
        if isinstance(message, SendJson):
            self._json(message)
        elif message.opcode == DaveOpcode.EXTERNAL_SENDER:
            self.session.set_external_sender(message.body)
        elif message.opcode == DaveOpcode.PROPOSALS:
            self._proposals(message.body)
        else:
            self._land(message)

    def _json(self, message: SendJson) -> None:
        if message.opcode == DaveOpcode.PREPARE_EPOCH:
            self.start_anew()
        elif message.opcode == DaveOpcode.PREPARE_TRANSITION and message.data["transition_id"]:
            self.outbox.append((DaveOpcode.READY_FOR_TRANSITION, message.data["transition_id"]))

    def _proposals(self, body: bytes) -> None:
        kind = davey.ProposalsOperationType.append if body[0] == 0 else davey.ProposalsOperationType.revoke
        try:
            result = self.session.process_proposals(kind, body[1:])
        except ValueError:
            self.refused_proposals += 1
            return
        if result is not None:
            self.outbox.append((DaveOpcode.COMMIT_WELCOME, bytes(result.commit) + bytes(result.welcome or b"")))

    def _land(self, message: SendBinary) -> None:
        transition_id = int.from_bytes(message.body[:2], "big")
        process = self.session.process_commit
        if message.opcode == DaveOpcode.WELCOME:
            process = self.session.process_welcome
        try:
            process(message.body[2:])
        except ValueError:
            self.report(transition_id)
            return
        if transition_id:
            self.outbox.append((DaveOpcode.READY_FOR_TRANSITION, transition_id))


class DaveChannel:
    """The delivery service and its clients."""

    def __init__(self, seed: int = 0) -> None:
        self.service = DeliveryService(CHANNEL)
        self.clients: dict[int, Client] = {}
        self.timers: list[StartTimer] = []
        self.sent: list[SendBinary | SendJson] = []
        self.chance = random.Random(seed)

    def apply(self, effects: list[DeliveryEffect]) -> None:
        """Put messages into inboxes and timers into the list."""
        for effect in effects:
            if isinstance(effect, SendBinary | SendJson):
                self.sent.append(effect)
                if effect.user_id in self.clients:
                    self.clients[effect.user_id].inbox.append(effect)
            else:
                self.timers.append(effect)

    def join(self, user_id: int) -> Client:
        """Connect a client. It sends its key package at once."""
        client = self.clients[user_id] = Client(user_id, davey.DaveSession(1, user_id, CHANNEL))
        self.apply(self.service.connect(user_id))
        client.offer()
        return client

    def leave(self, user_id: int) -> None:
        """Disconnect a client. Messages in its outbox are lost."""
        del self.clients[user_id]
        self.apply(self.service.disconnect(user_id))

    def fire(self) -> None:
        """Fire the oldest timer."""
        self.apply(self.timers.pop(0).then())

    def move(self) -> bool:
        """Deliver one message, chosen at random. Returns False when no message is waiting."""
        moves = [(client, True) for client in self.clients.values() if client.inbox]
        moves += [(client, False) for client in self.clients.values() if client.outbox]
        if not moves:
            return False
        client, incoming = self.chance.choice(moves)
        if incoming:
            client.receive()
        else:
            self.serve(client)
        return True

    def settle(self, *, timers: bool = True) -> None:
        """Deliver all messages, then fire the timers, until nothing is left."""
        for _ in range(_MAX_MOVES):
            if self.move():
                continue
            if not timers or not self.timers:
                return
            self.fire()
        raise AssertionError("the channel never settles")

    def agreed(self) -> bool:
        """Return whether all clients share one epoch's secret and the service knows their leaf indexes."""
        sessions = {user: client.session for user, client in self.clients.items()}
        secrets = {session.get_epoch_authenticator() for session in sessions.values()}
        leaves = {user: session.own_leaf_index for user, session in sessions.items()}
        epochs = {session.epoch for session in sessions.values()}
        return (
            len(secrets) == 1
            and None not in secrets
            and self.service.leaves == leaves
            and epochs == {self.service.epoch}
        )

    def serve(self, client: Client) -> None:
        opcode, content = client.outbox.popleft()
        if opcode is DaveOpcode.KEY_PACKAGE:
            effects = self.service.key_package(client.user_id, content)
        elif opcode is DaveOpcode.COMMIT_WELCOME:
            effects = self.service.commit(client.user_id, content)
        elif opcode is DaveOpcode.READY_FOR_TRANSITION:
            effects = self.service.transition_ready(client.user_id, content)
        else:
            effects = self.service.invalid_commit(client.user_id)
        self.apply(effects)
