"""Makes what a room consists of beside its conversation, for a stored session that is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.posts.live_message import LiveMessage
from bot.posts.notice import Announcer
from bot.room.attendance import AttendanceRecorder
from bot.room.membership import MembershipRecorder
from bot.room.room_faults import RoomFaults
from bot.room.room_status import UnfinishedSpeech
from bot.room.watches import ClaimWatch, ForgettingWatch
from bot.room.writing_down import listening_notice, new_writer, wanted_captions

if TYPE_CHECKING:
    from bot.channel.port import VoiceConnection
    from bot.conversation.conversation import Conversation
    from bot.conversation.services import RoomContext
    from bot.health import HealthFault
    from bot.room_part import RoomPart
    from bot.screen.screen_room import RoomScreens


@dataclass(frozen=True, slots=True)
class RoomParts:
    """The parts of one room. `screens`: those that people share there; None: sharing is off. `writer`: writes the
    session down.
    """

    session: RoomContext
    conversation: Conversation
    screens: RoomScreens | None
    membership: MembershipRecorder
    attendance: AttendanceRecorder
    claim_watch: ClaimWatch
    forgetting_watch: ForgettingWatch
    unfinished: UnfinishedSpeech
    faults: RoomFaults
    announcer: Announcer
    writer: RoomPart
    live_message: LiveMessage

    @property
    def working(self) -> tuple[RoomPart, ...]:
        """In the order in which they end: the last words first, then what was shown meanwhile, and who was there."""
        ending = (self.conversation, self.screens, self.membership, self.attendance, self.session.upkeep)
        watching = (self.claim_watch, self.forgetting_watch, self.unfinished, self.faults)
        return (*(each for each in ending if each is not None), *watching)

    @property
    def posting(self) -> tuple[RoomPart, ...]:
        """They write what people read of the room in its chat, and so end after the others."""
        return (self.writer, self.live_message)

    def found_faults(self, connection: VoiceConnection) -> list[HealthFault]:
        """Return why nobody is heard here, nobody hears the bot, or nothing is stored."""
        speaks = not self.session.guild.listens_only
        return self.faults.faults(connection, self.session.channel, speaks=speaks)


def assemble_room(session: RoomContext, conversation: Conversation, screens: RoomScreens | None) -> RoomParts:
    """Return the parts of a room around a conversation."""
    channel, clock, words, guild = session.channel, session.services.clock, session.words, session.guild
    sessions, claim = session.services.memory.sessions, session.opened.claim
    announcer = Announcer(
        channel,
        listening_notice(session, session.listen if guild.listens_only else wanted_captions(session)),
        speak=conversation.parts.speaking.speak_notice,
        clock=clock,
        consent=guild.consent,
        asks=guild.asks,
    )
    return RoomParts(
        session=session,
        conversation=conversation,
        screens=screens,
        membership=MembershipRecorder(session, conversation.parts.turn_recorder),
        attendance=AttendanceRecorder(
            channel, session.opened.session, sessions.attendance_for(claim), words=words, clock=clock
        ),
        claim_watch=ClaimWatch(sessions, claim, clock),
        forgetting_watch=ForgettingWatch(
            sessions,
            session.timeline,
            words,
            channel,
            seen=session.opened.forgettings,
            clock=clock,
        ),
        unfinished=UnfinishedSpeech(channel, words),
        faults=RoomFaults(clock),
        announcer=announcer,
        writer=new_writer(session, announcer),
        live_message=LiveMessage(channel, doing=conversation.doing, costs=guild.costs, clock=clock, words=words),
    )
