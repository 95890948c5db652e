"""How one room's conversation is at the moment: what it does, what waits in it, and which sounds it dropped.

/status, the live message and the metrics read it. It changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.room.live_message import ANSWERING, LISTENING, SILENT, WRITING
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections import Counter

    from bot.brain.reply import Replier
    from bot.participation.participation import Participation
    from bot.realtime.bridge import RealtimeBridge
    from bot.room.conversation.hearing import Hearing
    from bot.room.server_voice import RoomVoice
    from bot.texts.text import Text
    from compaction.session import SessionMemory
    from voice.speaking.playback import Playback


class ConversationStatus:
    """The status of one conversation, read from its parts. `responder`: the name of the language model that answers."""

    def __init__(
        self,
        *,
        hearing: Hearing,
        replier: Replier,
        playback: Playback,
        memory: SessionMemory,
        participation: Participation,
        voice: RoomVoice,
        bridge: RealtimeBridge | None,
        responder: Text,
    ) -> None:
        self._hearing = hearing
        self._replier = replier
        self._playback = playback
        self._memory = memory
        self._participation = participation
        self._voice = voice
        self._bridge = bridge
        self._responder = responder

    @property
    def doing(self) -> Text:
        """What the bot does at the moment, in one sentence."""
        if self._participation.listens_only:
            return WRITING
        if self._participation.silenced:
            return SILENT
        return ANSWERING if self._replier.busy else LISTENING

    @property
    def responder_name(self) -> Text:
        """The model that answers."""
        return self._responder if self._bridge is None else self._bridge.responder_name

    @property
    def dropped(self) -> Counter[str]:
        """Return how many sounds became no turn, by reason."""
        return self._hearing.dropped

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits: to be recognised, recorded as a turn, answered, played, stored, written."""
        return (
            *self._hearing.queues,
            *self._replier.queues,
            self._playback.pieces,
            QueueFigures("store", self._memory.unstored_items, None),
            self._participation.queue,
            *(() if self._bridge is None else self._bridge.queues),
        )

    def participation(self) -> Text:
        """Return decisions, costs and silence in plain sentences."""
        return self._participation.status()

    def voice(self) -> Text:
        """Return why another voice than the chosen one speaks; empty if it does not."""
        return self._voice.status()
