"""People who speak over the bot: carries out what barge-in decides, on the playback and the reply in the works.

Nothing is decided here. It asks the ears how much everybody has said, whenever sound came and a few times a second
besides, and hands on what the words turned out to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import structlog

from bot import events
from bot.brain.wakeword import strip_call
from voice.speaking.backchannel import OverlapIntent, classify_overlap
from voice.speaking.barge_in import BargeInAction, BargeInDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.brain.reply import Replier
    from bot.clock import Clock
    from voice.speaking.playback import Playback

log = structlog.get_logger()

# How often time passes when no sound comes: it is what ends a burst.
TICK_S = 0.05
# Seconds of somebody's voiced sound over the bot before it speaks more softly, and how loud it then is: 1 is as before.
DUCK_AFTER_S = 0.2
DUCK_LEVEL = 0.3
# Why sound became no text although somebody may well have spoken; every other reason says that nobody did.
_UNHEARD = frozenset({"overloaded", "recogniser_failed"})


class BargeInHandler:
    """Barge-in of one room. `voiced_s`: how much voiced sound each person has made in their present speech.
    `wake_names`: what the bot is called at present.

    *Ownership*: `run` is the room's task; everything is called on its loop.
    """

    def __init__(
        self,
        *,
        voiced_s: Callable[[], Mapping[int, float]],
        playback: Playback,
        replier: Replier,
        stop_after_s: float,
        wake_names: Callable[[], tuple[str, ...]],
        clock: Clock,
    ) -> None:
        self._voiced_s = voiced_s
        self._playback = playback
        self._replier = replier
        self._wake_names = wake_names
        self._clock = clock
        self._bargein = BargeInDetector(duck_after_s=min(DUCK_AFTER_S, stop_after_s), stop_after_s=stop_after_s)

    async def run(self) -> None:
        """Let time pass, for ever."""
        while True:
            await self._clock.sleep(TICK_S)
            self.heard()

    def heard(self) -> None:
        """Look at what everybody has said by now."""
        voiced, now = self._voiced_s(), self._clock.monotonic()
        self._do(self._bargein.hear(voiced, audible=self._replier.speaking, now=now))

    def understood(self, event: events.Event) -> None:
        """Take what somebody's sound turned out to be; other events are none of its business."""
        match event:
            case events.UtteranceHeard():
                self._judged(event, classify_overlap(strip_call(event.text, self._wake_names())))
            case events.UtteranceDropped():
                meaning = OverlapIntent.MAKE_ROOM if event.reason in _UNHEARD else OverlapIntent.GO_ON
                self._judged(event, meaning)
            case _:
                pass

    def _judged(self, event: events.UtteranceHeard | events.UtteranceDropped, meaning: OverlapIntent) -> None:
        act = self._bargein.judged(
            event.speaker_id,
            meaning,
            started_at=event.started_at,
            ended_at=event.ended_at,
            audible=self._replier.speaking,
            now=self._clock.monotonic(),
        )
        self._do(act)

    def _do(self, act: BargeInAction | None) -> None:
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
            case BargeInAction.STOP:
                self._replier.interrupt_current()
                log.info("reply_interrupted")
            case _:
                assert_never(act)
