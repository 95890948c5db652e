"""Who watches a rehearsal as it happens. The stage tells; showing it is up to the audience."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rehearsal.runner.observation import CompactionFailed, CompactionLanded, ReplySpoken, UtteranceHeard
    from rehearsal.script.scenario import Scenario


class Audience(Protocol):
    """Called on the loop's thread; must return at once and never raise. `at_s`: seconds since the live start."""

    def opened(self, scenario: Scenario) -> None:
        """The local Discord is up and the bot is about to be started."""

    def happened(self, at_s: float, text: str) -> None:
        """Something that is neither speech nor compaction: a command, a join, a fault, a restart."""

    def spoken(self, at_s: float, speaker: str, reference: str) -> None:
        """Somebody began to say this."""

    def heard(self, at_s: float, speaker: str, utterance: UtteranceHeard, latency_ms: float) -> None:
        """The bot made text of it, or dropped it with a reason; `latency_ms` from the acoustic end."""

    def replied(self, at_s: float, reply: ReplySpoken, latency_ms: float | None) -> None:
        """The bot has spoken; `latency_ms` from the end of the question to the first sound."""

    def compacted(self, at_s: float, landed: CompactionLanded | CompactionFailed) -> None:
        """A compaction landed or failed."""

    def troubled(self, at_s: float, text: str) -> None:
        """A wait passed its bound, or the bot logged a problem."""


class NoAudience:
    """Nobody watches."""

    def opened(self, scenario: Scenario) -> None:
        """Say nothing."""

    def happened(self, at_s: float, text: str) -> None:
        """Say nothing."""

    def spoken(self, at_s: float, speaker: str, reference: str) -> None:
        """Say nothing."""

    def heard(self, at_s: float, speaker: str, utterance: UtteranceHeard, latency_ms: float) -> None:
        """Say nothing."""

    def replied(self, at_s: float, reply: ReplySpoken, latency_ms: float | None) -> None:
        """Say nothing."""

    def compacted(self, at_s: float, landed: CompactionLanded | CompactionFailed) -> None:
        """Say nothing."""

    def troubled(self, at_s: float, text: str) -> None:
        """Say nothing."""
