"""What the dashboard knows of one open room: it tells the pages the room's events, and keeps its `room_charts`.

Words are not kept here: a page that opens reads them from the session's memory and store, so that nothing outlives its
deletion."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from bot import events
from bot.dashboard.messages import note_json, turn_json
from bot.dropped_sounds import reasons_text
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.participation.guild_participation import GuildParticipation
    from bot.web.dashboard_port import Json
    from compaction.model import SessionId
    from compaction.session import SessionMemory

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


class LiveRoom:
    """One open room. `publish`: sends a kind of event with its data to the pages; its last argument names what the
    event is the latest of, if a later one replaces it. Not thread-safe.
    """

    def __init__(
        self,
        session_id: SessionId,
        place: Place,
        memory: SessionMemory,
        guild: GuildParticipation,
        *,
        clock: Clock,
        publish: Callable[[LiveRoom, str, Json, str], None],
    ) -> None:
        self.session_id = session_id
        self.place = place
        self.memory = memory
        self.guild = guild
        self.opened_at = clock.now()
        self._clock = clock
        self._publish = publish
        self._charts = RoomCharts(clock)
        self._people: Json = {}
        # What the last hour had cost when the pages were told.
        self._used: tuple[object, ...] = ()
        # Who has spoken or shared a screen in the session, as far as anybody had to know.
        self._speakers: set[str] = set()
        # Whose unfinished words the pages show.
        self._interims: set[int] = set()
        # Who is there, and since when.
        self._here: dict[str, float] = {}
        self.present_since(self.opened_at)
        self._withheld = guild.opted_out_ids()
        self._changes = memory.external_changes

    # -- what happens -----------------------------------------------------------------------------------------------

    def observe(self, event: events.Event) -> None:
        """Take one of the room's events."""
        match event:
            case events.InterimTranscribed() if not self.guild.excludes(event.speaker_id):
                self._interims.add(event.speaker_id)
                self._tell_interim(event.speaker_id, event.text)
            case events.UtteranceTranscribed() if not self.guild.excludes(event.speaker_id):
                self._end_interim(event.speaker_id)
                speaker, who = str(event.speaker_id), self._name(event.speaker_id)
                self._tell("heard", {"id": event.utterance_id, "speaker": speaker, "who": who, "text": event.text})
            case events.TurnRecorded():
                for spoken in event.utterances:
                    self._charts.remember_stages(spoken)
                self.add_speakers(part.speaker_id for part in event.turn.parts)
                heard = [spoken.utterance.id for spoken in event.utterances]
                turn = turn_json(self.memory.allowed_part(event.turn))
                self._tell("turn", {"turn": turn, "heard": heard, "total": self.memory.total_turns})
            case events.ScreenNoted():
                if event.note.person_id is not None:
                    self.add_speakers([event.note.person_id])
                if self.shows_notes:
                    self._tell("note", {"note": note_json(event.note)})
            case events.ReplySpoken():
                if (reply := self._charts.add_reply(event)) is not None:
                    self._tell("reply", {"reply": reply})
            case events.LinkChanged():
                self._tell("packets", {"packets": self._charts.add_packets(event), "link": event.state})
            case _:
                self._observe_rest(event)

    def _observe_rest(self, event: events.Event) -> None:
        match event:
            case events.SpeechDropped():
                self._end_interim(event.speaker_id)
                self._tell("dropped", {"id": event.utterance_id, "dropped": self._charts.add_dropped(event.reason)})
            case events.ContextBuilt():
                tokens: Counter[str] = Counter()
                for part in event.parts:
                    tokens[part.kind.value] += part.tokens
                self._tell("prompt", {"answer_to": event.answer_to, "tokens": dict(tokens)})
            case events.QueuesMeasured():
                self._tell("queues", {"queues": self._charts.add_queues(event, unfolded=len(self.memory.window))})
            case events.CompactionLanded():
                self._charts.add_fold(event)
            case events.CompactionFailed():
                self._add_problem("memory", Text("A fold failed, and will be tried again."))
            case events.Problem():
                self._add_problem(event.where, event.sentence)
            case _:
                pass

    def tell_fold(self) -> None:
        """Tell the pages where the cursor is. Call it after the memory has finished a compaction."""
        self._tell("fold", self.memory_json())

    def look(self) -> None:
        """Tell the pages what changed without an event: people, modes, costs. Call it every few seconds."""
        people = self.people_json()
        if people != self._people:
            self._people = people
            self.present_since(self._clock.now())
            self._tell("people", people)
        self._tell_cost(self._clock.monotonic())

    def is_outdated(self) -> bool:
        """Return whether words were forgotten or withheld since the last call, so that pages must be read anew."""
        withheld, changes = self.guild.opted_out_ids(), self.memory.external_changes
        changed = (withheld, changes) != (self._withheld, self._changes)
        if changed:
            # A page that reads anew shows no unfinished words.
            self._interims.clear()
        self._withheld, self._changes = withheld, changes
        return changed

    def present_since(self, at: float) -> frozenset[str]:
        """Return the ids of the people in the channel who were there at a time (UTC epoch seconds) already, as far as
        that was looked at. Each event looks.
        """
        now, here = self._clock.now(), (str(person.id) for person in self.place.members() if not person.is_bot)
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
            "guild": self.place.guild_name,
            "room": self.place.name,
            "opened_at": self.opened_at,
            "people": sum(not person.is_bot for person in self.place.members()),
            "turns": self.memory.total_turns,
        }

    def figures(self) -> Json:
        """Return the charts, and what they are about, without anything that people said."""
        return {
            **self.brief(),
            **self._charts.as_json(self._cost(self._clock.monotonic())),
            "present": self.people_json(),
            "ceiling": {
                "calls": self.guild.costs.ceiling.calls,
                "tokens": self.guild.costs.ceiling.tokens,
                "spoken_s": self.guild.costs.ceiling.spoken_s,
            },
        }

    def memory_json(self) -> Json:
        """Return the session's memory: where its cursor is, and its summary."""
        memory = self.memory
        window, summary = memory.window, memory.summary
        return {
            "mode": memory.mode.value,
            "total": memory.total_turns,
            "cursor": memory.cursor,
            "window_from": window[0].seq if window else memory.total_turns,
            "summary": summary or "",
            "folds": self._charts.folds,
        }

    def people_json(self) -> Json:
        """Return who is in the channel, and how the bot takes part there."""
        return {
            "mode": self.guild.voice_mode.value,
            "silent": self.guild.silence.applies(self.session_id, now=self._clock.now()),
            "people": [
                {
                    "id": str(person.id),
                    "name": person.name,
                    "bot": person.is_bot,
                    "heard": not person.is_bot and not self.guild.excludes(person.id),
                }
                for person in self.place.members()
            ],
        }

    # -- parts ------------------------------------------------------------------------------------------------------

    def _tell(self, kind: str, data: Json, latest_of: str = "") -> None:
        self._publish(self, kind, {"session": self.session_id, **data}, latest_of)

    def _tell_interim(self, user_id: int, text: str) -> None:
        speaker = str(user_id)
        self._tell("interim", {"speaker": speaker, "who": self._name(user_id), "text": text}, latest_of=speaker)

    def _end_interim(self, user_id: int) -> None:
        """Have the pages remove a person's unfinished words."""
        if user_id in self._interims:
            self._interims.discard(user_id)
            self._tell_interim(user_id, "")

    def _name(self, user_id: int) -> str:
        return next((person.name for person in self.place.members() if person.id == user_id), Text("Somebody"))

    def _tell_cost(self, now: float) -> None:
        """Tell the pages what the last hour has cost if it has changed; keep a sample for the chart each minute."""
        cost = self._cost(now)
        kept = self._charts.add_cost(cost, now)
        used = (cost["calls"], cost["tokens"], cost["spoken_s"])
        if kept or used != self._used:
            self._used = used
            self._tell("cost", {"cost": cost, "kept": kept})

    def _cost(self, now: float) -> Json:
        cost = self.guild.costs.last_hour(now)
        return {
            "at": self._clock.now(),
            "calls": cost.calls,
            "tokens": cost.tokens,
            "spoken_s": round(cost.spoken_s, 1),
        }

    def _add_problem(self, where: str, sentence: Text) -> None:
        self._tell("problem", {"problem": self._charts.add_problem(where, sentence)})
