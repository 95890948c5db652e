"""What becomes of the bot's speech when people speak over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import structlog

from bot import events
from bot.brain.reply_life import Stop
from bot.brain.wakeword import strip_call
from bot.dropped_sounds import OVERLOADED, RECOGNISER_FAILED
from voice.speaking.backchannel import OverlapIntent, classify_overlap
from voice.speaking.barge_in import DUCK_LEVEL, BargeInAction, BargeInDetector

if TYPE_CHECKING:
    from bot.brain.replier import Replier
    from bot.clock import Clock
    from bot.participation.participation import Participation
    from voice.listening.listener import RoomListener
    from voice.speaking.playback import Playback

log = structlog.get_logger()

# How often to update when no sound arrives; a burst of speech ends by time.
TICK_S = 0.05
# Sound dropped for these reasons may have been speech; for every other reason it was not.
_MAYBE_SPEECH = frozenset({OVERLOADED, RECOGNISER_FAILED})


class BargeInHandler:
    """Carries out the decisions of `voice.speaking.barge_in` when people speak over the bot: it ducks, pauses or stops
    the reply. It checks how long each person has spoken whenever sound arrives and every 50 ms, and passes the meaning
    of recognised words to the detector. `participation`: knows the bot's names.

    *Ownership*: `run` is the room's task; call everything on its loop.
    """

    def __init__(
        self,
        listener: RoomListener,
        playback: Playback,
        replier: Replier,
        participation: Participation,
        *,
        clock: Clock,
    ) -> None:
        self._listener = listener
        self._playback = playback
        self._replier = replier
        self._participation = participation
        self._clock = clock
        self._detector = BargeInDetector()

    async def run(self) -> None:
        """Update as time passes. Never returns."""
        while True:
            await self._clock.sleep(TICK_S)
            self.update()

    def update(self) -> None:
        """Decide again from how long each person has spoken by now."""
        act = self._detector.update(
            self._listener.voiced_s,
            audible=self._replier.speaking,
            now=self._clock.monotonic(),
            answering=self._replier.answering,
        )
        self._apply(act)

    def on_event(self, event: events.Event) -> None:
        """Handle the recognised text or the drop of somebody's sound; ignore other events."""
        match event:
            case events.UtteranceTranscribed():
                self._on_meaning(event, self._meaning(event))
            case events.InterimTranscribed() if (meaning := self._meaning(event)) is not OverlapIntent.STOP:
                # Sooner than the speech ends. 'Wait' alone may be the beginning of more, and the bot is silent already.
                self._on_meaning(event, meaning)
            case events.SpeechDropped():
                meaning = OverlapIntent.YIELD if event.reason in _MAYBE_SPEECH else OverlapIntent.CONTINUE
                self._on_meaning(event, meaning)

    def _meaning(self, event: events.UtteranceTranscribed | events.InterimTranscribed) -> OverlapIntent:
        if self._participation.asks_for_silence(event.speaker_id, event.text):
            return OverlapIntent.STOP
        return classify_overlap(strip_call(event.text, self._participation.wake_names))

    def _on_meaning(
        self,
        event: events.UtteranceTranscribed | events.InterimTranscribed | events.SpeechDropped,
        meaning: OverlapIntent,
    ) -> None:
        act = self._detector.on_words(
            event.speaker_id,
            meaning,
            started_at=event.started_at,
            ended_at=event.ended_at,
            audible=self._replier.speaking,
            now=self._clock.monotonic(),
            answering=self._replier.answering,
        )
        self._apply(act)

    def _apply(self, act: BargeInAction | None) -> None:
        match act:
            case None:
                pass
            case BargeInAction.DUCK:
                self._playback.duck(DUCK_LEVEL)
            case BargeInAction.PAUSE:
                self._playback.pause()
                log.info("reply_paused")
            case BargeInAction.RESUME:
                self._playback.resume()
                log.debug("reply_resumed")
            case BargeInAction.GIVE_WAY:
                self._stop(Stop.WENT_ON)
            case BargeInAction.STOP:
                answering = self._replier.answering
                is_asker = answering is not None and answering.asker_id == self._detector.stopped_by
                self._stop(Stop.INTERRUPTED if is_asker else Stop.TALKED_OVER)
            case BargeInAction.SILENCE:
                self._stop(Stop.SILENCED)
            case _:
                assert_never(act)

    def _stop(self, by: Stop) -> None:
        self._replier.stop_current(by)
        log.info("reply_interrupted", how=by.name.lower())
