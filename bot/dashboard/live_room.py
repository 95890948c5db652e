"""What the dashboard knows of one open room: it tells the pages the room's events, and keeps its `room_charts`.

Words are not kept here: a page that opens reads them from the session's memory and store, so that nothing outlives its
deletion.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bot import events
from bot.dashboard.messages import note_json, turn_json
from bot.dashboard.room_charts import RoomCharts
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.participation.guild_participation import GuildParticipation
    from bot.web.dashboard_port import Json
    from compaction.model import SessionId
    from compaction.session import SessionMemory


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
