"""One room: a voice session in one channel, from the bot's entrance to its leaving.

It composes: sound becomes text (`hearing`), text becomes turns in the session's memory, the decider judges each
turn, and the replier speaks. It owns the tasks of all that; what they do is decided elsewhere. The session
outlives a crash: the room that starts next in the channel goes on with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.context import build_context_messages
from bot.brain.decider import Said, decide
from bot.brain.reply import Question, Replier, Reply
from bot.brain.wakeword import is_addressed
from bot.hearing import Hearing, SpokenText
from bot.interruption import Interruption
from bot.minutes import Minutes
from bot.recall import Place as RecallPlace
from compaction.errors import StoreError
from compaction.events import Failed, Landed
from voice.asr.glossary import choose_glossary
from voice.errors import LinkError
from voice.listening.ears import Ears
from voice.speaking.playback import Playback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import tzinfo

    from bot.brain.context import ModelContext
    from bot.brain.decider import Decision
    from bot.brain.instructions import Instructions
    from bot.brain.quoting import Quoting
    from bot.brain.responder import Responder
    from bot.brain.tools.tool import Tool
    from bot.clock import Clock
    from bot.keeper import Keeper
    from bot.place import Link, Moved, Place
    from bot.policy import GuildPolicy, Terms
    from bot.realtime import RealtimeTalk
    from bot.settings import BrainSettings, RoomSettings
    from bot.store.sessions import Opened, Sessions
    from compaction.events import CompactionEvent
    from compaction.model import SessionId
    from compaction.session import SessionMemory
    from voice.asr.port import Recognizer
    from voice.listening.turn import TurnJudge
    from voice.listening.vad import SpeechProbability
    from voice.settings import AsrSettings, ListeningSettings, SpeakingSettings
    from voice.speaking.moderation import Moderator
    from voice.speaking.port import Synthesizer
    from voice.transport.heard import Heard

log = structlog.get_logger()

# How often the room looks whether it is alone, and tells its packet counters.
LOOK_AROUND_S = 5.0
# An ending room's time for its last words to become turns, and for the reply it breaks off to be recorded.
LAST_WORDS_S = 6.0
HUSH_S = 2.0
# And for what people said of themselves to be kept.
KEEPING_S = 4.0
# What is said over a reply waits so long for the broken-off reply to become a turn before it.
SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Means:
    """What every room of the process works with, made and closed by the composition root."""

    sessions: Sessions
    # Opens a session's memory and tells its compaction events to the second argument.
    open_memory: Callable[
        [SessionId, int, Callable[[CompactionEvent], None]], AbstractAsyncContextManager[SessionMemory]
    ]
    recognizer: Recognizer
    detector: SpeechProbability
    synthesizer: Synthesizer
    # One a room: the embedded responder remembers whether it has introduced itself.
    new_responder: Callable[[], Responder]
    instructions: Instructions
    max_input_tokens: int
    # Whose clock the model and the people are told times in.
    zone: tzinfo
    clock: Clock
    observe: events.Observer
    room: RoomSettings
    brain: BrainSettings
    listening: ListeningSettings
    asr: AsrSettings
    speaking: SpeakingSettings
    # What /status says it thinks with, for example `the language model gpt-4.1-mini`.
    mind: str
    # Who tends a session's memory beside the conversation; None: nobody does.
    keeping: Callable[[SessionId, int, SessionMemory], Keeper | None] = lambda *_: None
    # Who finds what was said before the window, for the prompt of a reply; None: nobody does.
    quoting: Callable[[RecallPlace], Quoting | None] = lambda _: None
    # What a model may call while it answers, for a session.
    tools: Callable[[RecallPlace], tuple[Tool, ...]] = lambda _: ()
    # Judges what the bot wants to say before it is spoken; None: nobody does.
    moderator: Moderator | None = None
    # Says in pauses who sounds finished; without one silence alone ends speech.
    judge: TurnJudge | None = None
    # Makes a room's speech-to-speech out of the room's own parts; None: recogniser, responder and voice serve.
    talk: Callable[..., RealtimeTalk] | None = None
    # What the guild has chosen of mode and budget; None: `max_input_tokens` and the session's own mode hold.
    policy: GuildPolicy | None = None


class Room:
    """A voice session in `place`. `run` is its life; made anew for each start.

    *Ownership*: the supervisor runs it in a task. *Cancellation*: what is stored stays stored, and the session
    stays open for the next room.
    """

    def __init__(self, place: Place, means: Means) -> None:
        self._place = place
        self._means = means
        self._clock = means.clock
        self._observe = means.observe
        self._opened = asyncio.Event()
        self._closing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._moves: asyncio.Queue[Moved] = asyncio.Queue()
        self._names: dict[int, str] = {}
        self._opened_at = self._clock.monotonic()
        self._expelled = False
        self._memory: SessionMemory | None = None
        self._quoting: Quoting | None = None
        self._keeper: Keeper | None = None
        self._minutes: Minutes | None = None
        self._playback = Playback(volume=means.speaking.volume, monotonic=self._clock.monotonic)
        self._ears = Ears(means.detector, means.listening, judged=means.judge is not None)
        self._talk = self._new_talk()
        self._hearing = self._new_hearing()
        self._replier = self._new_replier()
        self._interruption = Interruption(
            voiced_s=lambda: self._ears.voiced_s,
            playback=self._playback,
            replier=self._replier,
            settings=means.speaking,
            wake_names=means.brain.wake_names,
            clock=means.clock,
        )

    # -- what the supervisor asks ---------------------------------------------------------------------------

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot is in the channel and hears it."""
        return self._opened

    async def run(self) -> str:
        """Live until closed; return the reason. Raises `LinkError`, `StoreError` or whatever broke."""
        opened = await self._means.sessions.open(
            guild_id=self._place.guild_id,
            channel_id=self._place.channel_id,
            resume_within_s=self._means.room.resume_within_s,
        )
        session_id = opened.session.id
        with structlog.contextvars.bound_contextvars(session_id=session_id, guild_id=self._place.guild_id):
            async with self._means.open_memory(session_id, self._place.guild_id, self._on_compaction) as memory:
                self._memory = memory
                here = RecallPlace(session_id, self._place.guild_id, self._place.channel_id)
                if self._talk is not None:
                    self._talk.open(memory, self._means.tools(here))
                self._quoting = self._means.quoting(here)
                self._keeper = self._means.keeping(session_id, self._place.guild_id, memory)
                minutes = self._minutes = Minutes(
                    memory,
                    self._place,
                    own_name=self._means.brain.name,
                    clock=self._clock,
                    observe=self._recorded,
                )
                reason = "crashed"
                try:
                    reason = await self._live(opened, minutes)
                    await self._end_session(memory, reason)
                finally:
                    self._observe(events.RoomClosed(session_id, reason, self._clock.monotonic()))
                return reason

    def close(self, reason: str) -> None:
        """Ask the room to end in order; `run` returns `reason`."""
        if not self._closing.done():
            self._closing.set_result(reason)

    def moved(self, moved: Moved) -> None:
        """Somebody came or went; noted as a turn of its own."""
        self._moves.put_nowait(moved)

    def expelled(self) -> None:
        """Discord says that the bot is in no voice channel any more; a connection that ends now ends in order."""
        self._expelled = True

    def status(self) -> str:
        """Return how the room is, in plain sentences."""
        if self._memory is None or not self._opened.is_set():
            return f"I am coming to {self._place.name}."
        minutes = round((self._clock.monotonic() - self._opened_at) / 60)
        people = sum(not person.is_bot for person in self._place.company())
        total = self._memory.total_turns
        remembered = f"I remember {_count(total, 'turn', 'turns')} of this session"
        if self._memory.cursor:
            remembered += f", the first {self._memory.cursor} of them as a summary"
        return (
            f"I have been in {self._place.name} for {_count(minutes, 'minute', 'minutes')}, with "
            f"{_count(people, 'person', 'people')}. {remembered}. {self._left_out()}"
            f"I answer with {self._means.mind if self._talk is None else self._talk.mind}."
        )

    def _left_out(self) -> str:
        """Return what was heard and is no turn, as a sentence; empty if that is nothing."""
        dropped = self._hearing.dropped
        if not dropped:
            return ""
        reasons = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in dropped.most_common())
        return f"I left out {_count(dropped.total(), 'sound', 'sounds')} ({reasons}). "

    # -- life -----------------------------------------------------------------------------------------------

    async def _live(self, opened: Opened, minutes: Minutes) -> str:
        """Be in the channel until asked to leave; return why."""
        async with self._place.connect(self._playback, self._take) as link:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self._hearing.run(), name="hearing"),
                    tasks.create_task(self._replier.run(), name="replies"),
                    tasks.create_task(self._interruption.run(), name="interruption"),
                    tasks.create_task(self._note_moves(minutes), name="membership"),
                    tasks.create_task(self._look_around(link), name="look-around"),
                    tasks.create_task(self._watch(link), name="link"),
                ]
                if self._keeper is not None:
                    running.append(tasks.create_task(self._keeper.run(), name="keeper"))
                if self._talk is not None:
                    running.append(tasks.create_task(self._talk.run(), name="speech-to-speech"))
                await self._enter(opened)
                reason = await self._closing
                await self._last_words()
                for task in running:
                    task.cancel()
            self._tell_link(link)
        return reason

    async def _enter(self, opened: Opened) -> None:
        self._opened_at = self._clock.monotonic()
        log.info("room_opened", channel_id=self._place.channel_id, resumed=opened.resumed)
        self._opened.set()
        self._observe(
            events.RoomOpened(
                opened.session.id, self._place.guild_id, self._place.channel_id, opened.resumed, self._opened_at
            )
        )
        if self._keeper is not None:
            self._keeper.came(str(person.id) for person in self._place.company())
        if self._means.room.notice:
            await self._place.write(self._means.room.notice)

    async def _last_words(self) -> None:
        """Let what was just said become turns, and what was just being said be recorded as far as it was heard."""
        await self._replier.hush(within_s=HUSH_S)
        await self._hearing.finish([person.id for person in self._place.company()], within_s=LAST_WORDS_S)

    async def _end_session(self, memory: SessionMemory, reason: str) -> None:
        if self._keeper is not None:
            await self._keeper.finish(within_s=KEEPING_S)
        try:
            await memory.end()
        except StoreError as error:
            # Turns are stored already; the next process ends the session or goes on with it.
            self._report("session", str(error))
            return
        log.info("session_ended", reason=reason, total_turns=memory.total_turns, cursor=memory.cursor)

    async def _look_around(self, link: Link) -> None:
        """Leave when nobody is there for long, and tell the packet counters now and then."""
        alone_since: float | None = None
        while True:
            await self._clock.sleep(LOOK_AROUND_S)
            self._tell_link(link)
            now = self._clock.monotonic()
            if any(not person.is_bot for person in self._place.company()):
                alone_since = None
                continue
            alone_since = now if alone_since is None else alone_since
            if now - alone_since >= self._means.room.leave_when_empty_s:
                self.close("empty")

    async def _watch(self, link: Link) -> None:
        """End with the connection: in order when somebody took the bot out of the channel, else by `LinkError`."""
        reason = await link.lost()
        if self._expelled:
            self.close("expelled")
            return
        raise LinkError(reason)

    def _tell_link(self, link: Link) -> None:
        self._observe(events.LinkChanged(link.state, link.counters, self._clock.monotonic()))

    def _on_compaction(self, event: CompactionEvent) -> None:
        now = self._clock.monotonic()
        match event:
            case Landed():
                if self._keeper is not None:
                    self._keeper.landed()
                if self._talk is not None:
                    # The session is still telling what has landed; it can be asked a moment later.
                    asyncio.get_running_loop().call_soon(self._talk.landed)
                self._observe(
                    events.CompactionLanded(
                        old_cursor=event.old_cursor,
                        new_cursor=event.new_cursor,
                        covered_through_turn=event.covered_through_turn,
                        summary=event.summary,
                        latency_ms=event.latency_ms,
                        degraded=event.degraded,
                        at=now,
                    )
                )
            case Failed():
                self._observe(events.CompactionFailed(event.cursor, event.error, now))
            case _:
                pass

    def _recorded(self, event: events.Event) -> None:
        """Tell what the minutes recorded to whoever watches, and to who tends the memory."""
        if self._keeper is not None and isinstance(event, events.TurnRecorded):
            self._keeper.turned()
        if self._talk is not None and isinstance(event, events.TurnRecorded):
            self._talk.recorded(event.turn)
        self._observe(event)

    def _report(self, where: str, sentence: str) -> None:
        """Tell a trouble to the log and to whoever watches."""
        log.error("room_trouble", where=where, problem=sentence)
        self._observe(events.Problem(where, sentence, self._clock.monotonic()))

    # -- people ---------------------------------------------------------------------------------------------

    async def _note_moves(self, minutes: Minutes) -> None:
        while True:
            moved = await self._moves.get()
            self._names[moved.person.id] = moved.person.name
            if not moved.joined:
                self._hearing.forget(moved.person.id)
            elif self._keeper is not None:
                self._keeper.came([str(moved.person.id)])
            await minutes.moved(moved)

    def _present(self) -> list[tuple[str, str]]:
        """Return who is in the channel now, as turns know them: id and display name."""
        return [(str(person.id), person.name) for person in self._place.company() if not person.is_bot]

    def _introductions(self) -> list[str]:
        """Return a line on each person who is here, with what they have said of themselves at other times."""
        if self._keeper is None:
            return [name for _, name in self._present()]
        return self._keeper.introductions(self._present())

    def _name(self, user_id: int) -> str:
        """Return a person's name, also of one who has just left."""
        self._names.update((person.id, person.name) for person in self._place.company())
        return self._names.get(user_id, "Somebody")

    def _glossary(self) -> tuple[str, ...]:
        return choose_glossary(
            wake_names=self._means.brain.wake_names,
            display_names=[person.name for person in self._place.company()],
            words=(*self._means.asr.glossary_words, self._place.guild_name, self._place.name),
            max_chars=self._means.asr.glossary_max_chars,
        )

    # -- speech becomes turns -------------------------------------------------------------------------------

    def _new_hearing(self) -> Hearing:
        means = self._means
        return Hearing(
            ears=self._ears,
            recognizer=self._talk or means.recognizer,
            glossary=self._glossary,
            language=None if means.asr.language == "auto" else means.asr.language,
            settings=means.listening,
            clock=means.clock,
            observe=self._overhear,
            on_moment=self._on_moment,
            judge=means.judge,
            urgent=lambda text: is_addressed(text, means.brain.wake_names),
            own_words=self._playback.words_between,
        )

    def _take(self, batch: Sequence[Heard]) -> None:
        """Take what the voice connection handed on. Called on the event loop."""
        self._hearing.take(batch)
        self._interruption.heard()

    def _overhear(self, event: events.Event) -> None:
        """Tell what hearing found to whoever watches, and at once to whom it may interrupt."""
        self._observe(event)
        self._interruption.understood(event)

    async def _on_moment(self, moment: tuple[SpokenText, ...]) -> None:
        """Record what was said, decide whether to answer, and write the turn's one log line."""
        assert self._minutes is not None, "the minutes are opened before anything is heard"
        await self._replier.settled(within_s=SETTLE_S)
        moment_at = self._clock.monotonic()
        if self._talk is not None:
            self._talk.saying(moment)
        turn = await self._minutes.said(moment, [self._name(spoken.user_id) for spoken in moment])
        spoken, decision = self._judge(moment)
        if decision.answer and not self._closing.done():
            self._replier.ask(Question(turn, spoken.utterance.id, spoken.ended_at))
        self._minutes.log_said(moment, turn, moment_at=moment_at, answered=spoken, decision=decision)

    def _judge(self, moment: tuple[SpokenText, ...]) -> tuple[SpokenText, Decision]:
        """Return what of a moment is to be answered, the last of it first, and why; or the last thing said."""
        decisions = [(spoken, self._decide(spoken.user_id, spoken.text)) for spoken in reversed(moment)]
        return next((found for found in decisions if found[1].answer), decisions[0])

    def _decide(self, user_id: int, text: str) -> Decision:
        company = self._place.company()
        speaker = next((person for person in company if person.id == user_id), None)
        said = Said(
            text,
            by_bot=speaker is not None and speaker.is_bot,
            people=sum(not person.is_bot for person in company),
            reply_queued=self._replier.queued,
        )
        return decide(said, wake_names=self._means.brain.wake_names)

    # -- answers --------------------------------------------------------------------------------------------

    def _new_replier(self) -> Replier:
        return Replier(
            build_context=self._build_context,
            responder=self._means.new_responder(),
            synthesizer=self._means.synthesizer,
            playback=self._playback,
            clock=self._clock,
            timeout_s=self._means.brain.reply_timeout_s,
            on_reply=self._on_reply,
            pronunciations=self._means.speaking.pronounced_in(self._place.guild_id),
            blocked_words=self._means.speaking.blocked_in(self._place.guild_id),
            moderator=self._means.moderator,
            direct=self._talk,
        )

    def _new_talk(self) -> RealtimeTalk | None:
        means = self._means
        if means.talk is None:
            return None
        return means.talk(
            instructions=means.instructions,
            recognizer=means.recognizer,
            name_of=self._name,
            present=self._introductions,
            write=self._place.write,
            mind=means.mind,
            max_input_tokens=means.max_input_tokens,
            zone=means.zone,
            observe=self._observe,
        )

    async def _build_context(self, question: Question) -> ModelContext:
        assert self._memory is not None, "the memory is opened before anything is asked"
        terms = await self._terms(self._memory)
        quotes = () if self._quoting is None else await self._quoting.quotes(question.turn, self._memory)
        context = build_context_messages(
            self._memory,
            question.turn,
            system=(self._means.instructions.text(),),
            max_input_tokens=self._means.max_input_tokens if terms is None else terms.max_input_tokens,
            now=self._clock.now(),
            zone=self._means.zone,
            quotes=quotes,
            participants=() if self._keeper is None else self._keeper.participants(self._present()),
            terms=terms,
        )
        if self._keeper is not None:
            self._keeper.sent(context.parts)
        self._observe(events.ContextBuilt(context.parts, question.turn.seq, self._clock.monotonic()))
        return context

    async def _terms(self, memory: SessionMemory) -> Terms | None:
        """Return on what terms the guild's prompts are built, and go over to its mode if that has changed."""
        if self._means.policy is None:
            return None
        terms = await self._means.policy.terms(self._place.guild_id)
        try:
            await memory.choose(terms.mode)
        except StoreError as error:
            # The old mode goes on; the next reply tries again.
            self._report("memory_mode", str(error))
        return terms

    async def _on_reply(self, reply: Reply) -> None:
        """Record what was heard of an answer, and write what failed into the channel."""
        assert self._minutes is not None, "the minutes are opened before anything is asked"
        if reply.failure is not None:
            self._observe(events.Problem("reply", reply.failure, self._clock.monotonic()))
            # The people asked for an answer: what could not be spoken can be read.
            unsaid = f"\nI wanted to say: {reply.unsaid}" if reply.unsaid else ""
            await self._place.write(reply.failure + unsaid)
        if not reply.text or reply.first_audio_at is None:
            return
        await self._minutes.answered(reply, reply.first_audio_at)
        self._observe(
            events.ReplySpoken(
                text=reply.text,
                answer_to=reply.question.turn.seq,
                utterance_id=reply.question.utterance_id,
                first_audio_at=reply.first_audio_at,
                ended_at=reply.ended_at,
                interrupted=reply.interrupted,
                model_first_token_ms=reply.model_first_token_ms,
                synthesis_first_audio_ms=reply.synthesis_first_audio_ms,
            )
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
