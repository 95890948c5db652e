"""The bridge between a room and its speech-to-speech session.

It replaces the room's recogniser: it sends each utterance to the model and returns the endpoint's transcript. It also
replaces the responder and the voice: it yields the model's spoken replies. `bot.realtime.items` decides which turns the
session's conversation holds. When the session fails, the room's own recogniser, responder and voice take over.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.question import CallResult, Question, may_skip
from bot.brain.skip import SpokenSkip, unless_spoken_skip
from bot.brain.tools.frozen_calls import FrozenCall
from bot.brain.tools.toolbox import Toolbox, ToolExchange, UntilWanted
from bot.channel.notice_queue import NoticeQueue
from bot.realtime.items import Inputs, Items, RealtimeInput, RealtimeRecognition, ReplyMaterial, with_items
from bot.texts.text import Text, sentence_of
from bot.words import SESSION, Words
from compaction.budget.tool_outputs import shorten_output
from compaction.model import Seq, Turn, TurnKind
from compaction.payload import MessageToolCall
from compaction.untrusted_text import without_marks
from voice.asr.port import MAX_TEXT_CHARS, Recognition, RecognitionRequest
from voice.audio import Pcm, duration_s
from voice.cancellation import fail_if_cancelled_inside
from voice.errors import RealtimeError
from voice.realtime.port import (
    RealtimeFailed,
    RealtimeNews,
    RealtimeRenewed,
    RealtimeRestored,
    RealtimeToolCall,
    ReplyPiece,
    ReplyResumed,
)
from voice.realtime.speech_assembler import SpeechAssembler
from voice.speaking.moderation import ForbiddenWordsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bot.brain.reply import Reply
    from bot.brain.speech_output import SpeechRules
    from bot.channel.port import RoomChannel
    from bot.events import SpokenText
    from bot.llm.model_calls import Payer
    from bot.realtime.port import RealtimePrompt, RealtimeServices
    from compaction.memory.quotes import Quote
    from compaction.session import SessionTimeline
    from voice.queue_figures import QueueFigures
    from voice.speaking.port import Speech

log = structlog.get_logger()

FALLEN_BACK = Text("Speech-to-speech does not work now. Until {when}, I answer with {mind}. {why}")
# The notice says until when the fallback lasts: the first text is for a fault that passes by itself, the second for a
# fault that somebody has to repair.
IT_IS_BACK = Text("it is back")
NEXT_JOIN = Text("I join again")
BACK = Text("Speech-to-speech works again, and I answer with it.")
# The model speaks by itself, so it is asked to say what the text pipeline says in a fixed sentence.
SAY_SO = " Say so now, in one short sentence."


class RealtimeBridge:
    """Connects one room with its speech-to-speech session. *Ownership*: `run` is the room's task."""

    def __init__(
        self,
        services: RealtimeServices,
        prompt: RealtimePrompt,
        channel: RoomChannel,
        *,
        timeline: SessionTimeline,
        toolbox: Toolbox,
        payer: Payer,
        words: Words,
    ) -> None:
        self._services = services
        self._prompt = prompt
        self._timeline = timeline
        self._toolbox = toolbox
        # The tools of who asked what is being answered, or was answered last, and the turn that asked.
        self._tools = toolbox.for_asker()
        self._answering: Seq | None = None
        self._items = Items(
            timeline,
            toolbox,
            prompt,
            instructions=services.instructions,
            zone=services.zone,
        )
        self._session, self._run_session = services.new_session(self._items.brief, self._on_news, self._run_tool, payer)
        self._inputs = Inputs()
        self._words = words
        # The items of the current reply, and which conversation holds them. Its sound may wait to be played while the
        # next conversation begins, so this is not always the current one.
        self._reply_items: list[str] = []
        self._reply_conversation = 0
        # Whether the model was asked for the current reply; else its last reply is an earlier one.
        self._requested = False
        self._notices = NoticeQueue(channel, name="realtime_notices")
        self._begin_lease()

    # -- life ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the session, and write into the channel when it fails and when it works again. Ends when the session is
        given up.
        """
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(fail_if_cancelled_inside(self._notices.run), name="realtime-notices")
            self._items.policy = await self._prompt.policy()
            await self._run_session()
            await self._notices.until_written()
            writing.cancel()

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return the sentences that wait to be written into the channel, and the session's queues."""
        return (self._notices.figures, *self._session.queues)

    @property
    def usable(self) -> bool:
        """Return whether the session can be used now: it was not given up, or has returned."""
        return self._session.usable

    @property
    def responder_name(self) -> Text:
        if not self.usable:
            return self._services.fallback_name
        return Text("the speech-to-speech model {model}", model=self._services.settings.model)

    def _on_news(self, event: RealtimeNews) -> None:
        match event:
            case RealtimeFailed():
                when = IT_IS_BACK if event.error.retryable else NEXT_JOIN
                self._notices.add(FALLEN_BACK.fill(mind=self._services.fallback_name, when=when, why=event.error))
                self._services.observe(
                    events.Problem("realtime", sentence_of(event.error), self._services.clock.monotonic())
                )
            case RealtimeRestored():
                # With what was said between the beginning of its conversation and now, which had to wait until the
                # service accepts it.
                self._items.refresh(self._session)
                self._notices.add(BACK)
            case RealtimeRenewed():
                log.info("realtime_renewed", reason=event.reason)

    # -- the recogniser --------------------------------------------------------------------------------------

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """Send an utterance to the model and return its text; without one, that of the room's own recogniser.

        See `Recogniser.recognise`. An unfinished one is the room's own recogniser's, while the model hears too.
        """
        pcm, language, speaker_id = request.pcm, request.language, request.speaker_id
        # The session detects no language, so the expected one may be "".
        recognise_here = partial(self._services.recogniser.recognise, replace(request, language=language or None))
        # Sound that the model has heard cannot be taken back, so it gets finished utterances only.
        if request.interim or not self._session.usable:
            return await recognise_here()
        begun_at = self._services.clock.monotonic()
        if (before := self._inputs.find_same(speaker_id, pcm)) is not None:
            # Heard again because the text is doubtful. The model has heard this; our own recogniser has not.
            return with_items(await recognise_here(), before.item_ids, before.conversation)
        sent, text = await self._send_sound(pcm, speaker_id)
        if text is None or len(text) > MAX_TEXT_CHARS:
            return with_items(await recognise_here(), sent.item_ids, sent.conversation)
        return RealtimeRecognition(
            text=text.strip(),
            language=language if isinstance(language, str) else "",
            mean_logprob=0.0,
            compression_ratio=1.0,
            no_speech_probability=0.0,
            duration_s=duration_s(pcm),
            compute_s=self._services.clock.monotonic() - begun_at,
            item_ids=sent.item_ids,
            conversation=sent.conversation,
        )

    async def _send_sound(self, pcm: Pcm, speaker_id: int | None) -> tuple[RealtimeInput, str | None]:
        """Send an utterance to the model. Returns it as the conversation holds it, without items if it could not be
        sent, and its transcript if there is one.
        """
        name = "Somebody" if speaker_id is None else self._prompt.name_of(speaker_id)
        # A sound that is on its way when it is taken back is removed when it has arrived.
        lease = self._words.lease({SESSION if speaker_id is None else speaker_id}, since=None)
        sent = RealtimeInput(pcm, (), self._items.conversation, lease)
        try:
            transcript = await self._session.send_audio(pcm, speakers=f"{name} speaks:")
            # After a lost connection the sound was sent again, into the next conversation.
            sent = RealtimeInput(pcm, transcript.item_ids, max(sent.conversation, self._items.conversation), lease)
            self._delete(self._inputs.add(speaker_id, sent))
            lease.on_end(partial(self._drop_ended, speaker_id))
        except RealtimeError as error:
            log.warning("realtime_input_failed", problem=error)
            return sent, None
        return sent, transcript.text

    def confirm(self, speaker_id: int) -> None:
        self._services.recogniser.confirm(speaker_id)

    # -- turns become items ----------------------------------------------------------------------------------

    def on_turn_recorded(self, turn: Turn, utterances: tuple[SpokenText, ...] = ()) -> None:
        """Put a recorded turn into the session's conversation unless it is there. Call it for every turn, in order.

        `utterances`: the turn's utterances; empty if it was not speech.
        """
        if not self._session.usable or not self._items.conversation:
            # The next conversation begins with every turn.
            return
        held = self._take_sounds(utterances)
        if turn.kind is TurnKind.ASSISTANT:
            held = self._take_reply()
        item_ids = tuple(item for ids in held for item in ids)
        if held and not turn.tombstone and len(held) >= len(utterances) and not self._items.has(turn.seq):
            self._items.hold(turn.seq, item_ids)
            return
        # The turn's text stands for it: words were taken back, some sound is missing, or a refresh has sent the text
        # while it was stored.
        self._session.delete_items(item_ids)
        self._items.refresh(self._session)

    def _drop_ended(self, speaker_id: int | None) -> None:
        """Remove the sounds of a person that are no turn and were taken back. One that becomes a turn all the same is
        then sent as text.
        """
        dropped = self._inputs.pop_ended(speaker_id)
        if self._session.usable:
            self._delete(dropped)

    def _begin_lease(self) -> None:
        self._lease = self._words.lease({SESSION}, since=None)
        self._lease.on_end(self._on_taken_back)

    def _on_taken_back(self) -> None:
        """Take what was found and done for replies out of the session: the words may be in it."""
        self._begin_lease()
        self._session.delete_tool_calls()
        self._items.for_reply = ReplyMaterial()
        self.refresh()

    def _take_sounds(self, utterances: tuple[SpokenText, ...]) -> list[tuple[str, ...]]:
        """Return the items of each utterance whose sound the conversation has.

        Removes these speakers' earlier sounds that became no turn: coughs, echoes, unintelligible speech.
        """
        held: list[tuple[str, ...]] = []
        for each in utterances:
            heard = each.recognition
            if not isinstance(heard, RealtimeRecognition):
                continue
            if (dropped := self._inputs.pop_before(each.user_id, heard.item_ids)) is None:
                continue
            self._delete(dropped)
            if heard.item_ids and heard.conversation == self._items.conversation:
                held.append(heard.item_ids)
        return held

    def _take_reply(self) -> list[tuple[str, ...]]:
        """Return the items of the current reply, if the conversation has them, as those of its turn."""
        items, self._reply_items = tuple(self._reply_items), []
        return [items] if items and self._reply_conversation == self._items.conversation else []

    def _delete(self, inputs: list[RealtimeInput]) -> None:
        """Delete the items of those inputs that the current conversation has."""
        here = [item for sent in inputs if sent.conversation == self._items.conversation for item in sent.item_ids]
        self._session.delete_items(here)

    # -- replies ---------------------------------------------------------------------------------------------

    async def speak(self, reply: Reply, rules: SpeechRules, until_wanted: UntilWanted) -> AsyncGenerator[Speech, None]:
        """Yield the model's reply to the last turn. See `SpeechToSpeech.speak`."""
        question, self._requested = reply.question, False
        quotes = await self._prompt.find_quotes(question)
        self._items.policy = await self._prompt.policy()
        self._items.asker = self._prompt.asker_of(question)
        self._answering = question.turn.seq
        call = question.call if isinstance(question, CallResult) else None
        tools = self._toolbox.for_asker(self._items.asker, answering=question.turn.seq, result_of=call)
        self._tools = reply.tools = tools
        tools.until_wanted = until_wanted
        self._items.for_reply = self._material(question, quotes)
        # What was found for an earlier answer has ended with it.
        self._session.delete_tool_calls()
        parts = self._items.refresh(self._session, answer_to=question.turn.seq)
        self._prompt.record_sent(parts, answer_to=question.turn.seq)
        stream = SpeechAssembler()
        self._reply_items, self._reply_conversation = [], self._items.conversation
        self._requested = True
        said = self._session.reply()
        async with aclosing(unless_spoken_skip(said) if may_skip(question) else said) as pieces:
            async for piece in pieces:
                if isinstance(piece, SpokenSkip):
                    self._discard_skip(piece.pieces)
                    return
                if isinstance(piece, ReplyResumed):
                    self._reply_items = list(piece.item_ids)
                    self._reply_conversation += 1
                    stream.resume(piece.said)
                    continue
                if piece.item_id not in self._reply_items:
                    self._reply_items.append(piece.item_id)
                speech = stream.feed(piece)
                # Words arrive before their sound, and the last one perhaps in parts: its beginning counts as a word.
                if piece.words and rules.forbids(stream.words):
                    raise ForbiddenWordsError
                if speech is not None:
                    yield speech
        rest = stream.end()
        if rest is not None:
            yield rest

    async def _run_tool(self, call: RealtimeToolCall) -> str:
        """Run a tool call with the permissions of the person who asked, and record it: if the session fails, the
        language model answers, and must not do the same again.
        """
        tools, turn = self._tools, self._answering
        requested = MessageToolCall(call.call_id, call.name, call.arguments)
        steps: list[ToolExchange] = []
        try:
            (result,) = await tools.run_all((requested,))
            steps.append(ToolExchange((requested,), (result,)))
        finally:
            if turn is not None:
                tools.record(turn, steps)
        return shorten_output(str(result), self._items.trim.tool_outputs) + (
            SAY_SO if isinstance(result, FrozenCall) else ""
        )

    def _discard_skip(self, pieces: Sequence[ReplyPiece | ReplyResumed]) -> None:
        """Stop a reply that is SKIP and remove it from the session's conversation."""
        self._session.interrupt(0)
        self._session.delete_items(dict.fromkeys(each.item_id for each in pieces if isinstance(each, ReplyPiece)))

    def report_heard(self, heard_s: float, *, complete: bool, counts: bool) -> None:
        """Tell the model how much of its reply was heard. See `SpeechToSpeech.report_heard`."""
        held = complete or not self._requested or self._session.interrupt(round(heard_s * 1000))
        if not held or not heard_s:
            # The recorded turn stands for what was heard. If nothing was heard, no turn will be recorded.
            self._reply_items = []
        if self._requested and not counts:
            # No turn holds what was said, so nobody could have it forgotten.
            for items in self._take_reply():
                self._session.delete_items(items)

    def refresh(self) -> None:
        """Bring the session's conversation in step with the memory, after a compaction or a new note."""
        if self._session.usable:
            self._items.refresh(self._session)

    def _material(self, question: Question, quotes: Sequence[Quote]) -> ReplyMaterial:
        found = [(quote.recalled.session_id == self._timeline.session_id, quote.line) for quote in quotes]
        return ReplyMaterial(
            instructions=self._prompt.reply_instructions(question),
            result=without_marks(question.call.result) if isinstance(question, CallResult) else "",
            recalled=tuple(text for here, text in found if here),
            recalled_earlier=tuple(text for here, text in found if not here),
            sources={quote.line: quote.refs[0] for quote in quotes},
        )
