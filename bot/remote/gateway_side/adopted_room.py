"""What a room and the next gateway process tell each other after the room ran on without one.

The room knows what was kept in memory alone: who agreed to be heard, the costs of the last hour, a silence that nobody
could store. The gateway process knows what is stored, and who is in the channel now.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from bot.channel.port import MembershipChange
from bot.errors import SetupError
from bot.participation.costs import CostLedger
from bot.participation.session_consent import SessionConsent
from bot.participation.waiting_choices import ChoiceWaitsError
from bot.remote.messages.participation_state import participation_state
from bot.remote.messages.room_messages import TakeOver
from bot.room.restarts import DATABASE_PAUSE_S
from bot.texts.text import Text
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.channel.port import Person, Place
    from bot.clock import Clock
    from bot.participation.all_guilds import GuildParticipations
    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.messages.room_messages import RoomReport

log = structlog.get_logger()

OTHER_CONSENT = Text("Whether people are asked before they are heard was changed while the bot was away.")


async def take_over_report(
    report: RoomReport, place: Place, guild: GuildParticipation, participation: GuildParticipations, clock: Clock
) -> None:
    """Take over what only the room knows.

    Raises `SetupError` if the room has to begin anew: whether people are asked is settled when a session begins.
    """
    known = report.participation
    if known.asks != guild.asks:
        raise SetupError(OTHER_CONSENT)
    log.info("room_reported", guild_id=place.guild_id, session_id=report.session_id)
    guild.consent = SessionConsent(report.session_id, known.agreed - guild.opted_out, known.notice, known.told)
    guild.costs = CostLedger.aged(guild.costs.ceiling, report.costs, now=clock.monotonic())
    if report.unsaved_silence_by:
        guild.silence = known.silence
        # It is in effect, and is stored later.
        with suppress(ChoiceWaitsError):
            await participation.store_silence(guild, by=report.unsaved_silence_by)


def changes_since(report: RoomReport, guild: GuildParticipation) -> TakeOver:
    """Return what the room has to take over. Send it at once: what a command changes next is told after it."""
    return TakeOver(
        participation_state(guild), opted_out=tuple(sorted(guild.opted_out - report.participation.opted_out))
    )


async def until_stored(
    work: Callable[[], Awaitable[object]], clock: Clock, *, on_wait: Callable[[], None], goes_on: Callable[[], bool]
) -> None:
    """Do what needs the database, again after a pause while that is away: the room runs on, and keeps what it cannot
    store. Raises what `work` raises, but no `StoreError`.

    `on_wait`: is called before each pause. `goes_on`: False once the room is over, so there is nothing to wait for.
    """
    waits = False
    while goes_on():
        try:
            await work()
        except StoreError as error:
            if not waits:
                waits = True
                log.warning("room_waits_for_database", retry_s=DATABASE_PAUSE_S, problem=error)
            on_wait()
        else:
            return
        await clock.sleep(DATABASE_PAUSE_S)


def moves_between(before: Sequence[Person], after: Sequence[Person]) -> list[MembershipChange]:
    """Return who has left a channel, and then who has come, in the order in which they are listed."""
    were, are = {person.id for person in before}, {person.id for person in after}
    left = [MembershipChange(person, joined=False) for person in before if person.id not in are]
    return left + [MembershipChange(person, joined=True) for person in after if person.id not in were]
