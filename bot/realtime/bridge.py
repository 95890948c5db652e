"""Speech-to-speech in a room: the room's talk is carried into the session, and its answers out of it.

To hearing it is the recogniser: what somebody says is said to the model, and what the model's side wrote down is the
text. To the replier it is who answers in sound. What of the room's memory stands in the session's conversation is
`bot.realtime.items`. When the session fails, the room's own recogniser, responder and voice serve.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.tools.toolbox import Toolbox
from bot.realtime.inputs import Inputs, RealtimeRecognition, SaidInput, with_items
from bot.realtime.items import Items
from bot.realtime.skip import unless_silent
from compaction.budget.messages import MessageToolCall as AskedCall
from compaction.model import Seq, TurnKind
from voice.audio import LISTEN_RATE_HZ, duration_s
from voice.errors import RealtimeError, RecogniserOverloadedError
from voice.realtime.mixing import mix_speakers
from voice.realtime.port import Briefing, RealtimeFailed, RealtimeRenewed, RealtimeRestored
from voice.realtime.speech_assembler import SpeechAssembler

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
    from datetime import tzinfo
    from typing import Any, TypeAlias

    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.reply import Question
    from bot.brain.system_prompt import SystemPrompt
    from bot.brain.tools.permission import Asker
    from bot.clock import Clock
    from bot.events import SpokenText
    from compaction.model import Turn
    from compaction.session import SessionMemory
    from voice.asr.port import Recognition, Recognizer
    from voice.audio import Pcm
    from voice.realtime.port import Realtime, RealtimeNews, RealtimeToolCall, ReplyPiece, ToolRunner
    from voice.realtime.settings import RealtimeSettings
    from voice.speaking.port import Speech

    # What runs a session until it is given up.
    Life: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
    # Makes a session out of who briefs it, who is told what happens to it, and who carries its tool calls out.
    NewSession: TypeAlias = Callable[
        [Callable[[], Briefing], Callable[[RealtimeNews], None], ToolRunner],
        tuple[Realtime, Life],
    ]

log = structlog.get_logger()

FALLEN_BACK = "Speech-to-speech is gone; I answer with {mind} until {when}. {why}"
# What is waited for then: where time mends it, and where somebody has to.
IT_IS_BACK = "it is back"
NEXT_JOIN = "I join again"
BACK = "Speech-to-speech is back, and I answer with it again."
# More are told at once by nothing that happens; what is over the limit would be old news.
NOTICES_WAITING = 8


class RealtimeTalk:
    """One room's speech-to-speech. `open` gives it the memory; `run` is the room's task; `close` ends nothing else.

    `new_session` makes the session around this talk's briefing and event callbacks. `recognizer`, the room's own,
    stands in wherever the session cannot tell. `name_of`: who a speaker is. `server`, `besides`: what the model is told
    on this server, and about one answer. `write`: into the text channel.
    """

    def __init__(
        self,
        settings: RealtimeSettings,
        *,
        new_session: NewSession,
        instructions: SystemPrompt,
        recognizer: Recognizer,
        name_of: Callable[[int], str],
        asker_of: Callable[[Question], Asker],
        server: Callable[[], Awaitable[str]],
        besides: Callable[[Question], tuple[str, ...]],
        present: Callable[[], Sequence[str]],
        write: Callable[[str], Awaitable[None]],
        mind: str,
        max_input_tokens: int,
        zone: tzinfo,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._settings = settings
        self._recognizer = recognizer
        self._name_of = name_of
        self._asker_of = asker_of
        self._server = server
        self._besides = besides
        self._write = write
        self._mind = mind
        self._clock = clock
        self._observe = observe
        self._items = Items(instructions=instructions, present=present, max_input_tokens=max_input_tokens, zone=zone)
        self._session, self._life = new_session(self._items.brief, self._happened, self._run_tool)
        self._toolbox = Toolbox()
        # Runs what the answer at hand calls, on behalf of who asked for it.
        self._tools = self._toolbox.for_asker()
        self._memory: SessionMemory | None = None
        self._quoting: QuoteFinder | None = None
        self._inputs = Inputs()
        self._saying: tuple[SpokenText, ...] = ()
        # The answer at hand, and which conversation holds it.
        self._reply_items: list[str] = []
        self._reply_conversation = 0
        self._notices: asyncio.Queue[str] = asyncio.Queue(NOTICES_WAITING)
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life ------------------------------------------------------------------------------------------------

    def open(self, memory: SessionMemory, toolbox: Toolbox, quoting: QuoteFinder | None = None) -> None:
        """Begin with a session's memory, what the model may call, and who finds what was said before the window."""
        self._memory = memory
        self._items.open(memory, toolbox.tools)
        self._quoting = quoting
        self._toolbox = toolbox
        self._tools = toolbox.for_asker()

    async def run(self) -> None:
        """Keep the session, and tell the people when it fails and when it is back; return when it is gone for good."""
        try:
            async with asyncio.TaskGroup() as tasks:
                telling = tasks.create_task(self._tell(), name="speech-to-speech-notices")
                self._items.server = await self._server()
                await self._life()
                await self._notices.join()
                telling.cancel()
        finally:
            for task in list(self._tasks):
                task.cancel()

    async def _tell(self) -> None:
        while True:
            await self._write(await self._notices.get())
            self._notices.task_done()

    def _notice(self, sentence: str) -> None:
        try:
            self._notices.put_nowait(sentence)
        except asyncio.QueueFull:
            log.warning("notice_not_written", waiting=NOTICES_WAITING)

    @property
    def usable(self) -> bool:
        """Return whether the session has not been given up, or is back."""
        return self._session.usable

    @property
    def mind(self) -> str:
        """Return what the room answers with now, in the words of /status."""
        return f"the speech-to-speech model {self._settings.model}" if self.usable else self._mind

    def _happened(self, event: RealtimeNews) -> None:
        match event:
            case RealtimeFailed():
                when = NEXT_JOIN if event.lasting else IT_IS_BACK
                self._notice(FALLEN_BACK.format(mind=self._mind, when=when, why=event.sentence))
                self._observe(events.Problem("realtime", event.sentence, self._clock.monotonic()))
            case RealtimeRestored():
                self._notice(BACK)
            case RealtimeRenewed():
                log.info("realtime_renewed", reason=event.reason)

    # -- the recogniser --------------------------------------------------------------------------------------

    async def recognize(
        self,
        pcm: Pcm,
        *,
        language: str | None = None,
        glossary: tuple[str, ...] = (),
        speaker_id: int | None = None,
        interim: bool = False,
    ) -> Recognition:
        """Say it to the model and return what was understood. See `Recognizer.recognize`."""
        # Ours tells no language, so the one to expect of a person may be none.
        language = language or None
        if self._settings.mode == "mixed" or not self._session.usable:
            return await self._recognizer.recognize(
                pcm, language=language, glossary=glossary, speaker_id=speaker_id, interim=interim
            )
        if interim:
            # What was said to the model cannot be taken back, so there are no guesses.
            raise RecogniserOverloadedError("Speech-to-speech hears finished speech alone.")
        begun, conversation = self._clock.monotonic(), self._items.conversation
        if (said := self._inputs.same(speaker_id, pcm)) is not None:
            # Heard once more, because the words were too few: the model has heard it, our own recogniser has not.
            own = await self._recognizer.recognize(pcm, language=language, glossary=glossary, speaker_id=speaker_id)
            return with_items(own, said.item_ids, said.conversation)
        name = "Somebody" if speaker_id is None else self._name_of(speaker_id)
        item_ids: tuple[str, ...] = ()
        try:
            heard = await self._session.hear(pcm, speakers=f"{name} speaks:")
            item_ids = heard.item_ids
            # A lost connection hears it again on the next one.
            conversation = max(conversation, self._items.conversation)
            self._inputs.add(speaker_id, SaidInput(pcm, item_ids, conversation))
        except RealtimeError as error:
            log.warning("realtime_did_not_hear", problem=str(error))
            heard = None
        if heard is None or heard.text is None:
            own = await self._recognizer.recognize(pcm, language=language, glossary=glossary, speaker_id=speaker_id)
            return with_items(own, item_ids, conversation)
        return RealtimeRecognition(
            text=heard.text.strip(),
            language=language or "",
            mean_logprob=0.0,
            compression_ratio=1.0,
            no_speech_probability=0.0,
            duration_s=duration_s(pcm),
            compute_s=self._clock.monotonic() - begun,
            item_ids=item_ids,
            conversation=conversation,
        )

    def confirm(self, speaker_id: int) -> None:
        """See `Recognizer.confirm`."""
        self._recognizer.confirm(speaker_id)

    # -- turns become items ----------------------------------------------------------------------------------

    def saying(self, moment: tuple[SpokenText, ...]) -> None:
        """The next turn recorded is this moment."""
        self._saying = moment

    def recorded(self, turn: Turn) -> None:
        """Let a recorded turn stand in the conversation, if it does not yet. Called for every turn, in order."""
        saying, self._saying = self._saying, ()
        if not self._session.usable:
            # The next conversation begins with all of them.
            return
        self._forget_the_unrecorded(saying)
        if turn.kind is TurnKind.ASSISTANT and self._reply_items:
            spoken_items, self._reply_items = self._reply_items, []
            if self._reply_conversation == self._items.conversation:
                self._items.hold(turn.seq, tuple(spoken_items))
                return
        spoken = turn.kind in {TurnKind.SPEECH, TurnKind.EFFECT} and bool(saying)
        if spoken and self._settings.mode == "mixed":
            self._say_mixed(turn.seq, saying)
            return
        held = [
            each.recognition.item_ids
            for each in saying
            if isinstance(each.recognition, RealtimeRecognition)
            and each.recognition.conversation == self._items.conversation
            and each.recognition.item_ids
        ]
        if spoken and len(held) == len(saying):
            self._items.hold(turn.seq, tuple(item for ids in held for item in ids))
            return
        self._items.refresh(self._session)

    def _forget_the_unrecorded(self, saying: tuple[SpokenText, ...]) -> None:
        """Take out what these people said before that became no turn: coughs, echoes, what nobody could understand."""
        for each in saying:
            if isinstance(each.recognition, RealtimeRecognition):
                gone = self._inputs.before(each.user_id, each.recognition.item_ids)
                here = [
                    item for said in gone if said.conversation == self._items.conversation for item in said.item_ids
                ]
                self._session.forget(here)

    def _say_mixed(self, seq: Seq, moment: tuple[SpokenText, ...]) -> None:
        """Say a moment as the room heard it: everybody's sound at once, after their names."""
        names = list(dict.fromkeys(self._name_of(each.user_id) for each in moment))
        speakers = f"{names[0]} speaks:" if len(names) == 1 else f"{', '.join(names)} speak at the same time:"
        sound = mix_speakers([(each.started_at, each.utterance.pcm) for each in moment], LISTEN_RATE_HZ)
        try:
            heard = self._session.hear(sound, speakers=speakers)
        except RealtimeError as error:
            log.warning("realtime_did_not_hear", problem=str(error))
            return
        self._items.hold(seq, ())
        conversation = self._items.conversation

        async def hold() -> None:
            try:
                self._items.hold(seq, (await heard).item_ids)
            except RealtimeError as error:
                log.warning("realtime_did_not_hear", problem=str(error))
                if conversation == self._items.conversation:
                    self._items.release(seq)

        task = asyncio.create_task(hold(), name=f"realtime-hearing-{seq}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- answers ---------------------------------------------------------------------------------------------

    async def speak(self, question: Question) -> AsyncGenerator[Speech, None]:
        """Let the model answer what was said last. See `SpeechToSpeech.speak`."""
        await self._remember(question.turn)
        self._items.server, self._items.besides = await self._server(), self._besides(question)
        parts = self._items.refresh(self._session, answering=question.turn.seq)
        self._tools = self._toolbox.for_asker(self._asker_of(question))
        self._observe(events.ContextBuilt(parts, question.turn.seq, self._clock.monotonic()))
        stream = SpeechAssembler()
        self._reply_items = []
        pieces = self._session.reply()
        if question.may_skip:
            pieces = unless_silent(pieces, on_silence=self._unsay)
        async with aclosing(pieces):
            async for piece in pieces:
                self._keep(piece.item_id)
                speech = stream.feed(piece)
                if speech is not None:
                    yield speech
        rest = stream.end()
        if rest is not None:
            yield rest

    def _unsay(self, pieces: list[ReplyPiece]) -> None:
        """Break off an answer that says that there is nothing to say, and take it out of the conversation."""
        self._session.interrupt(0)
        self._session.forget(list(dict.fromkeys(piece.item_id for piece in pieces)))

    def _keep(self, item_id: str) -> None:
        """Take note of what holds the answer at hand. Gone on with after a loss, the rest of it is what stands."""
        if self._reply_conversation != self._items.conversation:
            self._reply_conversation, self._reply_items = self._items.conversation, []
        if item_id not in self._reply_items:
            self._reply_items.append(item_id)

    def report_heard(self, heard_s: float, *, complete: bool) -> None:
        """Correct what the model believes to have said. See `SpeechToSpeech.report_heard`."""
        if not complete:
            self._session.interrupt(round(heard_s * 1000))
        if not heard_s:
            # No turn will be recorded of it.
            self._reply_items = []

    def landed(self) -> None:
        """A batch was folded: the summary changes, and the folded turns go from the conversation."""
        if self._session.usable:
            self._items.refresh(self._session)

    async def _remember(self, turn: Turn) -> None:
        """Find what was said before the window about this turn, for the instructions of the answer to it."""
        if self._quoting is None or self._memory is None:
            return
        quotes = await self._quoting.find(turn, self._memory)
        told = [(quote.recalled.session_id == self._memory.session_id, quote.part.content) for quote in quotes]
        self._items.recalled = tuple(text for here, text in told if here)
        self._items.earlier = tuple(text for here, text in told if not here)

    async def _run_tool(self, call: RealtimeToolCall) -> str:
        """Carry a tool call out, for who asked what is being answered."""
        return await self._tools.run(AskedCall(call.call_id, call.name, call.arguments))


def talks(
    settings: RealtimeSettings, *, api_key: str, language: str, clock: Clock
) -> Callable[..., RealtimeTalk] | None:
    """Return what makes a room's speech-to-speech out of the room's own parts; None where it is off.

    `language`: what everybody speaks, as `asr.language` has it, so that the endpoint writes that down; `auto` is any.
    """
    if not settings.enabled:
        return None
    # Imported where it is needed: the library takes a second to load.
    from voice.realtime.session import RealtimeSession

    def new_session(
        brief: Callable[[], Briefing],
        on_event: Callable[[RealtimeNews], None],
        run_tool: ToolRunner,
    ) -> tuple[Realtime, Life]:
        session = RealtimeSession(
            settings,
            api_key=api_key,
            brief=brief,
            clock=clock,
            on_event=on_event,
            run_tool=run_tool,
            language=None if language == "auto" else language,
        )
        return session, session.run

    return partial(RealtimeTalk, settings, new_session=new_session, clock=clock)
