"""What the dashboard knows of one open room: it tells the pages the room's events, and keeps what its charts show.

Words are not kept here: a page that opens reads them from the session's memory and store, so that nothing outlives its
deletion."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from bot import events
from bot.dashboard.access import Json, note_json, turn_json
from bot.dropped_sounds import reasons_text
from bot.texts.text import Text, verbatim
from bot.words import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.health import HealthFault
    from bot.participation.guild_state import GuildState
    from compaction.model import SessionId
    from compaction.session import SessionTimeline

# What each chart shows at most: packets and queues of ten minutes (every 5 s), costs of two hours (every minute).
CHARTS: Final = {"replies": 24, "packets": 120, "queues": 120, "costs": 120, "folds": 200, "problems": 5}
COST_EVERY_S: Final = 60.0
# Utterances whose stages are waited for by a reply.
_STAGES: Final = 32
# The queues of the chart: from a person's speech to the bot's.
SHOWN_QUEUES: Final = ("recognise", "record", "answer", "play")


class LiveRoom:
    """One open room. `publish`: sends a kind of event with its data to the pages; its last argument names what the
    event is the latest of, if a later one replaces it. Not thread-safe.
    """

    def __init__(
        self,
        session_id: SessionId,
        channel: RoomChannel,
        timeline: SessionTimeline,
        guild: GuildState,
        *,
        clock: Clock,
        publish: Callable[[LiveRoom, str, Json, str], None],
    ) -> None:
        self.session_id = session_id
        self.channel = channel
        self.timeline = timeline
        self.guild = guild
        self.opened_at = clock.now()
        self._clock = clock
        self._publish = publish
        self._charts: dict[str, deque[Json]] = {name: deque(maxlen=most) for name, most in CHARTS.items()}
        self._connection_state = ""
        # Speech that became no turn, by reason.
        self._dropped: Counter[str] = Counter()
        # When each of the latest utterances ended, and how long hearing it took.
        self._heard: dict[str, Mapping[str, float]] = {}
        self._people: Json = {}
        self._status = verbatim("")
        # What is wrong now.
        self._faults: list[Json] = []
        self._cost_at = float("-inf")
        # What the last hour had cost when the pages were told.
        self._used: tuple[object, ...] = ()
        # Who has spoken or shared a screen in the session, as far as anybody had to know.
        self._speakers: set[str] = set()
        # Whose unfinished words the pages show.
        self._interims: set[int] = set()
        # Who is there, and since when.
        self._here: dict[str, float] = {}
        self.present_since(self.opened_at)
        self._begin_lease()

    # -- what happens -----------------------------------------------------------------------------------------------

    def observe(self, event: events.Event) -> None:
        """Take one of the room's events."""
        match event:
            case events.InterimTranscribed():
                self._interims.add(event.speaker_id)
                self._emit_interim(event.speaker_id, event.text)
            case events.UtteranceTranscribed():
                self._end_interim(event.speaker_id)
                speaker, who = str(event.speaker_id), self._name(event.speaker_id)
                self._emit("heard", {"id": event.utterance_id, "speaker": speaker, "who": who, "text": event.text})
            case events.SpeechDropped():
                self._end_interim(event.speaker_id)
                self._dropped[event.reason] += 1
                self._emit("dropped", {"id": event.utterance_id, "dropped": reasons_text(self._dropped)})
            case events.TurnRecorded():
                for spoken in event.utterances:
                    self._heard[spoken.utterance.id] = {**spoken.stages_ms, "ended_at": spoken.ended_at}
                for old in list(self._heard)[:-_STAGES]:
                    del self._heard[old]
                self.add_speakers(part.speaker_id for part in event.turn.parts)
                heard = [spoken.utterance.id for spoken in event.utterances]
                turn = turn_json(self.timeline.allowed_part(event.turn))
                self._emit("turn", {"turn": turn, "heard": heard, "total": self.timeline.total_turns})
            case events.ScreenNoted():
                if event.note.person_id is not None:
                    self.add_speakers([event.note.person_id])
                if self.shows_notes:
                    self._emit("note", {"note": note_json(event.note)})
            case events.ReplySpoken():
                self._observe_reply(event)
            case _:
                self._observe_figures(event)

    def _observe_figures(self, event: events.Event) -> None:
        """Take an event that holds no words of people: measurements and problems."""
        match event:
            case events.ConnectionChanged():
                self._connection_state = event.state
                round_trip_ms = None if event.round_trip_s is None else round(1000 * event.round_trip_s)
                packets = self._add("packets", **event.counters, round_trip_ms=round_trip_ms)
                self._emit("packets", {"packets": packets, "link": event.state})
            case events.QueuesMeasured():
                lengths = {queue.name: queue.waiting for queue in event.queues if queue.name in SHOWN_QUEUES}
                self._emit("queues", {"queues": self._add("queues", **lengths, unfolded=len(self.timeline.window))})
            case events.StatusTold():
                self._status = event.status
            case events.ContextBuilt():
                tokens: Counter[str] = Counter()
                for part in event.parts:
                    tokens[part.kind.value] += part.tokens
                self._emit("prompt", {"answer_to": event.answer_to, "tokens": dict(tokens)})
            case events.CompactionLanded():
                self._add("folds", **{"from": event.old_cursor, "to": event.new_cursor, "ms": round(event.latency_ms)})
            case events.CompactionFailed():
                self._add_problem("memory", Text("The bot could not make a summary. It will try again."))
            case events.Problem():
                self._add_problem(event.where, event.sentence)
            case events.FaultsFound():
                self._faults = [self._fault_json(fault) for fault in event.faults]
                self._emit("faults", {"faults": self._faults})

    def _observe_reply(self, event: events.ReplySpoken) -> None:
        """Tell a reply's latencies, unless it answers no utterance that is known: nobody waited for it."""
        heard = self._heard.get(event.utterance_id or "")
        if heard is None:
            return
        model, voice = event.model_first_token_ms, event.synthesis_first_audio_ms
        reply = self._add(
            "replies",
            turn=event.answer_to,
            total=round(1000 * (event.first_audio_at - heard["ended_at"])),
            endpoint=round(heard["endpoint_ms"]),
            recognise=round(heard["queue_ms"] + heard["recognise_ms"]),
            model=None if model is None else round(model),
            voice=None if voice is None else round(voice - (model or 0.0)),
            interrupted=event.interrupted,
        )
        self._emit("reply", {"reply": reply})

    def emit_fold(self) -> None:
        """Tell the pages where the cursor is. Call it after the timeline has finished a compaction."""
        self._emit("fold", self.memory_json())

    def look(self) -> None:
        """Tell the pages what changed without an event: people, modes, costs. Call it every few seconds."""
        people = self.people_json()
        if people != self._people:
            self._people = people
            self.present_since(self._clock.now())
            self._emit("people", people)
        self._emit_cost()

    def _begin_lease(self) -> None:
        self._lease = self.guild.words.lease({SESSION}, since=None)
        self._lease.on_end(self._on_taken_back)

    def _on_taken_back(self) -> None:
        """Have the pages read anew. One that does shows no unfinished words."""
        self._begin_lease()
        self._interims.clear()
        self._emit("reset", {})

    def present_since(self, at: float) -> frozenset[str]:
        """Return the ids of the people in the channel who were there at a time (UTC epoch seconds) already, as far as
        that was looked at. Each event looks.
        """
        now, here = self._clock.now(), (str(person.id) for person in self.channel.members() if not person.is_bot)
        self._here = {person_id: self._here.get(person_id, now) for person_id in here}
        return frozenset(person_id for person_id, since in self._here.items() if since <= at)

    # -- what a page reads -------------------------------------------------------------------------------------------

    @property
    def shows_notes(self) -> bool:
        """Return whether screen notes may be shown: nobody who spoke or shared a screen here has opted out."""
        return not self._speakers & self.guild.opted_out_ids()

    def add_speakers(self, ids: Iterable[str]) -> None:
        """Note who has spoken or shared a screen in the session, also in an earlier room of it."""
        self._speakers.update(ids)

    def brief(self) -> Json:
        """Return the room for a list of rooms."""
        return {
            "session": self.session_id,
            "guild": self.channel.guild_name,
            "room": self.channel.name,
            "opened_at": self.opened_at,
            "people": sum(not person.is_bot for person in self.channel.members()),
            "turns": self.timeline.total_turns,
        }

    def figures(self) -> Json:
        """Return the charts, and what they are about, without anything that people said. The cost of now is the last
        one in any case.
        """
        charts = {name: list(kept) for name, kept in self._charts.items()}
        ceiling = self.guild.costs.ceiling
        return {
            **self.brief(),
            **charts,
            "costs": [*charts["costs"], self._cost()],
            "link": self._connection_state,
            "faults": self._faults,
            "dropped": reasons_text(self._dropped),
            "present": self.people_json(),
            "ceiling": {"calls": ceiling.calls, "tokens": ceiling.tokens, "spoken_s": ceiling.spoken_s},
        }

    def memory_json(self) -> Json:
        """Return the session's memory: where its cursor is, and its summary."""
        timeline = self.timeline
        window, summary = timeline.window, timeline.summary
        return {
            "mode": timeline.mode.value,
            "total": timeline.total_turns,
            "cursor": timeline.cursor,
            "window_from": window[0].seq if window else timeline.total_turns,
            "summary": summary or "",
            "folds": list(self._charts["folds"]),
        }

    def people_json(self) -> Json:
        """Return who is in the channel, and how the bot takes part there."""
        return {
            "status": self._status,
            "people": [
                {
                    "id": str(person.id),
                    "name": person.name,
                    "bot": person.is_bot,
                    "heard": not person.is_bot and not self.guild.excludes(person.id),
                }
                for person in self.channel.members()
            ],
        }

    # -- parts ------------------------------------------------------------------------------------------------------

    def _emit(self, kind: str, data: Json, latest_of: str = "") -> None:
        self._publish(self, kind, {"session": self.session_id, **data}, latest_of)

    def _add(self, chart: str, **figures: object) -> Json:
        """Add figures of now to a chart, and return them."""
        self._charts[chart].append({"at": self._clock.now(), **figures})
        return self._charts[chart][-1]

    def _emit_interim(self, user_id: int, text: str) -> None:
        speaker = str(user_id)
        self._emit("interim", {"speaker": speaker, "who": self._name(user_id), "text": text}, latest_of=speaker)

    def _end_interim(self, user_id: int) -> None:
        """Have the pages remove a person's unfinished words."""
        if user_id in self._interims:
            self._interims.discard(user_id)
            self._emit_interim(user_id, "")

    def _name(self, user_id: int) -> str:
        return next((person.name for person in self.channel.members() if person.id == user_id), Text("Somebody"))

    def _emit_cost(self) -> None:
        """Tell the pages what the last hour has cost if it has changed; keep a sample for the chart each minute."""
        cost, now = self._cost(), self._clock.monotonic()
        kept = now - self._cost_at >= COST_EVERY_S
        if kept:
            self._cost_at = now
            self._charts["costs"].append(cost)
        used = (cost["calls"], cost["tokens"], cost["spoken_s"])
        if kept or used != self._used:
            self._used = used
            self._emit("cost", {"cost": cost, "kept": kept})

    def _cost(self) -> Json:
        cost = self.guild.costs.last_hour(self._clock.monotonic())
        return {
            "at": self._clock.now(),
            "calls": cost.calls,
            "tokens": cost.tokens,
            "spoken_s": round(cost.spoken_s, 1),
            "dollars": round(cost.dollars, 4),
        }

    def _fault_json(self, fault: HealthFault) -> Json:
        now = self._clock.monotonic()
        return {"since": self._clock.now() - (now - (fault.since or now)), "sentence": fault.sentence}

    def _add_problem(self, where: str, sentence: Text) -> None:
        self._emit("problem", {"problem": self._add("problems", where=where, sentence=sentence)})
