"""A bridge with a simulated speech-to-speech session and a real memory, for the tests of `RealtimeBridge`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC

import numpy as np

from bot import events
from bot.brain.question import CallResult, Question, may_skip
from bot.brain.reply import Reply
from bot.brain.speech_output import SpeechRules
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.frozen_calls import FrozenCall
from bot.brain.tools.tool import NOBODY, Asker, RoomTool, anybody
from bot.brain.tools.toolbox import Toolbox
from bot.events import SpokenText
from bot.guild import PromptPolicy
from bot.llm.model_calls import OPERATOR
from bot.realtime.bridge import RealtimeBridge
from bot.realtime.port import RealtimeServices
from bot.texts.text import verbatim
from bot.words import SESSION, Words
from compaction.budget.tool_outputs import ToolOutputOptions
from compaction.budget.trim import TrimOptions
from compaction.memory.passage import PassageId, PassageKind
from compaction.memory.quotes import Quote
from compaction.memory.recall import RecallHit
from compaction.model import Mode, Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PayloadPart
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from tests.bot.brain.tools.calls import for_all
from tests.fakes.brain import FakeVoice
from tests.fakes.clock import FakeClock
from tests.fakes.hearing import CannedRecogniser
from tests.fakes.questions import asked, perhaps
from tests.fakes.realtime import FakeRealtime
from tests.fakes.room_channel import FakeRoomChannel
from tests.fakes.turn_store import InMemoryTurnStore
from voice.asr.port import RecognitionRequest
from voice.listening.utterance import Utterance
from voice.realtime.settings import RealtimeSettings
from voice.speaking.port import Speech

SPEECH = np.full(16_000, 50, np.int16)


class FakePrompt:
    """Information about Ada and Bo for the model. `guild`: the server's instructions."""

    def __init__(self, observe: events.Observer = events.ignore_event) -> None:
        self.guild = ""
        self.trim = TrimOptions(tool_outputs=ToolOutputOptions(max_tool_output_tokens=200))
        self.asker = NOBODY
        self.broken: Exception | None = None
        self.quotes_about: Callable[[Turn], Sequence[Quote]] = lambda _: ()
        self._observe = observe

    def name_of(self, user_id: int) -> str:
        """Return the name."""
        return {1: "Ada", 2: "Bo"}[user_id]

    def asker_of(self, question: Question) -> Asker:
        """Return the asker, by default one without rights."""
        return self.asker

    async def policy(self) -> PromptPolicy:
        """Return a policy with the server's instructions, or fail."""
        if self.broken is not None:
            raise self.broken
        return PromptPolicy(Mode.SUMMARY, 8_000, enforced=True, trim=self.trim, instructions=self.guild)

    def reply_instructions(self, question: Question) -> tuple[str, ...]:
        """Return one instruction if the model may skip its answer."""
        return ("Be quick.",) if may_skip(question) else ()

    async def find_quotes(self, question: Question) -> Sequence[Quote]:
        """Return what was said earlier."""
        return self.quotes_about(question.turn)

    def languages(self) -> tuple[str, ...]:
        """Return those of the server."""
        return ("en", "de")

    def introductions(self, asker: Asker) -> list[str]:
        """Return the participants' names."""
        return ["Ada", "Bo"]

    def record_sent(self, parts: Sequence[PayloadPart], *, answer_to: Seq) -> None:
        """Report the prompt as an event."""
        self._observe(events.ContextBuilt(tuple(parts), answer_to, 0.0))


class BridgeDesk:
    """A bridge with a fake session, a real memory, and a record of all events."""

    def __init__(self, timeline: SessionTimeline, clock: FakeClock, toolbox: Toolbox, words: Words) -> None:
        self.clock = clock
        self.recogniser = CannedRecogniser()
        self.recogniser.repeats = True
        self.channel = FakeRoomChannel()
        self.seen: list[events.Event] = []
        self.sessions: list[FakeRealtime] = []
        self.over = asyncio.Event()
        # What the session's task does.
        self.lives: Callable[[FakeRealtime], Awaitable[object]] = lambda _: self.over.wait()
        self.timeline = timeline
        self.said = 0
        self.acted: list[bool] = []
        self.prompt = FakePrompt(self.seen.append)
        self.forbidden: tuple[str, ...] = ()
        self.words = words
        services = RealtimeServices(
            settings=RealtimeSettings.model_validate({"model": "gpt-realtime"}),
            new_session=self._new_session,  # type: ignore[arg-type]
            instructions=SystemPrompt("Roomtone"),
            recogniser=self.recogniser,
            fallback_name=verbatim("what I heard"),
            zone=UTC,
            clock=clock,
            observe=self.seen.append,
        )
        self.bridge = RealtimeBridge(
            services,
            self.prompt,
            self.channel,
            timeline=timeline,
            toolbox=toolbox,
            payer=OPERATOR,
            words=self.words,
        )
        self.session = self.sessions[0]

    @property
    def written(self) -> list[str]:
        """Return what the bridge wrote into the channel."""
        return self.channel.written

    def _new_session(
        self, brief: object, on_event: object, run_tool: object, payer: object
    ) -> tuple[FakeRealtime, object]:
        session = FakeRealtime(brief, on_event)  # type: ignore[arg-type]
        session.run_tool = run_tool  # type: ignore[assignment]
        self.sessions.append(session)
        return session, lambda: self.lives(session)

    async def record(self, kind: TurnKind, speaker_id: str, name: str, text: str, *utterances: SpokenText) -> Turn:
        """Add a turn to the memory and notify the bridge, as the room does."""
        self.clock.advance(1.0)
        now = self.clock.now()
        turn = await self.timeline.append(kind, [TurnPart(speaker_id, name, text)], started_at=now, ended_at=now)
        self.bridge.on_turn_recorded(turn, utterances)
        return turn

    async def say(self, user_id: int, text: str) -> Turn:
        """Let somebody say something: recognise a sound and record its turn."""
        self.session.heard.append(text)
        self.recogniser.texts.append(text)
        # Make the sound of each utterance unique.
        self.said += 1
        sound = np.full(16_000, 50 + self.said, np.int16)
        recognition = await self.bridge.recognise(RecognitionRequest(sound, speaker_id=user_id))
        utterance = Utterance("u", user_id, 1.0, 2.0, 2.5, sound)
        spoken, name = SpokenText(utterance, recognition, 2.5, 3.0), self.prompt.name_of(user_id)
        return await self.record(TurnKind.SPEECH, str(user_id), name, recognition.text, spoken)

    async def until_wanted(self, *, acts: bool) -> None:
        """Wait for nothing before a call."""
        self.acted.append(acts)

    def speak(self, question: Question) -> AsyncGenerator[Speech, None]:
        """Let the model answer, without the words that are forbidden."""
        lease = self.words.lease({SESSION}, since=None)
        self.reply = Reply(question, self.clock.monotonic(), lease)
        rules = SpeechRules(self.channel, FakeVoice(), blocked_words=self.forbidden)
        return self.bridge.speak(self.reply, rules, self.until_wanted)

    async def answer(
        self,
        turn: Turn,
        *,
        doubtful: bool = False,
        result_of: FrozenCall | None = None,
        heard: list[str] | None = None,
    ) -> list[str]:
        """Let the model answer, and return the text of each piece. `heard`: gets them as they come."""
        texts = [] if heard is None else heard
        spoken = perhaps(asked(turn)) if doubtful else asked(turn)
        question = spoken if result_of is None else CallResult(turn, result_of)
        async for speech in self.speak(question):
            texts.append(speech.text)
        return texts

    @property
    def payload(self) -> tuple[PayloadPart, ...]:
        """Return what the model had in its context at the last answer."""
        return next(event.parts for event in reversed(self.seen) if isinstance(event, events.ContextBuilt))


async def echo(arguments: Mapping[str, object]) -> str:
    """Be a tool that returns its text."""
    return str(arguments["text"])


@asynccontextmanager
async def desk(*, toolbox: Toolbox | None = None, words: Words | None = None) -> AsyncIterator[BridgeDesk]:
    """Open a bridge whose session is connected."""
    clock = FakeClock()
    toolbox = toolbox or Toolbox(
        [RoomTool("echo", "Echoes.", {"type": "object"}, for_all(echo), asks=False, permits=anybody)]
    )
    async with SessionTimeline.open(
        SessionId("s"),
        store=InMemoryTurnStore(),
        summariser=ExtractiveSummariser(),
        mode=Mode.SUMMARY,
        clock=clock,
        searchable=True,
    ) as timeline:
        made = BridgeDesk(timeline, clock, toolbox, words or Words(monotonic=clock.monotonic))
        made.session.connect()
        yield made


def remembered(question: Turn) -> tuple[Quote, ...]:
    """Return two quotes about a question: one of this session and one of an older session."""
    text = f"[21:04] From memory, Bo: {question.parts[0].text}, at nine."
    return tuple(
        Quote(
            RecallHit(PassageId(3), PassageKind.TURN, session, Seq(3), Seq(3), Seq(3), (), "Bo", 0.0, text, 1.0),
            (TurnPart("2", "Bo", text),),
            f"{when}{text}",
            (f"turn:{session}#3",),
        )
        for when, session in (("", SessionId("s")), ("3 May, ", SessionId("older")))
    )
