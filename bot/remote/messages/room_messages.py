"""What the gateway process and a room's process ask and tell each other about the room itself.

What the room needs of its voice channel is in `place_messages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, NonNegativeFloat

from bot.channel.port import ListenRequest, MembershipChange, Person
from bot.guild import GuildChoice, Silence
from bot.health import FaultKind
from bot.participation.costs import Cost
from bot.participation.unrecorded_speech import UnrecordedUtterance
from bot.remote.messages.frames import Notice, Request
from bot.remote.messages.participation_state import ParticipationState
from bot.remote.messages.wire_error import WireError
from bot.remote.messages.wire_text import WireText
from compaction.model import Mode

# More of anything than a reply uses.
_MOST_COST = 1e9


def _plausible(cost: Cost) -> Cost:
    if not all(0 <= amount <= _MOST_COST for amount in (cost.calls, cost.tokens, cost.spoken_s)):
        raise ValueError("a cost that no reply has")
    return cost


# A cost as another process tells it: one below zero would give a server back what it has used of its hour.
ReportedCost = Annotated[Cost, AfterValidator(_plausible)]
# Each with its age in seconds. One of the future would count for longer than an hour.
ReportedCosts = tuple[tuple[NonNegativeFloat, ReportedCost], ...]

# -- what a room is told before it runs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenRoom(Request[None]):
    """Run this room, once. Answered when it begins; `RoomOver` comes when it has ended.

    `servers`: what the managers have chosen, as `bot.server_settings.to_json` writes it. `costs`: of the last hour,
    each with its age in seconds. `ran_s_ago`: when a room of the session in `participation` was last known to run.
    `claims_after`: the newest claim of the server now; None: the database did not say, so
    the room's process asks. `opened_by`: see `RoomIdentity`. `unrecorded`: what the session's last room has heard and
    not recorded.
    """

    guild_id: int
    channel_id: int
    listen: ListenRequest | None
    participation: ParticipationState
    choice: GuildChoice
    servers: str
    costs: ReportedCosts
    claims_after: int | None
    ran_s_ago: float | None = None
    opened_by: str = ""
    unrecorded: tuple[UnrecordedUtterance, ...] = ()


@dataclass(frozen=True, slots=True)
class NoMoreRooms(Notice):
    """This process has had its last room, so this seat waits for none."""


# -- what a room is asked when its gateway process was started again --------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoomReport:
    """What only the room knows, because it went on without a gateway process.

    `participation`: as it is in effect there. `unsaved_silence_by`: who asked aloud for the silence in it, if that was
    not stored; 0: nobody. `costs`: as in `OpenRoom`. `members`: who was in the channel when the link was lost.
    """

    session_id: str
    listens_only: bool
    participation: ParticipationState
    unsaved_silence_by: int
    costs: ReportedCosts
    members: tuple[Person, ...]
    shows_listening: bool


@dataclass(frozen=True, slots=True)
class ReportRoom(Request[RoomReport]):
    """Raises `SetupError` if no room is open."""


# -- what a room is told while it runs --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeOver(Request[None]):
    """Apply what somebody has changed; answered once it is in effect.

    `stops_speaking`: stop the reply in progress. `opted_out`, `forgetting`: who has just opted out, or has themselves
    forgotten. `forgotten`: words that the room may still use are deleted.
    """

    participation: ParticipationState
    stops_speaking: bool = False
    opted_out: tuple[int, ...] = ()
    forgetting: tuple[int, ...] = ()
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class ReadMemoryAgain(Request[None]):
    """Take over what was deleted in the store."""


@dataclass(frozen=True, slots=True)
class StoreWaiting(Request[None]):
    """Store what the store has refused so far, because somebody wants their words deleted. Raises `StoreError` if it
    refuses again.
    """


@dataclass(frozen=True, slots=True)
class ChoiceChanged(Notice):
    """The server has chosen another memory, persona, or when the bot speaks."""

    choice: GuildChoice


@dataclass(frozen=True, slots=True)
class ServersChanged(Notice):
    """The server's managers have changed its settings. `servers`: as in `OpenRoom`."""

    servers: str


@dataclass(frozen=True, slots=True)
class MemberMoved(Notice):
    """Somebody came into the channel or left it."""

    change: MembershipChange


@dataclass(frozen=True, slots=True)
class CloseRoom(Notice):
    """End in order."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlaySample(Request[WireText | None]):
    """Say the sample of this voice; answered with the reason why it was not said."""

    voice: str


# -- what a room tells ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionBegun(Notice):
    """The session is open, and nobody is heard yet."""

    session_id: str
    listens_only: bool


@dataclass(frozen=True, slots=True)
class RoomOver(Request[None]):
    """The room has ended, in order or with an error. `left_session_open`: see `SupervisedRoom`."""

    reason: str
    error: WireError | None = None
    left_session_open: bool = False


@dataclass(frozen=True, slots=True)
class RoomLook(Notice):
    """What people and monitoring may ask of the room. `open`: it receives the channel's sound. `faults`: the parts of
    each `HealthFault`. `forgotten`: who has had themselves forgotten in this session. `ending`: see `SupervisedRoom`.
    """

    open: bool
    status: WireText
    faults: tuple[tuple[FaultKind, str], ...]
    forgotten: frozenset[int] = frozenset()
    ending: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryLook(Notice):
    """What the dashboard shows of the session's memory. `window_from`: the first turn that is not summarised."""

    mode: Mode
    total_turns: int
    cursor: int
    window_from: int
    unfolded: int
    summary: str | None
    external_changes: int


@dataclass(frozen=True, slots=True)
class EventTold(Notice):
    """One of the room's events (`bot.events`). `kind`: its class; `event`: JSON."""

    kind: str
    event: str


@dataclass(frozen=True, slots=True)
class CostTold(Notice):
    """The room has used this."""

    cost: ReportedCost


@dataclass(frozen=True, slots=True)
class NoticeTold(Notice):
    """People have had this notice in a session (`GuildParticipation.tell`)."""

    session_id: str
    notice: str
    people: frozenset[int]


@dataclass(frozen=True, slots=True)
class StoreSilence(Request[None]):
    """Somebody in the room asked for silence aloud, or for its end. It is in effect there already."""

    silence: Silence
    by: int


@dataclass(frozen=True, slots=True)
class ChangeServers(Request[None]):
    """Store the server's settings with what a room changes in them: `listen_only`. `servers`: as in `OpenRoom`."""

    servers: str
