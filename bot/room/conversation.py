"""The conversation of one room: what is heard becomes turns, each is judged, and what deserves it is answered.

It owns the senses and the voice of its room. How long the room lives, and where, is `bot.room.room`'s business.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.decider import PendingReply
from bot.brain.reply import Question, Replier
from bot.brain.wakeword import mentions_name
from bot.channel.participants import Participants
from bot.participation.part import Participation, Working
from bot.room.asker import asker_of
from bot.room.barge_in import BargeInHandler
from bot.room.hearing import Hearing
from bot.room.preemptive_reply import PreemptiveReply, reads_finished
from bot.room.prompt import PromptBuilder
from bot.room.reply_recorder import ReplyRecorder
from bot.room.tasks import lasting
from bot.room.turn_recorder import TurnRecorder
from bot.screen.commentary import ScreenCommentary
from voice.asr.glossary import choose_glossary
from voice.listening.listener import RoomListener
from voice.speaking.playback import Playback

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from bot.brain.decider import Decision
    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.tools.toolbox import Toolbox
    from bot.channel.port import Moved, Place
    from bot.events import SpokenText
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.standing import GuildParticipation
    from bot.realtime.bridge import RealtimeTalk
    from bot.room.services import RoomServices
    from compaction.model import Note, SessionId, Turn
    from compaction.session import SessionMemory
    from voice.transport.audio_events import AudioEvent

log = structlog.get_logger()

# An ending conversation's time for its last words to become turns, and for the reply it breaks off to be recorded.
LAST_WORDS_S = 6.0
SHUT_DOWN_S = 2.0
# What is said over a reply waits so long for the broken-off reply to become a turn before it.
RECORD_S = 1.0


class Conversation:
    """One session's talk in `place`, written into `memory`. `standing`: how the bot stands on this server.

    `report` tells a trouble to the log and to whoever watches: where, and a plain sentence. *Ownership*: `run` is the
    room's task; everything is called on its loop. *Cancellation* of `run`: `finish` first, to keep what was said.
    """

    def __init__(
        self,
        place: Place,
        means: RoomServices,
        *,
        session_id: SessionId,
        standing: GuildParticipation,
        memory: SessionMemory,
        keeper: MemoryUpkeep | None,
        quoting: QuoteFinder | None,
        toolbox: Toolbox,
        report: Callable[[str, str], None],
    ) -> None:
        self._place = place
        self._means = means
        self._clock = means.clock
        self._observe = means.observe
        self._keeper = keeper
        self._memory = memory
        self._quoting = quoting
        self._company = Participants(place)
        self._finishing = False
        self._part = Participation(
            means.participation,
            standing,
            session_id=session_id,
            place=place,
            company=self._company,
            clock=means.clock,
            working=self._working,
            discerning=self._discerning,
            stop=self._fall_silent,
            think=self._think_aloud,
        )
        self._minutes = TurnRecorder(
            memory, place, own_name=means.brain.name, clock=means.clock, observe=self._recorded
        )
        self._afterwards = ReplyRecorder(
            place, self._part, self._minutes, exchanges=toolbox.exchanges, clock=means.clock, observe=means.observe
        )
        self._prompting = PromptBuilder(
            means,
            guild_id=place.guild_id,
            memory=memory,
            company=self._company,
            keeper=keeper,
            quoting=quoting,
            toolbox=toolbox,
            part=self._part,
            report=report,
        )
        self.playback = Playback(monotonic=self._clock.monotonic)
        self._ears = RoomListener(means.detector, judged=means.judge is not None)
        self._talk = self._new_talk()
        if self._talk is not None:
            self._talk.open(memory, toolbox, quoting)
        self._head_start = PreemptiveReply(
            build_context=self._prompting.context, responder=means.new_responder(), clock=means.clock
        )
        self._hearing = self._new_hearing()
        self._replier = self._new_replier()
        self._interruption = BargeInHandler(
            voiced_s=lambda: self._ears.voiced_s,
            playback=self.playback,
            replier=self._replier,
            stop_after_s=means.speaking.stop_after_s,
            wake_names=lambda: self._part.wake_names,
            clock=means.clock,
        )

        self._commentary = self._new_commentary()

    # -- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen and take part, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lasting(self._hearing.run()), name="hearing")
            tasks.create_task(lasting(self._replier.run()), name="replies")
            tasks.create_task(lasting(self._head_start.run()), name="head-start")
            tasks.create_task(lasting(self._interruption.run()), name="interruption")
            tasks.create_task(lasting(self._part.run()), name="participation")
            if self._talk is not None:
                tasks.create_task(lasting(self._talk.run()), name="speech-to-speech")
            if self._commentary is not None:
                tasks.create_task(lasting(self._commentary.run()), name="commentary")

    async def finish(self) -> None:
        """Let what was just said become turns, and what was just being said be recorded as far as it was heard."""
        self._finishing = True
        await self._replier.shut_down(within_s=SHUT_DOWN_S)
        await self._hearing.finish([person.id for person in self._place.company()], within_s=LAST_WORDS_S)

    # -- what the room asks and tells -------------------------------------------------------------------------

    @property
    def dropped(self) -> Counter[str]:
        """Return what was heard and is no turn, by reason."""
        return self._hearing.dropped

    @property
    def mind(self) -> str:
        """Return what answers, in the words of /status."""
        return self._means.mind if self._talk is None else self._talk.mind

    def participation(self) -> str:
        """Return what was decided and what it cost, in sentences for /status."""
        return self._part.status()

    def excludes(self, user_id: int) -> bool:
        """Return whether a person is not to be heard. Called from other threads too."""
        return self._part.excludes(user_id)

    def take(self, batch: Sequence[AudioEvent]) -> None:
        """Take what the voice connection handed on. Called on the event loop."""
        self._hearing.take(batch)
        self._interruption.heard()

    async def moved(self, moved: Moved) -> None:
        """Record that somebody came or went."""
        self._company.note(moved.person)
        if moved.joined:
            self._part.came()
        else:
            self._part.left(moved.person.id)
            self._hearing.forget(moved.person.id)
        if moved.joined and self._keeper is not None:
            self._keeper.came([str(moved.person.id)])
        if not self._part.excludes(moved.person.id):
            await self._minutes.moved(moved)

    def landed(self) -> None:
        """Take note that a batch was folded."""
        if self._talk is not None:
            # The session is still telling what has landed; it can be asked a moment later.
            asyncio.get_running_loop().call_soon(self._talk.landed)

    def noted(self, note: Note) -> None:
        """Take note of what was seen on a shared screen."""
        if self._commentary is not None:
            self._commentary.on_note(note)
        if self._talk is not None:
            self._talk.landed()
        self._observe(events.ScreenNoted(note, self._clock.monotonic()))

    def recapped(self, turn: Turn) -> None:
        """Take note of the turn that stands for a share that is over."""
        self._recorded(events.TurnRecorded(turn, self._clock.monotonic()))

    def _recorded(self, event: events.Event) -> None:
        """Tell what the minutes recorded to whoever watches, and to who tends the memory."""
        if self._keeper is not None and isinstance(event, events.TurnRecorded):
            self._keeper.turned()
        if self._talk is not None and isinstance(event, events.TurnRecorded):
            self._talk.recorded(event.turn)
        self._observe(event)

    # -- speech becomes turns -------------------------------------------------------------------------------

    def _new_hearing(self) -> Hearing:
        means = self._means
        return Hearing(
            ears=self._ears,
            recognizer=self._talk or means.recognizer,
            glossary=self._glossary,
            language=None if means.asr.language == "auto" else means.asr.language,
            recognise_ahead=means.listening.recognise_ahead,
            clock=means.clock,
            observe=self._overhear,
            on_moment=self._on_moment,
            judge=means.judge,
            urgent=lambda text: mentions_name(text, self._part.wake_names),
            own_words=self.playback.words_between,
            on_guess=self._on_guess,
            on_more=lambda utterance_id: self._head_start.drop("went_on", utterance_id),
        )

    def _glossary(self) -> tuple[str, ...]:
        return choose_glossary(
            wake_names=self._part.wake_names,
            display_names=[person.name for person in self._place.company()],
            words=(*self._means.asr.glossary_words, self._place.guild_name, self._place.name),
        )

    def _overhear(self, event: events.Event) -> None:
        """Tell what hearing found to whoever watches, and at once to whom it may interrupt."""
        self._observe(event)
        self._interruption.understood(event)
        if isinstance(event, events.UtteranceHeard):
            self._part.overheard(event.speaker_id, event.text, started_at=event.started_at, ended_at=event.ended_at)

    async def _on_moment(self, moment: tuple[SpokenText, ...]) -> None:
        """Record what was said, decide whether to answer, and write the turn's one log line."""
        await self._replier.wait_until_recorded(within_s=RECORD_S)
        moment = tuple(spoken for spoken in moment if not self._part.excludes(spoken.user_id))
        if not moment:
            return
        moment_at = self._clock.monotonic()
        if self._talk is not None:
            self._talk.saying(moment)
        turn = await self._minutes.said(moment, [self._company.name(spoken.user_id) for spoken in moment])
        if turn is None:
            return
        spoken, decision = self._part.judge(moment)
        if decision.answer:
            who = str(spoken.user_id)
            self._ask(Question(turn, spoken.utterance.id, spoken.ended_at, who, decision.reason, decision.may_skip))
        else:
            self._head_start.drop("not_answered")
        self._minutes.log_said(moment, turn, moment_at=moment_at, answered=spoken, decision=decision)

    def _on_guess(self, spoken: SpokenText, likely: bool) -> None:
        """Look ahead for what somebody seems to have said: find what it is about, and perhaps begin to think."""
        if self._finishing or self._part.excludes(spoken.user_id) or self._direct() or not self._means.discerning:
            return
        decision = self._part.would_answer(spoken)
        if not decision.answer:
            return
        turn = self._minutes.guess(spoken, self._company.name(spoken.user_id))
        if self._quoting is not None:
            self._quoting.prefetch(turn, self._memory)
        if self._means.brain.preemptive_reply and likely and reads_finished(spoken.text) and not self._replier.busy:
            who = str(spoken.user_id)
            self._head_start.begin(
                Question(turn, spoken.utterance.id, spoken.ended_at, who, decision.reason, decision.may_skip)
            )

    def _working(self) -> Working:
        """Return what the decider looks at of the replier, and whether it would break in."""
        waits = self._replier.waiting
        waiting = PendingReply.NONE
        if waits is not None:
            waiting = PendingReply.MAY_SKIP if waits.may_skip else PendingReply.CERTAIN
        return Working(waiting, busy=self._replier.busy or bool(self._ears.speaking))

    def _discerning(self) -> bool:
        """Return whether who answers now can find that nothing is to be said."""
        return self._means.discerning or self._direct()

    def _direct(self) -> bool:
        """Return whether speech-to-speech answers now."""
        return self._talk is not None and self._talk.usable

    # -- answers --------------------------------------------------------------------------------------------

    def _new_replier(self) -> Replier:
        return Replier(
            build_context=self._head_start.context,
            responder=self._head_start,
            synthesizer=self._means.synthesizer,
            playback=self.playback,
            clock=self._clock,
            timeout_s=self._means.brain.reply_timeout_s,
            on_reply=self._afterwards.take,
            own_names=(self._means.brain.name, *self._part.wake_names),
            pronunciations=self._means.speaking.pronounced_in(self._place.guild_id),
            blocked_words=self._means.speaking.blocked_in(self._place.guild_id),
            moderator=self._means.moderator,
            speech_to_speech=self._talk,
        )

    def _ask(self, question: Question) -> None:
        if self._finishing:
            return
        self._part.answers(int(question.asker_id) if question.asker_id else None)
        if self._commentary is not None:
            self._commentary.on_question()
        self._replier.ask(question)

    def _fall_silent(self) -> None:
        self._replier.cancel_all()

    def _think_aloud(self, decision: Decision) -> bool:
        """Ask for a thought of the bot's own, on nobody's behalf, after what was said last; False if nothing was."""
        turns = self._memory.turns
        if turns:
            self._ask(Question(turns[-1], asker_id="", reason=decision.reason, may_skip=decision.may_skip))
        return bool(turns)

    def _new_commentary(self) -> ScreenCommentary | None:
        screens = self._means.screens
        if screens is None or not screens.settings.commentary_every_s:
            return None
        return ScreenCommentary(
            screens.settings,
            clock=self._clock,
            is_busy=lambda: self._working().busy,
            is_sharing=lambda: (room := screens.room(self._place.guild_id)) is not None and bool(room.sharing()),
            request_remark=self._part.remark,
        )

    def _new_talk(self) -> RealtimeTalk | None:
        means = self._means
        if means.talk is None:
            return None
        return means.talk(
            instructions=means.instructions,
            recognizer=means.recognizer,
            name_of=self._company.name,
            asker_of=partial(asker_of, company=self._company),
            server=self._prompting.server,
            besides=self._prompting.besides,
            present=self._introductions,
            write=self._place.write,
            mind=means.mind,
            max_input_tokens=means.max_input_tokens,
            zone=means.zone,
            observe=self._told_directly,
        )

    def _told_directly(self, event: events.Event) -> None:
        """Tell what speech-to-speech does to whoever watches; count what it is sent, and let it be kept."""
        if isinstance(event, events.ContextBuilt):
            self._part.sent(sum(part.tokens for part in event.parts))
            if self._keeper is not None:
                self._keeper.sent(event.parts)
        self._observe(event)

    def _introductions(self) -> list[str]:
        """Return a line on each person who is here, with what they have said of themselves at other times."""
        present = self._part.heard(self._company.present())
        if self._keeper is None:
            return [name for _, name in present]
        return self._keeper.introductions(present)
