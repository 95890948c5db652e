"""What the bot says in a room: its answers, spoken and typed, its remarks, and what came of a press.

`Answering` owns the parts that make them, and does what participation wants of them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from bot import events
from bot.brain.decider import PendingReply
from bot.brain.reply import Question
from bot.brain.tools.built_in import be_quiet_tools
from bot.channel.participants import Participants
from bot.conversation.prompt import PromptBuilder
from bot.conversation.speaking import Speaking
from bot.conversation.turn_recorder import ReplyRecorder, TurnRecorder
from bot.conversation.typed_talk import TypedTalk
from bot.memory.recall import RecallScope
from bot.participation.participation import Participation, ReplyState
from bot.realtime.bridge import RealtimeBridge
from bot.screen.commentary import ScreenCommentary
from bot.texts.text import Text
from voice.cancellation import fail_if_cancelled_inside

if TYPE_CHECKING:
    from bot.brain.decider import Decision
    from bot.brain.responder import Responder
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.conversation.services import RoomContext
    from bot.screen.screen_room import RoomScreens
    from bot.withdrawal import WordsHolder
    from compaction.model import Note, Turn
    from voice.listening.listener import RoomListener
    from voice.speaking.port import Synthesizer

# How long a result waits for people to end what they say; how often to look.
REPORT_WITHIN_S = 15.0
REPORT_POLL_S = 0.2


class Answering:
    """The bot's part in one session's conversation. `listener`: knows who speaks.

    *Ownership*: `start` starts its tasks in the conversation's group; call everything on its loop.
    """

    def __init__(self, session: RoomContext, listener: RoomListener) -> None:
        channel, services = session.channel, session.services
        self._session, self._services, self._clock = session, services, services.clock
        self._listener = listener
        self._finishing = False
        # Held by the result that is told next, so that none takes the place of another.
        self._reporting = asyncio.Lock()
        here = RecallScope(session.id, channel.guild_id, channel.channel_id)
        self.toolbox = services.replies.open_toolbox(here, channel)
        # Each part is made after those that it needs: who is there, who is answered, what is recorded, what is said.
        self.participants = Participants(channel, session.timeline.name_of)
        self.participation = Participation(
            services.participation,
            session.guild,
            session_id=session.id,
            channel=channel,
            participants=self.participants,
            clock=self._clock,
            replies=self,
        )
        self.toolbox.frozen.on_done = self._report_result
        self.toolbox.memory_changes = lambda: session.timeline.external_changes
        if session.upkeep is not None:
            self.toolbox.on_failure = session.upkeep.tier_checks.failed_turns.add
        self.toolbox.personal.append(partial(be_quiet_tools, be_quiet=self.participation.be_quiet))
        self.turn_recorder = TurnRecorder(
            session.timeline,
            self.participants,
            own_name=services.brain.name,
            clock=self._clock,
            observe=self._on_recorded,
        )
        recorder = ReplyRecorder(self.participation, self.turn_recorder, clock=self._clock, observe=services.observe)
        prompts = PromptBuilder(
            session,
            participants=self.participants,
            participation=self.participation,
            quoting=services.memory.open_quoting(here, channel),
            toolbox=self.toolbox,
        )
        self.bridge = self._open_bridge(prompts)
        # What is typed and what is said have one: it says once that no model answers.
        responder = services.replies.new_responder()
        self.speaking = self._new_speaking(prompts, recorder, responder)
        self.replier = self.speaking.replier
        self.typed_talk = self._new_typed_talk(prompts, recorder, responder)
        self._commentary = self._open_commentary()
        talk = (self.typed_talk, self.speaking, self.toolbox, self.bridge, self._commentary)
        # What holds words of people (`bot.withdrawal`).
        self.holders: tuple[WordsHolder, ...] = (
            self.participants,
            self.participation,
            *(each for each in talk if each is not None),
        )

    def _open_bridge(self, prompts: PromptBuilder) -> RealtimeBridge | None:
        """Return what connects the room with a speech-to-speech model, if one answers here."""
        services, session = self._services.realtime, self._session
        # In a session that is only written down it would only cost.
        if services is None or self.participation.listens_only:
            return None
        return RealtimeBridge(services, prompts, session.channel, timeline=session.timeline, toolbox=self.toolbox)

    def _new_speaking(self, prompts: PromptBuilder, recorder: ReplyRecorder, responder: Responder) -> Speaking:
        return Speaking(
            self._session.channel,
            self._services,
            build_context=prompts.build_context,
            responder=responder,
            on_reply=recorder.record,
            notify=self.participation.notify,
            own_names=prompts.own_names,
            bridge=self.bridge,
            somebody_speaks=lambda: bool(self._listener.speaking),
        )

    def _new_typed_talk(self, prompts: PromptBuilder, recorder: ReplyRecorder, responder: Responder) -> TypedTalk:
        return TypedTalk(
            self._session.channel,
            participation=self.participation,
            turn_recorder=self.turn_recorder,
            reply_recorder=recorder,
            build_context=prompts.build_context,
            responder=responder,
            rules=self.speaking.rules,
            clock=self._clock,
        )

    def _open_commentary(self) -> ScreenCommentary | None:
        """Return what remarks on shared screens, if the settings want that."""
        screens = self._services.screens
        if screens is None:
            return None
        return ScreenCommentary(
            every_s=screens.remark_every_s,
            clock=self._clock,
            is_busy=self.is_busy,
            is_shown=self._is_shown,
            request_remark=self.participation.request_remark,
        )

    # -- life -----------------------------------------------------------------------------------------------

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start its tasks. None of them ends by itself."""
        tasks.create_task(fail_if_cancelled_inside(self.replier.run), name="replies")
        tasks.create_task(fail_if_cancelled_inside(self.typed_talk.run), name="typed-talk")
        tasks.create_task(fail_if_cancelled_inside(self.participation.run), name="participation")
        if self.bridge is not None:
            tasks.create_task(fail_if_cancelled_inside(self.bridge.run), name="realtime")
        if self._commentary is not None:
            tasks.create_task(fail_if_cancelled_inside(self._commentary.run), name="screen-commentary")

    async def stop(self, *, process_ends: bool) -> None:
        """Answer nothing more, and record the part of the reply that was heard. `process_ends`: a sentence that is
        being spoken may end first.
        """
        self._finishing = True
        self.typed_talk.close()
        await self.speaking.finish(process_ends=process_ends)

    async def play_sample(self, sentence: str, synthesizer: Synthesizer) -> Text | None:
        """Say a sentence with a voice that somebody wants to hear; return why it was not said, or None."""
        if self.participation.listens_only:
            return self.participation.why_silent()

        def may_say() -> bool:
            return not self.participation.silenced

        # Somebody may silence the bot while the sample waits for a reply to end, and while it is played.
        played = may_say() and await self.speaking.play_sample(sentence, synthesizer, may_say=may_say)
        if played:
            return None
        return self.participation.why_silent() or Text(
            "I could not speak in {channel} now.", channel=self._session.channel.name
        )

    # -- what happens in the room ---------------------------------------------------------------------------

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        if self.bridge is not None:
            # The timeline is still reporting the compaction; ask it when it has finished.
            asyncio.get_running_loop().call_soon(self.bridge.refresh)

    def on_note(self, note: Note) -> None:
        if self._commentary is not None:
            self._commentary.on_note(note)
        if self.bridge is not None:
            self.bridge.refresh()
        self._services.observe(events.ScreenNoted(note, self._clock.monotonic()))

    def on_screen_turn(self, turn: Turn) -> None:
        """Handle a turn, already recorded, about the start or end of a screen share."""
        self._on_recorded(events.TurnRecorded(turn, self._clock.monotonic()))

    def _on_recorded(self, event: events.Event) -> None:
        """Pass a recorded turn to the memory's upkeep, to speech-to-speech and to the observer."""
        if isinstance(event, events.TurnRecorded):
            if self._session.upkeep is not None:
                self._session.upkeep.wake()
            if self.bridge is not None:
                self.bridge.on_turn_recorded(event.turn, event.utterances)
        self._services.observe(event)

    # -- called by participation (see `ReplyControl`) and by commentary ----------------------------------------

    def reply_state(self, speaker: int | None) -> ReplyState:
        question = self.replier.waiting
        waiting = PendingReply.NONE
        if question is not None:
            waiting = PendingReply.MAY_SKIP if question.may_skip else PendingReply.CERTAIN
        return ReplyState(waiting, busy=self.replier.busy or bool(self._listener.speaking - {speaker}))

    @property
    def can_skip(self) -> bool:
        return self._services.replies.can_skip or self.answers_in_speech()

    def stop_speaking(self) -> None:
        self.speaking.silence()
        self.typed_talk.drop()

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for, after the last turn. Return False if there is no turn yet."""
        turn = self._last_turn()
        if turn is not None:
            self.ask(Question(turn, asker_id="", reason=decision.reason, may_skip=decision.may_skip))
        return turn is not None

    async def _report_result(self, call: FrozenCall) -> None:
        """Tell what came of a call that somebody pressed for: in writing where they asked so, else aloud once nobody
        speaks. The chat has it in any case.
        """
        if call.asker.typed is not None:
            self.typed_talk.report_result(call, call.asker.typed, self._last_turn())
            return
        async with self._reporting:
            waited_s = 0.0
            while self.replier.busy or (self.is_busy() and waited_s < REPORT_WITHIN_S):
                await self._clock.sleep(REPORT_POLL_S)
                waited_s += REPORT_POLL_S
            turn = self._last_turn()
            if turn is not None and self.participation.may_speak_result():
                self.ask(Question(turn, asker_id=str(call.asker.user_id), pressed=call))

    def _last_turn(self) -> Turn | None:
        return next((turn for turn in reversed(self._session.timeline.window) if not turn.tombstone), None)

    def ask(self, question: Question) -> None:
        if self._finishing:
            # What sounds already is remembered with its question.
            self.replier.settle(question)
            return
        # The reply may have begun before its question was a turn.
        self._session.timeline.fold_if_due()
        self.participation.on_reply_begun(int(question.asker_id) if question.asker_id else None)
        if self._commentary is not None:
            self._commentary.on_question()
        self.replier.ask(question)

    def is_busy(self) -> bool:
        """Return whether somebody speaks, or an answer is in progress or due."""
        return self.replier.busy or bool(self._listener.speaking)

    def answers_in_speech(self) -> bool:
        """Return whether speech-to-speech answers now."""
        return self.bridge is not None and self.bridge.usable

    def _is_shown(self, note: Note) -> bool:
        screens = self._screens()
        return screens is not None and screens.is_shown(note)

    def _screens(self) -> RoomScreens | None:
        screens = self._services.screens
        return None if screens is None else screens.room(self._session.channel.guild_id)
