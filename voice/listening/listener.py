"""Listening in one room: a `SpeakerListener` for each person, and one voice-activity model for all.

It is synchronous on purpose: a window of 32 ms costs about 0.1 ms, so ten people speaking at once take 3 % of the event
loop. Handing windows to a thread would cost more. A crowd is listened to in pieces, so that the loop has its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from voice.listening.endpointing import ENDPOINTING, EndpointingParameters
from voice.listening.speaker import SpeakerListener
from voice.transport.audio_events import AudioEvent, SpeakerLeft

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from voice.listening.utterance import ListeningEvent, Utterance
    from voice.listening.vad import SpeechProbability, WindowRun

# How often to check for people whose packets stopped. Their missing packets end an utterance, so half a tick adds to
# every latency. One tick with four people costs 20 us.
TICK_S = 0.02
# People for whom time advances in one piece. A hundred who fall silent together after 6 s of speech take 19 ms of CPU
# time, 16 of them 3.5 ms.
PEOPLE_A_PIECE = 16
# A tick that comes so long after the last one shows that the event loop or the whole process stood still. Who had
# paused before may have spoken since.
LATE_TICK_S = 0.5
# In this time what was said meanwhile is read and handed over: two seconds of a hundred people take as long.
CATCH_UP_S = 1.0
# Where no tick has been in time for so long, the machine is too slow, and nothing is caught up with: speech ends late
# then, and not only once the machine is quick again.
TOO_SLOW_S = 10.0


class RoomListener:
    """The listeners of one room. Owned by the room's task; not thread-safe. The transport decides whose sound arrives
    here.
    """

    def __init__(self, detector: SpeechProbability, parameters: EndpointingParameters = ENDPOINTING) -> None:
        self._detector = detector
        self._parameters = parameters
        self._listeners: dict[int, SpeakerListener] = {}
        self._ticked_at = float("inf")
        # The first of the ticks that have all been late; None: the last one was in time.
        self._late_since: float | None = None

    @property
    def speaking(self) -> frozenset[int]:
        return frozenset(user_id for user_id, listener in self._listeners.items() if listener.is_speaking)

    @property
    def sounding(self) -> frozenset[int]:
        """Those who speak and do not pause."""
        return frozenset(user_id for user_id, listener in self._listeners.items() if listener.is_sounding)

    @property
    def voiced_s(self) -> dict[int, float]:
        """Seconds of voiced sound in the current speech, for each person who has any."""
        return {user_id: voiced for user_id, one in self._listeners.items() if (voiced := one.voiced_s) > 0}

    def hear(self, heard: Iterable[AudioEvent], now: float) -> list[ListeningEvent]:
        """Add sound from the transport; return the listening events. `now`: monotonic seconds."""
        events: list[ListeningEvent] = []
        heard_of: dict[int, SpeakerListener] = {}
        for one in heard:
            listener = self._listeners.get(one.user_id)
            if listener is None:
                if isinstance(one, SpeakerLeft):
                    continue
                listener = SpeakerListener(one.user_id, self._parameters)
                self._listeners[one.user_id] = listener
            listener.hear(one)
            heard_of[one.user_id] = listener
            if isinstance(one, SpeakerLeft):
                events.extend(self._decide([listener], now))
                del self._listeners[one.user_id], heard_of[one.user_id]
        return events + self._decide(list(heard_of.values()), now)

    def tick(self, now: float) -> list[ListeningEvent]:
        """Advance time for people whose packets have stopped, so that their speech ends. How often it is called adds to
        every latency.
        """
        return [event for events in self.tick_in_pieces(now) for event in events]

    def tick_in_pieces(self, now: float) -> Iterator[list[ListeningEvent]]:
        """Do the same as `tick` in pieces of at most 16 people. Other calls may come between two pieces."""
        late_s, self._ticked_at = now - self._ticked_at, now
        if late_s < LATE_TICK_S:
            self._late_since = None
        elif self._late_since is None:
            self._late_since = now
        if self._late_since is not None and now - self._late_since < TOO_SLOW_S:
            for one in self._listeners.values():
                one.await_sound(now + CATCH_UP_S)
            return
        user_ids = tuple(self._listeners)
        for at in range(0, len(user_ids), PEOPLE_A_PIECE):
            advanced = []
            for user_id in user_ids[at : at + PEOPLE_A_PIECE]:
                # Somebody may have left since the last piece.
                listener = self._listeners.get(user_id)
                if listener is not None and listener.pass_time(now):
                    advanced.append(listener)
            yield self._decide(advanced, now)

    def silence_s(self, utterance: Utterance) -> float | None:
        """Return how long the pause after `utterance` has lasted by now, in seconds; None: it is over."""
        listener = self._listeners.get(utterance.user_id)
        return None if listener is None else listener.silence_s(utterance.id)

    def end_in_pause(self, utterance: Utterance, now: float) -> list[ListeningEvent]:
        """End `utterance`, whose speaker has paused, because somebody acts on it. Ignores one whose pause is over."""
        listener = self._listeners.get(utterance.user_id)
        return [] if listener is None else listener.end_in_pause(utterance.id, now)

    def _decide(self, listeners: list[SpeakerListener], now: float) -> list[ListeningEvent]:
        runs: list[WindowRun] = []
        counts: list[int] = []
        for listener in listeners:
            of_listener = listener.unscored()
            runs.extend(of_listener)
            counts.append(len(of_listener))
        scores = iter(self._detector.score(runs) if runs else [])
        events: list[ListeningEvent] = []
        for listener, count in zip(listeners, counts, strict=True):
            probabilities = [value for _ in range(count) for value in next(scores)]
            events.extend(listener.decide(probabilities, now))
        return events
