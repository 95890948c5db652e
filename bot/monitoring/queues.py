"""The queues between the bot's tasks, by their name in the metrics.

A test finds every queue of the code and looks it up here, so that no new one is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# Name -> the attribute that holds the queue, and what waits there. The owner makes its `QueueFigures`.
QUEUES: Final[Mapping[str, str]] = {
    # Of each room, from a packet to a sound.
    "sound": "voice.transport.handover.Handover._waiting",
    "recognise": "bot.room.conversation.hearing.Hearing._waiting",
    "record": "bot.room.conversation.hearing.Hearing._groups",
    "answer": "bot.brain.reply.Replier._waiting",
    "sentences": "bot.brain.reply.Replier._sentences",
    "play": "voice.speaking.playback.Playback._pieces",
    # Of each room, beside that.
    "typed": "bot.room.conversation.typed_talk.TypedTalk._waiting",
    "store": "compaction.outbox.Outbox._waiting",
    "notices": "bot.participation.participation.Participation._notices",
    "transcript": "bot.room.transcript_writer.TranscriptWriter._lines",
    "realtime_notices": "bot.realtime.bridge.RealtimeBridge._notices",
    "realtime_events": "voice.realtime.connection.RealtimeConnection._outgoing",
    "realtime_reply": "voice.realtime.reply_queue.ReplyQueue._waiting",
    "screen_page": "bot.screen.sharer.Sharer.outbox",
    # Of the process.
    "recogniser": "voice.asr.scheduler.QueuedRecogniser._queue",
    "dashboard": "bot.dashboard.follower.Follower._waiting",
}
