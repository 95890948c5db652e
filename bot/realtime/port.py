"""The interface between a speech-to-speech bridge and its room: shared services, sessions and the room's prompt."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bot.llm.model_calls import CallMeter, CallOutcome, Payer, finish_call, plausible_tokens
from bot.llm.port import Usage

if TYPE_CHECKING:
    from datetime import tzinfo

    from bot import events
    from bot.brain.question import Question
    from bot.brain.system_prompt import SystemPrompt
    from bot.brain.tools.tool import Asker
    from bot.clock import Clock
    from bot.guild import PromptPolicy
    from bot.texts.text import Text
    from compaction.memory.quotes import Quote
    from compaction.model import Seq
    from compaction.payload import PayloadPart
    from voice.asr.port import Recogniser
    from voice.realtime.port import Briefing, Realtime, RealtimeLimits, RealtimeNews, ToolRunner
    from voice.realtime.reply_queue import FinishedResponse
    from voice.realtime.settings import RealtimeSettings

# Runs a session until it is given up.
RunSession: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
# Makes a session. Arguments: the function that returns its briefing, the one that gets its events, the one that runs
# tool calls, and who pays.
NewSession: TypeAlias = (
    "Callable[[Callable[[], Briefing], Callable[[RealtimeNews], None], ToolRunner, Payer], tuple[Realtime, RunSession]]"
)


@dataclass(frozen=True, slots=True)
class RealtimeServices:
    """The services that the bridges of all rooms share. `recogniser`: takes over when the session cannot be used.
    `fallback_name`: the responder that replies while the session is away, as a name within a sentence.
    """

    settings: RealtimeSettings
    new_session: NewSession
    instructions: SystemPrompt
    recogniser: Recogniser
    fallback_name: Text
    zone: tzinfo
    clock: Clock
    observe: events.Observer


class RealtimePrompt(Protocol):
    """Builds the model's instructions for one room. `bot.conversation.prompt.PromptBuilder` implements it."""

    def name_of(self, user_id: int) -> str:
        """Return a speaker's display name."""

    def asker_of(self, question: Question) -> Asker:
        """Return who asked; tools run with their permissions."""

    async def policy(self) -> PromptPolicy:
        """Return how the next prompt of this guild is built."""

    def reply_instructions(self, question: Question) -> tuple[str, ...]:
        """Return instructions for the reply to `question` alone."""

    async def find_quotes(self, question: Question) -> Sequence[Quote]:
        """Return what was said earlier about `question`, best first."""

    def languages(self) -> tuple[str, ...]:
        """Return the codes of the languages that people speak; none: any."""

    def introductions(self, asker: Asker) -> Sequence[str]:
        """Return a line about each person who is present, for a reply to `asker`."""

    def record_sent(self, parts: Sequence[PayloadPart], *, answer_to: Seq) -> None:
        """Record what the model was sent for the reply to turn `answer_to`."""


def session_factory(
    settings: RealtimeSettings,
    *,
    api_key: str,
    clock: Clock,
    meter: CallMeter,
    limits: RealtimeLimits | None = None,
) -> NewSession:
    """Return a function that makes sessions with the endpoint in the settings.

    `meter`: gets each response of the model, which is a call, when it is over.
    """
    # Imported here because the library takes a second to load.
    from voice.realtime.effects import ResponseStatus
    from voice.realtime.port import REALTIME_LIMITS
    from voice.realtime.session import RealtimeSession

    outcomes: dict[ResponseStatus, CallOutcome] = {
        ResponseStatus.COMPLETE: "answered",
        ResponseStatus.CANCELLED: "cancelled",
        ResponseStatus.FAILED: "failed",
    }

    def finish(payer: Payer, response: FinishedResponse) -> None:
        finish_call(
            meter,
            payer=payer,
            model=settings.model,
            purpose="speech-to-speech",
            outcome=outcomes[response.status],
            usage=Usage(plausible_tokens(response.input_tokens), plausible_tokens(response.output_tokens)),
            duration_s=response.duration_s,
        )

    def new_session(
        brief: Callable[[], Briefing],
        on_event: Callable[[RealtimeNews], None],
        run_tool: ToolRunner,
        payer: Payer,
    ) -> tuple[Realtime, RunSession]:
        session = RealtimeSession(
            settings,
            api_key=api_key,
            brief=brief,
            clock=clock,
            on_event=on_event,
            on_response=partial(finish, payer),
            run_tool=run_tool,
            limits=limits or REALTIME_LIMITS,
        )
        return session, session.run

    return new_session
