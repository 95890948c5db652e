"""What a DAVE delivery service asks its voice channel to do: messages to clients, and timers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias


class DaveOpcode(IntEnum):
    """The voice gateway's DAVE opcodes (protocol.md, "Voice Gateway Opcodes")."""

    PREPARE_TRANSITION = 21
    EXECUTE_TRANSITION = 22
    READY_FOR_TRANSITION = 23
    PREPARE_EPOCH = 24
    EXTERNAL_SENDER = 25
    KEY_PACKAGE = 26
    PROPOSALS = 27
    COMMIT_WELCOME = 28
    ANNOUNCE_COMMIT = 29
    WELCOME = 30
    INVALID_COMMIT_WELCOME = 31


@dataclass(frozen=True, slots=True)
class SendBinary:
    """Send a binary message; the connection adds its sequence number."""

    user_id: int
    opcode: int
    body: bytes


@dataclass(frozen=True, slots=True)
class SendJson:
    """Send a JSON message."""

    user_id: int
    opcode: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StartTransitionTimer:
    """Call `transition_timed_out(transition_id)` after `delay_s`."""

    transition_id: int
    delay_s: float


@dataclass(frozen=True, slots=True)
class StartCommitTimer:
    """Call `commit_timed_out(batch)` after `delay_s`."""

    batch: int
    delay_s: float


DeliveryEffect: TypeAlias = SendBinary | SendJson | StartTransitionTimer | StartCommitTimer
