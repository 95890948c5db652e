"""A dashboard with its web server, over a session with real memory, store and log. Nobody speaks by sound.

What people say is the bundled evening (`rehearsal/scenarios/evening/history.jsonl`), or what a test wants.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np

from bot import events
from bot.brain.context import build_context_messages
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import Person
from bot.conversation.prompt import sent_prompt
from bot.cost import Cost
from bot.dashboard.access import Access
from bot.dashboard.discord_login import DiscordLogin
from bot.dashboard.history import StoredHistory
from bot.dashboard.live import LOOK_EVERY_S, LiveRooms
from bot.dashboard.servers import OperatorServers
from bot.dashboard.service import DashboardService
from bot.guild import VoiceMode
from bot.logs.output import configured_logging
from bot.memory.recall import Recall
from bot.participation.guild_state import GuildStates
from bot.participation.settings import ParticipationSettings
from bot.participation.spending import Spending
from bot.participation.statistics import mode_sentence
from bot.screen.messages import NotAdmittedError
from bot.screen.screens import ScreenPageConnection, Screens
from bot.server_settings import no_server_settings
from bot.settings import WebSettings
from bot.shards import ONLY_SHARD, Shards
from bot.store.attendance import AttendanceStore, Presence
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.servers import AdmissionStore, UsageStore
from bot.store.sessions import Sessions
from bot.texts.text import Text, joined, verbatim
from bot.web.server import WebServer
from compaction.model import Note, NoteId, NoteSource, SessionId, Turn, TurnKind, TurnPart
from tests.bot.evening import CHANNEL, GUILD, Evening
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import loop_turns
from tests.fakes.room_channel import FakeRoomChannel
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures

ADA, BEN, CHLOE = Person(2001, "Ada", False), Person(2002, "Ben", False), Person(2003, "Chloe", False)
PEOPLE = {person.name: person for person in (ADA, BEN, CHLOE)}
PROMPT = SystemPrompt("Roomtone").text()
# What each stage of a reply took, in ms: endpoint, recognition, first token, first sound.
_STAGES = ((420, 310, 380, 610), (380, 290, 640, 900), (510, 360, 300, 520), (400, 330, 450, 700))


# A server of the second of two shards, and a channel there.
ELSEWHERE = (1 << 22, 1701)


class NoShares(Screens):
    """Admits no page that shares a screen."""

    def __init__(self) -> None:
        """Have no readers."""

    async def admit(self, token: str) -> ScreenPageConnection:
        """Refuse the page."""
        raise NotAdmittedError("used", verbatim("This link has been used already."))

    async def readmit(self, resume_secret: str) -> ScreenPageConnection:
        """Refuse the page."""
        raise NotAdmittedError("used", verbatim("This link has been used already."))


class FakeDirectory:
    """The bot's servers: one, with a lounge. `access`: what people may see, by id."""

    def __init__(self) -> None:
        self.client_id: int | None = 4242
        self.access: dict[int, Access] = {}
        self.asked: list[int] = []
        # Whether Discord answers.
        self.answers = asyncio.Event()
        self.answers.set()

    @property
    def server_names(self) -> Mapping[int, str]:
        """Return the name of the server."""
        return {GUILD: "The Lantern Society"}

    async def names(self, channels: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], tuple[str, str]]:
        """Return the names of the lounge, and of a channel that another process of the bot serves."""
        known = {(GUILD, CHANNEL): ("The Lantern Society", "Lounge"), ELSEWHERE: ("The Night Ferry", "Deck")}
        return {each: names for each, names in known.items() if each in channels}

    async def access_of(self, user_id: int) -> Access:
        """Return what the test says."""
        self.asked.append(user_id)
        await self.answers.wait()
        return self.access.get(user_id, Access())


class DashboardHouse:
    """The session (`evening`), its room, and the dashboard. `web`: the web server."""

    def __init__(self, evening: Evening) -> None:
        self.evening = evening
        self.clock = evening.clock
        self.timeline = evening.timeline
        self.channel = FakeRoomChannel(guild_id=GUILD, channel_id=CHANNEL, people=[ADA, BEN, CHLOE])
        self.directory = FakeDirectory()
        self.opt_outs = FakeOptOuts()
        self.participation = GuildStates(
            no_server_settings(), self.opt_outs, ParticipationSettings(), wake_names=("Roomtone",), clock=self.clock
        )
        self.live = LiveRooms(self.clock)
        recall = Recall(SqlRecallIndex(evening.database, VectorStore(evening.database)), evening.store)
        self.history = StoredHistory(evening.database, evening.store, recall)
        self.web: WebServer
        self.links: list[str] = []
        self.service: DashboardService
        self.observe: events.Observer = events.ignore_event
        self._counters = dict.fromkeys(("received", "decoded", "lost", "late", "recovered", "concealed"), 0)
        self._number = 0
        self._ended_at = 0.0

    @property
    def base(self) -> str:
        """Return the origin of the pages."""
        return f"http://127.0.0.1:{self.web.port}"

    async def attend(self, person_id: str) -> None:
        """Let somebody have been in the channel from the beginning, as the room records it."""
        came = Presence(person_id, 0.0, joined=True)
        await AttendanceStore(self.evening.database).add(self.evening.session_id, [came])

    # -- what happens in the room -----------------------------------------------------------------------------------

    async def say(self, text: str, who: Person = ADA) -> Turn:
        """Let somebody say something, as a room does: it is heard, then it becomes a turn."""
        self.clock.advance(3.0)
        stages = _STAGES[self._number % len(_STAGES)]
        self._number += 1
        ended = self._ended_at = self.clock.monotonic()
        sound = Utterance(f"u{self._number}", who.id, ended - 2, ended, ended + stages[0] / 1000, np.zeros(1, np.int16))
        begun, text_at = sound.closed_at, sound.closed_at + stages[1] / 1000
        spoken = events.SpokenText(sound, Recognition(text, "en", -0.2, 1.0, 0.0, 2.0, 0.2), begun, text_at)
        self.observe(events.UtteranceTranscribed(sound.id, who.id, text, ended - 2, ended, text_at))
        turn = await self.append(TurnKind.SPEECH, TurnPart(str(who.id), who.name, text))
        self.observe(events.TurnRecorded(turn, text_at, (spoken,)))
        return turn

    def speak_on(self, text: str, who: Person = ADA) -> None:
        """Let somebody pause within speech that goes on: `text` is what was recognised so far."""
        self.observe(
            events.InterimTranscribed(
                who.id, text, self.clock.monotonic(), self.clock.monotonic(), self.clock.monotonic()
            )
        )

    def drop(self, who: Person = ADA) -> None:
        """Let somebody's speech be dropped by a guard."""
        now = self.clock.monotonic()
        self.observe(events.SpeechDropped("dropped", who.id, "gibberish", "", now - 2, now, now))

    async def answer(self, turn: Turn, text: str) -> Turn:
        """Let the bot answer the last turn: the prompt is built and logged as for a real reply."""
        first, sound = _STAGES[turn.seq % len(_STAGES)][2:]
        context = build_context_messages(
            self.timeline,
            turn,
            system=(PROMPT,),
            max_input_tokens=self.evening.max_input_tokens,
            now=self.clock.now(),
            zone=UTC,
            toolbox=Toolbox(),
        )
        self.evening.upkeep.on_payload_sent(context.parts)
        self.evening.upkeep.on_prompt_sent(
            sent_prompt(context, context.parts, self.evening.session_id, at=self.clock.now())
        )
        await self.evening.upkeep.run_once()
        self.observe(events.ContextBuilt(tuple(context.parts), turn.seq, self.clock.monotonic()))
        await self.fold()
        asked_at = self._ended_at
        self.clock.advance(2.0)
        part = TurnPart("assistant", "Roomtone", text)
        said = await self.append(TurnKind.ASSISTANT, part, answers=turn)
        self.observe(events.TurnRecorded(said, self.clock.monotonic()))
        stages = _STAGES[(self._number - 1) % len(_STAGES)]
        heard_at = asked_at + (stages[0] + stages[1] + sound) / 1000 + 0.08
        self.observe(
            events.ReplySpoken(
                text, turn.seq, f"u{self._number}", heard_at, heard_at + 2, False, float(first), float(sound)
            )
        )
        guild = await self.participation.of_guild(GUILD)
        guild.costs.add(
            Cost(calls=1, tokens=sum(part.tokens for part in context.parts), spoken_s=2.4), now=self.clock.monotonic()
        )
        return said

    async def append(self, kind: TurnKind, part: TurnPart, *, answers: Turn | None = None) -> Turn:
        """Append a turn to the memory."""
        now = self.clock.now()
        seq = None if answers is None else answers.seq
        return await self.timeline.append(kind, (part,), started_at=now, ended_at=now + 2.0, answers=seq)

    async def fold(self) -> None:
        """Fold what is due, and tell of it."""
        before = self.timeline.cursor
        self.timeline.context(max_input_tokens=self.evening.max_input_tokens)
        await self.timeline.settle()
        if self.timeline.cursor != before:
            summary = self.timeline.summary or ""
            self.observe(
                events.CompactionLanded(
                    before, self.timeline.cursor, self.timeline.cursor - 1, summary, 840.0, self.clock.monotonic()
                )
            )

    async def note(self, what: str, who: Person = ADA, *, why: str = "new text came up") -> Note:
        """Take a note about a shared screen."""
        self._number += 1
        note = Note(NoteId(f"n{self._number}"), self.clock.now(), who.name, what, why, NoteSource.OCR)
        await self.timeline.add_note(note)
        self.observe(events.ScreenNoted(note, self.clock.monotonic()))
        return note

    def measure(self, packets: int = 240, *, lost: int = 0, recognise: int = 0) -> None:
        """Let five seconds pass, and measure packets, queues and how the bot takes part."""
        self.clock.advance(5.0)
        self._counters["received"] += packets
        self._counters["decoded"] += packets - 3
        self._counters["lost"] += lost
        self._counters["recovered"] += lost // 2
        now = self.clock.monotonic()
        self.observe(events.ConnectionChanged("connected", dict(self._counters), now))
        lengths = {"recognise": recognise, "record": 0, "answer": 0, "play": recognise // 2, "store": 3}
        queues = tuple(QueueFigures(name, waiting, 64) for name, waiting in lengths.items())
        self.observe(events.QueuesMeasured(queues, now))
        answers = Text("I answer with {responder}.", responder="o3")
        self.observe(events.StatusTold(joined((answers, mode_sentence(VoiceMode.ENGAGED)), "\n")))

    async def play(self, turns: int = 58) -> None:
        """Let people say the bundled evening, again if it is too short, and fold what is due.

        Whatever the bot says there answers the turn before it.
        """
        talk = resources.files("rehearsal.scenarios") / "evening" / "history.jsonl"
        last: Turn | None = None
        lines = talk.read_text("utf-8").splitlines()
        for number, line in enumerate((lines * (turns // len(lines) + 1))[:turns]):
            said = json.loads(line)
            if said.get("kind") == "assistant" and last is not None:
                last = await self.answer(last, said["text"])
            else:
                last = await self.say(said["text"], PEOPLE[said["speaker"]])
            if number % 2:
                self.measure(200 + 37 * number % 120, lost=number % 5 == 1, recognise=number % 7 == 3)
        await self.fold()

    async def open_elsewhere(self) -> SessionId:
        """Let a room of the second of two shards open in another process; return its session."""
        guild_id, channel_id = ELSEWHERE
        sessions = Sessions(self.evening.database, self.clock)
        opened = await sessions.open(
            guild_id=guild_id, channel_id=channel_id, resume_within_s=0, session_id=SessionId("elsewhere")
        )
        return opened.session.id

    async def look(self) -> None:
        """Let the dashboard look at its rooms, as it does every few seconds."""
        self.clock.advance(LOOK_EVERY_S)
        await loop_turns(3)

    async def opt_out(self, who: Person) -> None:
        """Let somebody opt out of being heard."""
        await self.participation.set_opt_out(GUILD, who.id, out=True)
        await self.look()


@asynccontextmanager
async def open_house(
    folder: Path,
    *,
    settings: WebSettings | None = None,
    discord_login: DiscordLogin | None = None,
    shown: bool = True,
    shards: Shards = ONLY_SHARD,
    clock: FakeClock | None = None,
) -> AsyncIterator[DashboardHouse]:
    """Open the house. `shown`: its room is open; else there is only history. `shards`: of this process."""
    async with AsyncExitStack() as stack:
        stack.enter_context(configured_logging(data_dir=folder, console=io.StringIO()))
        evening = await stack.enter_async_context(Evening(folder / "roomtone.db", clock=clock))
        house = DashboardHouse(evening)
        await stack.enter_async_context(house.live.running())
        guild = await house.participation.of_guild(GUILD)
        house.timeline.withhold(guild.opted_out_ids)
        house.timeline.compactor.on_change = partial(guild.words.take_back, turns=True)
        spending = Spending(UsageStore(evening.database), ParticipationSettings(), clock=evening.clock)
        house.service = DashboardService(
            house.live,
            Sessions(evening.database, evening.clock),
            house.participation,
            house.history,
            OperatorServers(spending, AdmissionStore(evening.database)),
            clock=evening.clock,
            discord_login=discord_login,
            shards=shards,
        )
        house.service.directory = house.directory
        house.web = await stack.enter_async_context(
            WebServer(
                settings or WebSettings(port=0),
                NoShares(),
                dashboard=house.service,
                on_login_link=house.links.append,
                clock=evening.clock,
            )
        )
        await house.web.start()
        if shown:
            house.observe = stack.enter_context(
                house.live.show(evening.session_id, house.channel, evening.timeline, guild)
            )
        yield house
