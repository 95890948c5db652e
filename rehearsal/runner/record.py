"""Everything that was said and observed in one run. Tasks can wait until the record meets a condition.

The runner records what people said, and `observe` records the bot's events. The judge reads the record at the end. A
record belongs to one run and one event loop. Not thread-safe. Times are monotonic seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bot import events
from compaction.model import Turn

# We find the bounds of speech by energy, and the bot finds them by voice activity detection. The two differ by a soft
# first or last sound. The network adds at most the length of a jitter buffer.
MARGIN_S = 0.5
# If an utterance ends this much before the line does, another piece of the line may follow.
_TAIL_S = 1.2


@dataclass(frozen=True, slots=True)
class SpeechSpan:
    """The words that one speaker said between two times."""

    speaker_id: int
    text: str
    started_at: float
    ended_at: float

    def overlap_s(self, other: SpeechSpan, *, margin_s: float = 0.0) -> float:
        """Return how long both spans overlap, with this one widened by the margin on each side. Negative when they are
        apart.
        """
        return min(self.ended_at + margin_s, other.ended_at) - max(self.started_at - margin_s, other.started_at)


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """One `say` step that is being spoken or is over. The times are those of the voice, in monotonic seconds.

    While the line is being spoken, `voice_ended_at` is when the clip will end. `wants_answer`: whether the bot must
    answer.
    """

    number: int
    step_id: str
    speaker_id: int
    speaker: str
    reference: str
    voice_started_at: float
    voice_ended_at: float
    over: bool = False
    wants_answer: bool | None = None

    @property
    def span(self) -> SpeechSpan:
        return SpeechSpan(self.speaker_id, self.reference, self.voice_started_at, self.voice_ended_at)


@dataclass(frozen=True, slots=True)
class LoggedProblem:
    """A warning or an error was logged. It never contains what people said."""

    event: str
    detail: str
    level: str = "error"  # warning | error


@dataclass(frozen=True, slots=True)
class BotCrashed:
    """The bot ended on its own. `detail` is a plain sentence."""

    detail: str


Observation: TypeAlias = events.Event | LoggedProblem | BotCrashed
ObservationCallback: TypeAlias = Callable[[Observation], None]


class RunRecord:
    """The record of one run. Each list is in the order of the events."""

    def __init__(self) -> None:
        # When playing the scenario began, in monotonic seconds.
        self.live_at = 0.0
        # The spoken lines by the number of their step.
        self.lines_by_step: dict[int, SpokenLine] = {}
        self._heard: set[int] = set()
        self.utterances: list[events.UtteranceTranscribed] = []
        self.dropped: list[events.SpeechDropped] = []
        self.turns: list[Turn] = []
        self.compactions: list[events.CompactionLanded] = []
        self.failed_compactions: list[events.CompactionFailed] = []
        self.prompts: list[events.ContextBuilt] = []
        self.replies: list[events.ReplySpoken] = []
        self.problems: list[LoggedProblem] = []
        self.rooms_ready = 0
        # Why the bot left the channel. Empty while it is there.
        self.left = ""
        self.crash: BotCrashed | None = None
        self.failed_waits: list[str] = []
        # When each step with an id began and ended, in monotonic seconds.
        self.step_times: dict[str, tuple[float, float]] = {}
        # The people who were in the channel, by id, with (entered, left) in monotonic seconds.
        self.presence: dict[int, list[tuple[float, float]]] = {}
        # The number of events that are recorded, without packet counters. It shows whether the room is quiet.
        self.activity = 0
        # When the last step and the wait after it were over, in monotonic seconds. Infinite until then.
        self.ended_at = float("inf")
        # Why the run ended early. Empty when the run was played to its end.
        self.ended_by = ""
        self.duration_s = 0.0
        self._packet_counters: Mapping[str, int] = {}
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def lines(self) -> tuple[SpokenLine, ...]:
        """Return the spoken lines in time order."""
        return tuple(sorted(self.lines_by_step.values(), key=lambda line: (line.voice_started_at, line.number)))

    @property
    def packets(self) -> dict[str, int]:
        """Return the bot's packet counters. The four that always exist come first."""
        always = dict.fromkeys(("received", "lost", "concealed", "dave_failures"), 0)
        return {**always, **dict(sorted(self._packet_counters.items()))}

    @property
    def last_seq(self) -> int:
        """Return the number of the newest turn, or -1 before the first turn."""
        return self.turns[-1].seq if self.turns else -1

    @property
    def all_lines_heard(self) -> bool:
        """Return whether every line is over and an utterance of the bot reaches the end of each line."""
        waited = self.lines_by_step.keys() - self._heard
        spans = [*map(utterance_span, self.utterances), *map(utterance_span, self.dropped)] if waited else []
        over = {number: line for number in waited if (line := self.lines_by_step[number]).over}
        # Nothing that was heard is taken back, so a long talk is not compared with itself after each line.
        self._heard |= {number for number, line in over.items() if reaches_end(line.span, spans)}
        return waited <= self._heard

    def replied_since(self, moment: float) -> bool:
        """Return whether the bot has spoken since `moment` (monotonic seconds)."""
        return any(reply.first_audio_at >= moment for reply in self.replies)

    def add_line(self, line: SpokenLine) -> None:
        """Add a line that is being spoken. When the line is over, add it again with the same `number` to replace it."""
        self.lines_by_step[line.number] = line
        self._wake()

    def observe(self, observation: Observation) -> None:
        """Record an event of the bot and wake the tasks that wait for it."""
        match observation:
            case events.UtteranceTranscribed():
                self.utterances.append(observation)
            case events.SpeechDropped():
                self.dropped.append(observation)
            case events.TurnRecorded(turn=turn):
                self.turns.append(turn)
            case events.CompactionLanded():
                self.compactions.append(observation)
            case events.CompactionFailed():
                self.failed_compactions.append(observation)
            case events.ContextBuilt():
                self.prompts.append(observation)
            case events.ReplySpoken():
                self.replies.append(observation)
            case events.ConnectionChanged(counters=counters):
                self._packet_counters = counters
                return
            case LoggedProblem():
                self.problems.append(observation)
            case BotCrashed():
                self.crash = observation
            case events.RoomOpened():
                self.rooms_ready += 1
                self.left = ""
            case events.RoomClosed(reason=reason):
                self.left = reason
            case _:
                return
        self.activity += 1
        self._wake()

    def note_entered(self, user_id: int, at: float) -> None:
        """Note that somebody can hear the channel from now on."""
        self.presence.setdefault(user_id, []).append((at, float("inf")))

    def note_left(self, user_id: int, at: float) -> None:
        """Note that somebody has left the channel."""
        stays = self.presence.get(user_id)
        if stays:
            stays[-1] = (stays[-1][0], at)

    def present(self, since: float, until: float) -> tuple[int, ...]:
        """Return the people who were in the channel for all of this time, in the order in which they first entered."""
        return tuple(
            user_id
            for user_id, stays in self.presence.items()
            if any(entered <= since and until <= left for entered, left in stays)
        )

    async def wait_until(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        """Wait until `condition` holds after a report. Return False when the time was up first.

        *Cancellation*: a wait can be cancelled; it is then removed from the waiting tasks.
        """
        if condition():
            return True
        waiter = (condition, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter[1]
        except TimeoutError:
            return condition()
        finally:
            self._waiters.remove(waiter)
        return True

    def _wake(self) -> None:
        for condition, future in self._waiters:
            if not future.done() and condition():
                future.set_result(None)


def utterance_span(utterance: events.UtteranceTranscribed | events.SpeechDropped) -> SpeechSpan:
    return SpeechSpan(utterance.speaker_id, utterance.text, utterance.started_at, utterance.ended_at)


def reaches_end(line: SpeechSpan, heard: Sequence[SpeechSpan]) -> bool:
    """Return whether a heard span of the same speaker reaches the end of `line`.

    If so, no further piece of the line is expected.
    """
    end = min(line.ended_at - _TAIL_S, (line.started_at + line.ended_at) / 2)
    return any(
        piece.speaker_id == line.speaker_id and line.overlap_s(piece, margin_s=MARGIN_S) > 0 and piece.ended_at >= end
        for piece in heard
    )
