"""The parts of one conversation, as `assemble` has made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.brain.replier import Replier
    from bot.brain.tools.toolbox import Toolbox
    from bot.channel.participants import Participants
    from bot.conversation.barge_in import BargeInHandler
    from bot.conversation.hearing import Hearing
    from bot.conversation.reminding import Reminding
    from bot.conversation.speaking import Speaking
    from bot.conversation.transcriber import Transcriber
    from bot.conversation.turn_recorder import TurnRecorder
    from bot.conversation.typed_talk import TypedTalk
    from bot.participation.participation import Participation
    from bot.realtime.bridge import RealtimeBridge
    from bot.screen.commentary import ScreenCommentary
    from voice.listening.listener import RoomListener


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one conversation. `transcribers`: of the talk, and of voice messages, for which live speech does not
    wait. `bridge`, `commentary`: None where no speech-to-speech model answers, and where nobody may share.
    """

    listener: RoomListener
    participants: Participants
    participation: Participation
    reminding: Reminding
    toolbox: Toolbox
    turn_recorder: TurnRecorder
    bridge: RealtimeBridge | None
    speaking: Speaking
    transcribers: tuple[Transcriber, Transcriber]
    typed_talk: TypedTalk
    hearing: Hearing
    barge_in: BargeInHandler
    commentary: ScreenCommentary | None

    @property
    def replier(self) -> Replier:
        return self.speaking.replier
