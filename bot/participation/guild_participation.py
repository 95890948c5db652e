"""How the bot takes part on one server now: when it speaks, under which names, whom it hears, and its costs.

`bot.participation.all_guilds` reads and changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bot.guild import Silence

if TYPE_CHECKING:
    from bot.guild import VoiceMode
    from bot.participation.costs import CostLedger


class SilenceableRoom(Protocol):
    """A room that can be silenced, and that is told of opt-outs. `Participation` implements it."""

    @property
    def session_id(self) -> str:
        """Return the room's session."""

    def stop_speaking(self) -> None:
        """Stop the reply in progress and discard the waiting question."""

    def on_opted_out(self, person_id: int) -> None:
        """Drop what this person has said or shown and that is not recorded yet, and what is on its way to a model or
        waits for it, since it may hold this person's words.
        """

    def on_forgetting(self, person_id: int) -> None:
        """Drop what this person has said or shown until now and that is not recorded yet."""

    def on_forgotten(self) -> None:
        """Drop what is on its way to a model or waits for it, since it may hold words that were forgotten."""


@dataclass(slots=True)
class SessionConsent:
    """What the people of one session were told, and what they chose. Another session begins with a new one.

    `session_id`: None before the server's first session. `agreed`: who agreed to be heard, where the bot asks; replace
    it and never change it, because other threads read it. `notice`: the digest of the newest notice (see
    `bot.room.notice`). `told`: who has had it. `forgotten_until`: whom the room was told to forget, and until when
    they had spoken (monotonic seconds).
    """

    session_id: str | None = None
    agreed: frozenset[int] = frozenset()
    notice: str = ""
    told: frozenset[int] = frozenset()
    forgotten_until: dict[int, float] = field(default_factory=dict)

    def told_by(self, notice: str) -> frozenset[int]:
        """Return who has had this notice."""
        return self.told if notice == self.notice else frozenset()

    def tell(self, notice: str, people: frozenset[int]) -> None:
        """Take note that people have had a notice."""
        self.notice, self.told = notice, self.told_by(notice) | people


@dataclass(slots=True)
class GuildParticipation:
    """The participation of one server now. Replace `opted_out` and never change it, because other threads read it.

    `room`: the bot's room there, if it has one. `ceiling_notice_at`: when the channel last got the notice that the
    ceiling is reached (monotonic seconds).
    """

    guild_id: int
    voice_mode: VoiceMode
    wake_names: tuple[str, ...]
    costs: CostLedger
    silence: Silence = field(default_factory=Silence)
    opted_out: frozenset[int] = frozenset()
    room: SilenceableRoom | None = None
    ceiling_notice_at: float | None = None
    # Whether the bot asks first, settled when a room begins, and what the people of the newest session have answered.
    asks: bool = False
    consent: SessionConsent = field(default_factory=SessionConsent)
    # When a room of that session was last known to run (monotonic seconds).
    ran_until: float | None = None
    # The bot only writes down in this session: it says nothing, whoever asks.
    listens_only: bool = False

    def excludes(self, person_id: int) -> bool:
        """Return whether a person may not be heard: they opted out, or were asked and have not agreed. Thread-safe."""
        return person_id in self.opted_out or (self.asks and person_id not in self.consent.agreed)

    def opted_out_ids(self) -> frozenset[str]:
        """Return the ids of the people who opted out, as turns have them."""
        return frozenset(map(str, self.opted_out))

    def begin_session(self, session_id: str, *, listens_only: bool = False) -> None:
        """Ask everybody anew in another session. A session that goes on after a crash keeps its answers."""
        self.listens_only = listens_only
        if session_id != self.consent.session_id:
            self.consent = SessionConsent(session_id)

    def running_session(self, now: float, *, within_s: float) -> str | None:
        """Return the session whose room ran until now, or within these seconds: the next room goes on with it, however
        long nobody has said anything.
        """
        ran = self.ran_until is not None and now - self.ran_until <= within_s
        return self.consent.session_id if ran else None
