"""The figures of one open room's charts, from the room's events. Nothing that people said is among them."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from bot.dropped_sounds import reasons_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot import events
    from bot.clock import Clock
    from bot.texts.text import Text
    from bot.web.dashboard_port import Json

# This many replies, ten minutes of packets and queues (every 5 s), and two hours of costs (every minute).
REPLIES_SHOWN: Final = 24
MEASURED: Final = 120
COSTS: Final = 120
COST_EVERY_S: Final = 60.0
FOLDS: Final = 200
PROBLEMS: Final = 5
# Utterances whose stages are waited for by a reply.
_STAGES: Final = 32
# The queues of the chart: from a person's speech to the bot's.
SHOWN_QUEUES: Final = ("recognise", "record", "answer", "play")


class RoomCharts:
    """The charts of one room. `add_…` returns what a page adds to its own chart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._link = ""
        # How long hearing each of the latest utterances took.
        self._stages: dict[str, Mapping[str, float]] = {}
        self._replies: deque[Json] = deque(maxlen=REPLIES_SHOWN)
        self._packets: deque[Json] = deque(maxlen=MEASURED)
        self._queues: deque[Json] = deque(maxlen=MEASURED)
        self._costs: deque[Json] = deque(maxlen=COSTS)
        self._cost_at = float("-inf")
        self._folds: deque[Json] = deque(maxlen=FOLDS)
        self._problems: deque[Json] = deque(maxlen=PROBLEMS)
        self._dropped: Counter[str] = Counter()

    @property
    def folds(self) -> list[Json]:
        """Return the latest folds."""
        return list(self._folds)

    def as_json(self, cost: Json) -> Json:
        """Return all charts. `cost`: of the last hour, until now."""
        return {
            "link": self._link,
            "replies": list(self._replies),
            "packets": list(self._packets),
            "queues": list(self._queues),
            "costs": [*self._costs, cost],
            "folds": self.folds,
            "problems": list(self._problems),
            "dropped": reasons_text(self._dropped),
        }

    def add_packets(self, event: events.LinkChanged) -> Json:
        """Add the packets by outcome."""
        self._link = event.state
        round_trip_ms = None if event.round_trip_s is None else round(1000 * event.round_trip_s)
        self._packets.append({"at": self._clock.now(), **event.counters, "round_trip_ms": round_trip_ms})
        return self._packets[-1]

    def add_queues(self, event: events.QueuesMeasured, *, unfolded: int) -> Json:
        """Add how much waits. `unfolded`: turns in the window."""
        lengths = {queue.name: queue.waiting for queue in event.queues if queue.name in SHOWN_QUEUES}
        self._queues.append({"at": self._clock.now(), **lengths, "unfolded": unfolded})
        return self._queues[-1]

    def add_fold(self, event: events.CompactionLanded) -> None:
        """Add a fold that landed."""
        self._folds.append(
            {
                "at": self._clock.now(),
                "from": event.old_cursor,
                "to": event.new_cursor,
                "ms": round(event.latency_ms),
            }
        )

    def add_problem(self, where: str, sentence: Text) -> Json:
        """Add what has gone wrong."""
        self._problems.append({"at": self._clock.now(), "where": where, "sentence": sentence})
        return self._problems[-1]

    def add_dropped(self, reason: str) -> str:
        """Count speech that became no turn; return all reasons in words."""
        self._dropped[reason] += 1
        return reasons_text(self._dropped)

    def add_cost(self, cost: Json, now: float) -> bool:
        """Add what the last hour has cost, once a minute; return whether it was added. `now`: monotonic seconds."""
        if now - self._cost_at < COST_EVERY_S:
            return False
        self._cost_at = now
        self._costs.append(cost)
        return True

    def remember_stages(self, spoken: events.SpokenText) -> None:
        """Remember how long hearing an utterance took, for the reply to it."""
        while len(self._stages) >= _STAGES:
            del self._stages[next(iter(self._stages))]
        figures = {"ended_at": spoken.ended_at}
        for name in ("endpoint_ms", "queue_ms", "recognise_ms"):
            figures[name] = float(spoken.stages_ms[name])
        self._stages[spoken.utterance.id] = figures

    def add_reply(self, event: events.ReplySpoken) -> Json | None:
        """Add a reply's latencies and return them; None without an utterance, because nobody waited for it."""
        stages = self._stages.get(event.utterance_id or "")
        if stages is None or event.first_audio_at is None:
            return None
        total = 1000 * (event.first_audio_at - stages["ended_at"])
        model = event.model_first_token_ms
        voice = event.synthesis_first_audio_ms
        reply: Json = {
            "turn": event.answer_to,
            "total": round(total),
            "endpoint": round(stages["endpoint_ms"]),
            "recognise": round(stages["queue_ms"] + stages["recognise_ms"]),
            "model": None if model is None else round(model),
            "voice": None if voice is None else round(voice - (model or 0.0)),
            "interrupted": event.interrupted,
        }
        self._replies.append(reply)
        return reply
