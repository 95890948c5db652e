"""Builds the model's prompt for one question: instructions, memory, people and quotes of one session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from bot import events
from bot.brain.context import ModelContext, QuoteFinder, build_context_messages, presence_part
from bot.brain.question import (
    CallResult,
    DueReminder,
    Question,
    Remark,
    Spoken,
    Typed,
    asker_id_of,
    language_of,
    may_skip,
    whole_turn,
)
from bot.brain.skip import skip_instruction
from bot.brain.tools.tool import NOBODY, Asker
from bot.brain.tools.toolbox import Toolbox, listener
from bot.guild import PromptPolicy
from bot.store.prompts import SentPrompt
from bot.texts.text import sentence_of
from compaction.clock_time import format_day
from compaction.errors import StoreError
from compaction.memory.people import Audience
from compaction.speaker_names import plain_name
from voice.asr.language_names import language_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.channel.participants import Participants
    from bot.conversation.services import RoomContext
    from bot.llm.port import ChatModelError
    from bot.participation.participation import Participation
    from compaction.memory.quotes import Quote
    from compaction.model import Seq, SessionId
    from compaction.payload import PayloadPart


# The result itself stands where the call was made, as data: no system prompt repeats what a tool says.
REPORT_RESULT = (
    "What the person who asked wanted from {tool} has ended just now. Tell them in one or two sentences what came of "
    "it, by its result. If that says that it failed, say so."
)
TYPED = (
    "You were asked in a chat. Your answer is posted there, to be read: it may have figures, and be as long as it must."
)


class PromptBuilder:
    """Builds the prompts of one room, and the instructions of its speech-to-speech session (see `RealtimePrompt`)."""

    def __init__(
        self,
        session: RoomContext,
        *,
        participants: Participants,
        participation: Participation,
        quoting: QuoteFinder | None,
        toolbox: Toolbox,
    ) -> None:
        self._services, self._channel = session.services, session.channel
        self._session, self._timeline, self._upkeep = session, session.timeline, session.upkeep
        self._participants = participants
        self._participation = participation
        self._quoting = quoting
        self._toolbox = toolbox

    async def build_context(self, question: Question) -> ModelContext:
        """Return the prompt for `question`. Raises `CompactionError`."""
        services = self._services
        policy = await self.policy()
        asker = self.asker_of(question)
        quotes = await self.find_quotes(question)
        context = build_context_messages(
            self._timeline,
            question.turn,
            asked=whole_turn(question),
            system=(self._instructions(policy, asker), *self._names()),
            reply_prompts=self._answer_instructions(question),
            max_input_tokens=policy.max_input_tokens,
            now=services.clock.now(),
            zone=services.zone,
            quotes=quotes,
            participants=self._about_people(asker),
            policy=policy,
            toolbox=self._toolbox,
            asker=asker,
            result_of=question.call if isinstance(question, CallResult) else None,
            may_skip=may_skip(question),
            language=language_of(question),
        )
        self._report_sent(context.parts, answer_to=context.current.seq)
        people = self._named()

        def keep(parts: Sequence[PayloadPart]) -> None:
            if self._upkeep is not None:
                at = services.clock.now()
                self._upkeep.on_prompt_sent(
                    sent_prompt(context, parts, self._timeline.session_id, at=at, people=people)
                )

        def report_away(problem: ChatModelError) -> None:
            # Who runs the bot shall see it.
            services.observe(events.Problem("reply", sentence_of(problem), services.clock.monotonic()))

        # What came of a call is in no memory, and without a model nobody knows whether other words are for the bot.
        certain = isinstance(question, Typed) or (
            isinstance(question, Spoken) and (question.decision.answers_without_model or not question.decision.may_skip)
        )
        return replace(
            context,
            on_sent=keep,
            present=tuple(name for _, name in self._present()),
            names=self.own_names(),
            channel_language=self._channel.language,
            on_away=report_away if certain else None,
        )

    async def find_quotes(self, question: Question) -> tuple[Quote, ...]:
        if self._quoting is None:
            return ()
        # Nobody knows who reads a written answer. It tells of this session alone.
        is_typed = isinstance(question, Typed)
        if isinstance(question, CallResult):
            is_typed = question.call.asker.typed is not None
        asked, names = whole_turn(question), self.own_names()
        return await self._quoting.find(asked, self._timeline, names=names, elsewhere=not is_typed)

    def own_names(self) -> tuple[str, ...]:
        """Return the bot's own name and what it is called here, which a manager may change at any time."""
        return (self._services.brain.name, *self._participation.wake_names)

    def record_sent(self, parts: Sequence[PayloadPart], *, answer_to: Seq) -> None:
        """Record what a speech-to-speech model was sent for the reply to turn `answer_to`."""
        self._report_sent(parts, answer_to=answer_to)
        if self._upkeep is not None:
            self._upkeep.on_prompt_sent(
                SentPrompt.of(
                    parts,
                    self._timeline.session_id,
                    answer_to=answer_to,
                    at=self._services.clock.now(),
                    mode=self._timeline.mode,
                    cursor=self._timeline.cursor,
                    summary_revision=self._timeline.state.revision,
                    spoken=True,
                    people=self._named(),
                )
            )

    def _report_sent(self, parts: Sequence[PayloadPart], *, answer_to: Seq) -> None:
        """Tell memory and observers of a prompt."""
        parts = tuple(parts)
        if self._upkeep is not None:
            self._upkeep.on_payload_sent(parts)
        self._services.observe(events.ContextBuilt(parts, answer_to, self._services.clock.monotonic()))

    def reply_instructions(self, question: Question) -> tuple[str, ...]:
        return (*self._names(), *self._answer_instructions(question))

    def _names(self) -> tuple[str, ...]:
        # Quoted, because people on the server choose them.
        names = [
            f'"{plain_name(name)}"' for name in self._participation.wake_names if name not in self._services.brain.names
        ]
        return (f"Here they also call you {' or '.join(names)}.",) if names else ()

    def _answer_instructions(self, question: Question) -> tuple[str, ...]:
        """Return what changes with the reply: the date, and how to answer."""
        # Turns have clock times only, and summaries name dates. A remark after a long silence follows a turn of before.
        today = f"Today is {format_day(self._services.clock.now(), self._services.zone)}."
        return (today, *filter(None, _how_to_answer(question)))

    def languages(self) -> tuple[str, ...]:
        return self._services.languages(self._channel.guild_id)

    def introductions(self, asker: Asker) -> list[str]:
        if self._upkeep is None:
            return [name for _, name in self._present()]
        return self._upkeep.people.introductions(self._audience(asker), self._present())

    def name_of(self, user_id: int) -> str:
        return self._participants.name(user_id)

    def asker_of(self, question: Question) -> Asker:
        return asker_of(question, self._participants)

    def _present(self) -> list[tuple[str, str]]:
        return self._participation.without_opted_out(self._participants.present())

    def _gone(self) -> list[tuple[str, str]]:
        return self._participation.without_opted_out(self._participants.gone())

    def _named(self) -> tuple[str, ...]:
        """Return the ids of those whom prompts name as present or gone."""
        return tuple(person_id for person_id, _ in (*self._present(), *self._gone()))

    def _about_people(self, asker: Asker) -> tuple[PayloadPart, ...]:
        """Return who is here or was, and what those who are heard have said about themselves."""
        present = self._present()
        unheard = len(self._participants.people) - len(present)
        gone = [name for _, name in self._gone()]
        here = presence_part([name for _, name in present], gone=gone, unheard=unheard)
        facts = () if self._upkeep is None else self._upkeep.people.section(self._audience(asker), present)
        return (here, *facts)

    def _audience(self, asker: Asker) -> Audience:
        if asker.typed is not None:
            return Audience(self._channel.guild_id)
        asker_id = str(asker.user_id) if asker.present else None
        return Audience(self._channel.guild_id, self._channel.shared_channels(), asker_id)

    def _instructions(self, policy: PromptPolicy, asker: Asker) -> str:
        tools = self._toolbox.offered(asker)
        return self._services.replies.instructions.text(tools=tools, guild=policy.instructions)

    async def policy(self) -> PromptPolicy:
        """Return the guild's prompt policy, after putting the session into its mode."""
        replies = self._services.replies
        if replies.guild_policy is None:
            return PromptPolicy(self._timeline.mode, replies.max_input_tokens, enforced=True)
        policy = replies.guild_policy.prompt_policy(self._channel.guild_id, self._channel.channel_id)
        try:
            await self._timeline.set_mode(policy.mode)
        except StoreError as error:
            # The session stays in its old mode; the next reply tries again.
            self._session.report("memory_mode", error)
        return policy


def asker_of(question: Question, participants: Participants) -> Asker:
    """Return the person who asked `question`, or whose press it tells the result of, or `NOBODY` if nobody did."""
    asker_id = asker_id_of(question)
    if asker_id is None or isinstance(question, DueReminder):
        # What is said word for word calls no tool.
        return NOBODY
    if isinstance(question, CallResult):
        before = question.call.asker
        return replace(_asker(asker_id, before.name, participants), typed=before.typed)
    name = next((part.speaker for part in question.turn.parts if part.speaker_id == str(asker_id)), None)
    typed = question.message if isinstance(question, Typed) else None
    return NOBODY if name is None else replace(_asker(asker_id, name, participants), typed=typed)


def _how_to_answer(question: Question) -> tuple[str, ...]:
    """Return what a model is told of an answer to this kind of question; some may be empty."""
    match question:
        case Spoken(decision=decision):
            language = language_name(question.language)
            skipping = skip_instruction(decision.reason) if decision.may_skip else ""
            return skipping, f"The last turn is in {language}. Answer in {language}." if language else ""
        case Remark(reason=reason):
            return (skip_instruction(reason),)
        case Typed():
            return (TYPED,)
        case CallResult(call=call):
            return "" if call.asker.typed is None else TYPED, REPORT_RESULT.format(tool=call.tool.name)
        case DueReminder():
            return ()
        case _ as never:
            assert_never(never)


def _asker(user_id: int, name: str, participants: Participants) -> Asker:
    person = participants.find(user_id)
    return Asker(user_id, name) if person is None else replace(listener(person), name=name)


def sent_prompt(
    context: ModelContext,
    parts: Sequence[PayloadPart],
    session_id: SessionId,
    *,
    at: float,
    people: Sequence[str] = (),
) -> SentPrompt:
    """Return what one model call was sent, for the store: `parts`, of which the model's budget may have shortened or
    left out some of `context`. `at`: UTC epoch seconds.
    """
    session = context.session
    return SentPrompt.of(
        parts,
        session_id,
        answer_to=context.current.seq,
        at=at,
        mode=session.mode,
        cursor=session.cursor,
        summary_revision=session.summary_revision,
        max_input_tokens=session.max_input_tokens,
        people=people,
    )
