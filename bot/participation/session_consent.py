"""Consent in one session: who agreed to be heard, who has had the notice, and who had themselves forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SessionConsent:
    """What the people of one session were told, and what they chose. Another session begins with a new one.

    `session_id`: None before the server's first session. `agreed`: who agreed to be heard, where the bot asks; replace
    it and never change it, because other threads read it. `notice`: the digest of the newest notice (see
    `bot.room.announcer`). `told`: who has had it. `forgotten_until`: whom the room was told to forget, and until when
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
